"""One rule a file; its docstring is its equation. `change_of` gives the change of an input."""
