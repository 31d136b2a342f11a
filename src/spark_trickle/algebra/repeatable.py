"""Which columns may differ between two evaluations of the same version, and where that matters.

A float sum depends on the order of its input, `first` on the order of rows; OPTIMIZE alone changes both.
Such a column may be compared with the stored table, never with a second evaluation of the old version.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_trickle.algebra.relations import Concat, InnerJoin, LookupJoin, Node, PerKey, Relation, Scan
from spark_trickle.algebra.traverse import children_of


@dataclass(frozen=True, slots=True)
class Repeatability:
    """`columns`: output columns whose values may differ; `rows`: why even the set of rows may, if so."""

    columns: frozenset[int]
    rows: str = ""
    position: tuple[int, int] | None = None
    """Where in the text that is decided."""


def repeatability(relation: Node) -> Repeatability:
    """What of the relation's output may come out differently when evaluated again."""
    if isinstance(relation, Scan):
        return Repeatability(relation.operator.unrepeatable)
    if not isinstance(relation, Relation):
        raise TypeError(f"{type(relation).__name__} is part of a change, not of a query")
    below = [repeatability(child) for child in children_of(relation)]
    doubtful = frozenset[int]().union(*(b.columns for b in below))
    rows, position = next(((b.rows, b.position) for b in below if b.rows), ("", None))
    if not rows and _decisive(relation) & doubtful:
        rows, position = _names(relation, _decisive(relation) & doubtful), relation.operator.position
    columns = relation.operator.unrepeatable | _computed_from(relation, doubtful, below)
    return Repeatability(columns, rows, position)


def _decisive(relation: Relation) -> frozenset[int]:
    """The columns that decide about rows; keys always do: a changed row is found by them."""
    keys = relation.keys if isinstance(relation, InnerJoin | LookupJoin | PerKey) else ()
    return relation.operator.decides.union(*keys)


def _computed_from(
    relation: Relation, doubtful: frozenset[int], below: list[Repeatability]
) -> frozenset[int]:
    if isinstance(relation, Concat | PerKey) and len(relation.children) > 1:
        marked: set[int] = set()
        for child, found in zip(children_of(relation), below, strict=True):
            pairs = zip(relation.columns, child.columns, strict=True)
            marked |= {out.id for out, inner in pairs if inner.id in found.columns}
        return frozenset(marked)
    reads = relation.operator.reads
    return frozenset(
        column.id
        for column in relation.columns
        if column.id in doubtful or reads.get(column.id, frozenset()) & doubtful
    )


def _names(relation: Relation, ids: frozenset[int]) -> str:
    found = {c.name for child in children_of(relation) for c in child.columns if c.id in ids}
    return f"{relation.operator.label} depends on {', '.join(f'`{n}`' for n in sorted(found))}"
