"""Which keys a change touches, from as little as tells: keys too many only mean that more is evaluated again.

A changed row of one side of a join touches only keys that it has itself, in its own columns or in those that the
join equates with them. Where all keys can be told like this nothing is read to find them. For the same reason keys
may be left out: rows with one order number are all replaced, whatever the order's date was that they are grouped by
as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from spark_trickle.algebra.relations import (
    OLD,
    Concat,
    Held,
    InnerJoin,
    KeysOf,
    LookupJoin,
    Node,
    PerKey,
    RowWise,
    Scan,
)
from spark_trickle.algebra.restrict import matching
from spark_trickle.incremental.rules import inner_join

Places = Mapping[int, int]
"""Places among the keys, and the columns that tell them."""


@dataclass(frozen=True, slots=True)
class Touched:
    """A set of keys, of the columns at some places among a PerKey's keys."""

    keys: KeysOf
    places: tuple[int, ...]

    def of(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(columns[place] for place in self.places)


def exactly(node: PerKey, change_of: Callable[[Node], Node]) -> Touched:
    """The keys of every changed row of every input."""
    parts = zip(node.children, node.keys, strict=True)
    return Touched(
        KeysOf(tuple((change_of(child), on) for child, on in parts)), tuple(range(len(node.keys[0])))
    )


def at_least(node: PerKey, change_of: Callable[[Node], Node]) -> Touched:
    """These keys and perhaps others."""
    places = _chosen(node)
    found: list[tuple[Node, tuple[int, ...]]] = []
    for child, columns in zip(node.children, node.keys, strict=True):
        found += _parts(child, tuple(columns[place] for place in places), change_of)
    return Touched(KeysOf(tuple(found)), places)


def _chosen(node: PerKey) -> tuple[int, ...]:
    """The places that most inputs can tell without looking at others; all of them if that does not help."""
    every = tuple(range(len(node.keys[0])))
    if len(node.children) > 1:
        return every
    offers = list(_offers(node.children[0], dict(zip(every, node.keys[0], strict=True))))
    counts = {offer: sum(offer <= other for other in offers) for offer in offers if offer}
    best = max(counts, key=lambda offer: (counts[offer], len(offer)), default=frozenset(every))
    # Told by two inputs of a join, a key is what they are joined by, and as good as unique in one of them.
    return tuple(sorted(best)) if counts.get(best, 0) > 1 else every


def _offers(relation: Node, on: Places) -> Iterator[frozenset[int]]:
    """For each input, the places that its own changed rows tell."""
    inputs = _inputs(relation, on)
    if inputs is None:
        yield frozenset(on) if _is_simple(relation) else frozenset()
        return
    for below, columns in inputs:
        yield from _offers(below, columns)


def _inputs(relation: Node, on: Places) -> list[tuple[Node, Places]] | None:
    """The inputs, each with the columns that tell the keys of rows that its own rows can change; None for a leaf."""
    if _is_simple(relation):
        return None
    match relation:
        case RowWise(child=child):
            passes = relation.operator.passes
            return [(child, {i: passes[c] for i, c in on.items() if c in passes})]
        case Concat(children=children):
            place = {column.id: i for i, column in enumerate(relation.columns)}
            return [(child, {i: child.columns[place[c]].id for i, c in on.items()}) for child in children]
        case InnerJoin(left=left, right=right, keys=keys):
            return [
                (left, _owned(on, left) | _across(on, {r: lt for lt, r in keys})),
                (right, _owned(on, right) | _across(on, dict(keys))),
            ]
        case LookupJoin(left=left, right=right, keys=keys):
            # A column of the right side may be NULL for want of a partner.
            own = _owned(on, left)
            return [(left, own), (right, _across(own, dict(keys)))]
        case PerKey(children=children, keys=keys):
            passes, first = relation.operator.passes, keys[0]
            known = {i: first.index(passes[c]) for i, c in on.items() if passes.get(c) in first}
            return [
                (child, {i: own[place] for i, place in known.items()})
                for child, own in zip(children, keys, strict=True)
            ]
    return None


def _parts(
    relation: Node, columns: tuple[int, ...], change_of: Callable[[Node], Node]
) -> Iterator[tuple[Node, tuple[int, ...]]]:
    """What together has all touched keys."""
    inputs = _inputs(relation, dict(enumerate(columns)))
    told = [len(on) == len(columns) for _, on in inputs or ()]
    if inputs is None or not any(told) or (not told[0] and isinstance(relation, LookupJoin)):
        yield change_of(relation), columns
        return
    for number, (below, on) in enumerate(inputs):
        if told[number]:
            yield from _parts(below, tuple(on[i] for i in range(len(columns))), change_of)
        else:
            yield _met(relation, number, change_of), columns


def _met(relation: Node, number: int, change_of: Callable[[Node], Node]) -> Node:
    """Rows with all keys that a change of one side of a join touches."""
    match relation:
        case InnerJoin():
            return (inner_join.from_left, inner_join.from_right)[number](relation, change_of)
        case LookupJoin(left=left, right=right, keys=keys) if keys:
            left_keys, right_keys = zip(*keys, strict=True)
            met = KeysOf(((Held(change_of(right)), right_keys),))
            return matching(left, OLD, left_keys, met)
    return change_of(relation)


def _is_simple(relation: Node) -> bool:
    """Its change is that of one source, row by row."""
    while isinstance(relation, RowWise):
        relation = relation.child
    return isinstance(relation, Scan)


def _owned(on: Places, side: Node) -> dict[int, int]:
    ids = {column.id for column in side.columns}
    return {i: c for i, c in on.items() if c in ids}


def _across(on: Places, partner: Mapping[int, int]) -> dict[int, int]:
    return {i: partner[c] for i, c in on.items() if c in partner}
