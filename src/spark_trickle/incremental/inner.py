"""Groups inside a query: which of them can be kept between refreshes, and the query above them.

To what lies above, groups that are kept are a source like any other: their rows at both versions are at hand, and
what changed in them is told by their totals. Nothing below them is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from spark_trickle.algebra.relations import (
    Concat,
    InnerJoin,
    LookupJoin,
    Loop,
    Node,
    PerKey,
    Relation,
    RowWise,
    Scan,
    Top,
    Whole,
)
from spark_trickle.algebra.repeatable import repeatability
from spark_trickle.algebra.traverse import children_of, sources_of, walk

Groups = PerKey | Whole


def innermost(root: Relation) -> Iterator[Groups]:
    """Groups below the root's own that come out the same whenever they are evaluated, and hold no others of that kind."""
    top: Node = root
    while isinstance(top, RowWise):
        top = top.child
    below = children_of(top) if isinstance(top, PerKey | Whole) else (top,)
    for part in below:
        yield from _innermost(part)


def _innermost(node: Node) -> Iterator[Groups]:
    if isinstance(node, Loop):
        return
    found = [groups for child in children_of(node) for groups in _innermost(child)]
    yield from found
    if found or not isinstance(node, PerKey | Whole) or len(node.children) != 1 or not sources_of(node):
        return
    certain = repeatability(node)
    if not certain.rows and not certain.columns:
        yield node


def above(root: Relation, kept: Mapping[int, Scan]) -> Relation:
    """The query with sources in the place of groups, given by the groups' `id`."""
    found = kept.get(id(root))
    if found is not None:
        return found
    if not any(id(node) in kept for node in walk(root)):
        return root
    match root:
        case RowWise(child=child):
            return replace(root, child=_above(child, kept))
        case Top(child=child):
            return replace(root, child=above(child, kept))
        case InnerJoin(left=left, right=right) | LookupJoin(left=left, right=right):
            return replace(root, left=_above(left, kept), right=_above(right, kept))
        case Concat(children=children) | PerKey(children=children) | Whole(children=children):
            return replace(root, children=tuple(_above(child, kept) for child in children))
        case Scan() | Loop():
            return root


def _above(node: Node, kept: Mapping[int, Scan]) -> Node:
    return above(node, kept)  # type: ignore[arg-type]


def origin(relation: Node, column: int) -> tuple[str, str] | None:
    """The source and its column whose values, and no others but NULL, a column of a relation has; None: computed."""
    match relation:
        case Scan(columns=columns, source=source):
            names = [c.name for c in columns if c.id == column]
            return (source, names[0]) if names else None
        case RowWise(child=child):
            inner = relation.operator.passes.get(column)
            return None if inner is None else origin(child, inner)
        case InnerJoin(left=left, right=right) | LookupJoin(left=left, right=right):
            side = left if any(c.id == column for c in left.columns) else right
            return origin(side, column)
    return None
