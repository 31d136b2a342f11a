"""One file per step. A released step is never edited: databases have run it."""
