"""Pushing a key set down: read only what the keys can reach.

A push is a pre-filter. It may let more rows through than the keys ask for, so the exact filter is
applied again where the key set is used; it must never drop a row that the exact filter would keep:
σ_{K∈S} N(pushed) = σ_{K∈S} N.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from spark_trickle.algebra.comparisons import Check
from spark_trickle.algebra.relations import (
    At,
    Changes,
    Concat,
    Held,
    InnerJoin,
    Kept,
    KeysOf,
    LookupJoin,
    Loop,
    Matching,
    Net,
    Node,
    Part,
    Partners,
    PerKey,
    RowWise,
    Scan,
    Signed,
    Sum,
    Top,
    Version,
    Whole,
)

Places = Mapping[int, int]
"""Key positions, and the columns that carry them."""
_SELECTIVE = frozenset({Check.EQUAL, Check.ONE_OF, Check.STARTS_WITH})


def matching(relation: Node, version: Version, on: tuple[int, ...], keys: KeysOf) -> Matching:
    """The rows of one version whose `on` columns are in `keys`, read through as few rows as possible."""
    pairs = tuple(enumerate(on))
    pushed = restrict(relation, version, dict(pairs), keys)
    if isinstance(pushed, Matching) and pushed.on == pairs:
        return replace(pushed, needed=True)
    return Matching(pushed, pairs, keys)


def restrict(relation: Node, version: Version, on: Mapping[int, int], keys: KeysOf) -> Node:
    """`relation` at `version`, pre-filtered below by the key positions (`on`: position → column) it can use."""
    if not on:
        return At(relation, version)
    match relation:
        case Scan():
            return Matching(At(relation, version), tuple(sorted(on.items())), keys, needed=False)
        case RowWise(child=child):
            passes = relation.operator.passes
            inner = {i: passes[c] for i, c in on.items() if c in passes}
            return (
                replace(relation, child=restrict(child, version, inner, keys))
                if inner
                else At(relation, version)
            )
        case Concat(children=children):
            place = {column.id: i for i, column in enumerate(relation.columns)}
            return replace(
                relation,
                children=tuple(
                    restrict(child, version, {i: child.columns[place[c]].id for i, c in on.items()}, keys)
                    for child in children
                ),
            )
        case InnerJoin(left=left, right=right):
            to_left: Places = owned(on, left) | across(on, {r: lt for lt, r in relation.keys})
            to_right: Places = owned(on, right) | across(on, dict(relation.keys))
            if to_left and to_right and relation.keys:
                to_left, to_right = _first(relation, to_left, to_right)
            return _both(relation, version, to_left, to_right, keys)
        case LookupJoin(left=left):
            # From the right side nothing may be pushed: a NULL key may mean "no partner" as well.
            to_left = owned(on, left)
            return _both(relation, version, to_left, across(to_left, dict(relation.keys)), keys)
        case PerKey():
            return _into_keys(relation, version, on, keys)
        case Whole() | Top() | Loop():
            return At(relation, version)
        case Changes() | At() | Matching() | Partners() | Held() | Signed() | Sum() | Net() | Part() | Kept():
            raise TypeError(f"{type(relation).__name__} is part of a change, not of a query")
    assert_never(relation)


def _both(
    join: InnerJoin | LookupJoin,
    version: Version,
    to_left: Mapping[int, int],
    to_right: Mapping[int, int],
    keys: KeysOf,
) -> Node:
    """The keys go into the sides that they reach; where they reach one only, its partners decide about the other."""
    if not to_left and not to_right:
        return At(join, version)
    left_keys, right_keys = zip(*join.keys, strict=True) if join.keys else ((), ())
    left = restrict(join.left, version, to_left, keys)
    if left_keys and to_left and not to_right:
        left = Held(left, keys)
        return replace(join, left=left, right=partners(join.right, version, right_keys, left, left_keys))
    right = restrict(join.right, version, to_right, keys)
    if left_keys and not to_left:
        right = Held(right, keys)
        return replace(join, left=partners(join.left, version, left_keys, right, right_keys), right=right)
    return replace(join, left=left, right=right)


def _first(join: InnerJoin, to_left: Places, to_right: Places) -> tuple[Places, Places]:
    """Keys that reach both sides go into the one of which conditions leave few rows: its partners are fewer still."""
    left, right = _is_filtered(join.left), _is_filtered(join.right)
    if left and not right and to_left.keys() >= to_right.keys():
        return to_left, {}
    if right and not left and to_right.keys() >= to_left.keys():
        return {}, to_right
    return to_left, to_right


def _is_filtered(side: Node) -> bool:
    """A source of which the query asks something, such as one value of a column."""
    while isinstance(side, RowWise):
        side = side.child
    return isinstance(side, Scan) and any(c.check in _SELECTIVE for c in side.only)


def partners(
    relation: Node, version: Version, on: tuple[int, ...], rows: Node, their: tuple[int, ...]
) -> Node:
    """`relation` at `version` for a join with `rows` on equal columns: what meets none of them may be left out."""
    return restrict(relation, version, dict(enumerate(on)), KeysOf(((rows, their),)))


def _into_keys(relation: PerKey, version: Version, on: Mapping[int, int], keys: KeysOf) -> Node:
    """Only key columns may be pushed; each child has its own column at the same place among the keys."""
    passes, first = relation.operator.passes, relation.keys[0]
    places = {i: first.index(passes[c]) for i, c in on.items() if passes.get(c) in first}
    if not places:
        return At(relation, version)
    children = tuple(
        restrict(child, version, {i: own[place] for i, place in places.items()}, keys)
        for child, own in zip(relation.children, relation.keys, strict=True)
    )
    return replace(relation, children=children)


def owned(on: Mapping[int, int], side: Node) -> dict[int, int]:
    """The places whose columns are the side's own."""
    ids = {column.id for column in side.columns}
    return {i: c for i, c in on.items() if c in ids}


def across(on: Mapping[int, int], partner: Mapping[int, int]) -> dict[int, int]:
    """The places whose columns have a partner on the other side of a join, and those partners."""
    return {i: partner[c] for i, c in on.items() if c in partner}
