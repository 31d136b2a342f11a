"""Whether a query only ever gives more rows when some of its sources have more. Pure."""

from __future__ import annotations

from collections.abc import Set

from spark_trickle.algebra.relations import Loop, Operator, Relation, Scan, Top, Whole
from spark_trickle.algebra.traverse import children_of, sources_of


def shrinks_with(relation: Relation, sources: Set[str]) -> Operator | None:
    """The topmost operator that may drop a row because one of these sources has more; None if there is none."""
    inputs = children_of(relation)
    touched = [i for i, child in enumerate(inputs) if sources_of(child) & sources]
    if isinstance(relation, Scan) or not touched:
        return None
    operator = relation.operator
    if isinstance(relation, Whole | Top | Loop) or any(i not in operator.grows_with for i in touched):
        return operator
    below = (shrinks_with(child, sources) for child in inputs if isinstance(child, Relation))
    return next((found for found in below if found is not None), None)
