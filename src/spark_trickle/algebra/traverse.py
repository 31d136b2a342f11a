"""Walking relations: children, rebuilding, what lies below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from spark_trickle.algebra.relations import (
    At,
    Changes,
    Concat,
    Held,
    InnerJoin,
    Kept,
    LookupJoin,
    Loop,
    Matching,
    Net,
    Node,
    Part,
    Partners,
    PerKey,
    Relation,
    RowWise,
    Scan,
    Signed,
    Sum,
    Top,
    Whole,
)


def children_of(relation: Node) -> tuple[Node, ...]:
    """The inputs of a defining query's relation, in order."""
    match relation:
        case Scan():
            return ()
        case RowWise(child=child) | Top(child=child):
            return (child,)
        case InnerJoin(left=left, right=right) | LookupJoin(left=left, right=right):
            return (left, right)
        case Concat() | PerKey() | Whole() | Loop():
            return relation.children
        case Changes() | At() | Matching() | Partners() | Held() | Signed() | Sum() | Net() | Part() | Kept():
            raise TypeError(f"{type(relation).__name__} is part of a change, not of a query")
    assert_never(relation)


def walk(relation: Node) -> Iterator[Relation]:
    """The relation and everything below it, parents first."""
    if not isinstance(relation, Relation):
        raise TypeError(f"{type(relation).__name__} is part of a change, not of a query")
    yield relation
    for child in children_of(relation):
        yield from walk(child)


def scans_of(relation: Node) -> Iterator[Scan]:
    return (node for node in walk(relation) if isinstance(node, Scan))


def sources_of(relation: Node) -> frozenset[str]:
    return frozenset(scan.source for scan in scans_of(relation))


def below_row_wise(node: Node) -> Node:
    """What lies below the operators that treat each row by itself."""
    while isinstance(node, RowWise):
        node = node.child
    return node
