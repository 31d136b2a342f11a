"""Which keys a change touches, from as little as tells: keys too many only mean that more is evaluated again.

A changed row of one side of a join touches only keys that it has itself, in its own columns or in those that the
join equates with them. Where all keys can be told like this nothing is read to find them. For the same reason key
columns may be left out: rows with one order number are all replaced, whatever the order's date was that they are
grouped by as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

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
from spark_trickle.algebra.restrict import across, matching, owned
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
    return Touched(KeysOf(tuple((change_of(child), on) for child, on in parts)), _every(node))


def at_least(node: PerKey, change_of: Callable[[Node], Node]) -> Touched:
    """These keys and perhaps others."""
    return _told(node, _every(node), change_of)


def coarsely(node: PerKey, change_of: Callable[[Node], Node]) -> Touched | None:
    """The same with some of the key columns only, if more inputs can tell those by themselves."""
    places = _chosen(node)
    return None if places == _every(node) else _told(node, places, change_of)


def _told(node: PerKey, places: tuple[int, ...], change_of: Callable[[Node], Node]) -> Touched:
    found: list[tuple[Node, tuple[int, ...]]] = []
    for child, columns in zip(node.children, node.keys, strict=True):
        found += _parts(child, tuple(columns[place] for place in places), change_of)
    return Touched(KeysOf(tuple(found)), places)


def _every(node: PerKey) -> tuple[int, ...]:
    return tuple(range(len(node.keys[0])))


def _chosen(node: PerKey) -> tuple[int, ...]:
    """The places that most inputs can tell without looking at others; all of them if that does not help."""
    every = _every(node)
    if len(node.children) > 1:
        return every
    offers = list(_offers(node.children[0], dict(zip(every, node.keys[0], strict=True))))
    counts = {offer: sum(offer <= other for other in offers) for offer in offers if offer}
    best = max(counts, key=lambda offer: (counts[offer], len(offer)), default=frozenset(every))
    # What two inputs of a join tell is what they are joined by.
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
                (left, owned(on, left) | across(on, {r: lt for lt, r in keys})),
                (right, owned(on, right) | across(on, dict(keys))),
            ]
        case LookupJoin(left=left, right=right, keys=keys):
            # A column of the right side may be NULL for want of a partner.
            own = owned(on, left)
            return [(left, own), (right, across(own, dict(keys)))]
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
    above, below = _row_wise_above(relation)
    own = _through(above, columns)
    inputs = None if own is None else _inputs(below, dict(enumerate(own)))
    told = [len(on) == len(columns) for _, on in inputs or ()]
    if inputs is None or own is None or not any(told) or (not told[0] and isinstance(below, LookupJoin)):
        yield change_of(relation), columns
        return
    for number, (side, on) in enumerate(inputs):
        if told[number]:
            yield from _parts(side, tuple(on[i] for i in range(len(columns))), change_of)
        elif isinstance(below, LookupJoin) and below.keys:
            yield _looking(below, change_of), own
        else:
            yield _under(above, _met(below, number, change_of)), columns


def _met(join: Node, number: int, change_of: Callable[[Node], Node]) -> Node:
    """What a change of one side of a join changes."""
    if isinstance(join, InnerJoin):
        return (inner_join.from_left, inner_join.from_right)[number](join, change_of)
    return change_of(join)


def _looking(join: LookupJoin, change_of: Callable[[Node], Node]) -> Node:
    """The left rows that look at a change of the right side."""
    left_keys, right_keys = zip(*join.keys, strict=True)
    return matching(join.left, OLD, left_keys, KeysOf(((Held(change_of(join.right)), right_keys),)))


def _row_wise_above(relation: Node) -> tuple[list[RowWise], Node]:
    """Projections and filters from the top, and what lies below them; a source stays with its own."""
    above = []
    while isinstance(relation, RowWise) and not _is_simple(relation):
        above.append(relation)
        relation = relation.child
    return above, relation


def _through(above: list[RowWise], columns: tuple[int, ...]) -> tuple[int, ...] | None:
    """The columns below that carry these; None when one of them is computed."""
    for node in above:
        passes = node.operator.passes
        if any(c not in passes for c in columns):
            return None
        columns = tuple(passes[c] for c in columns)
    return columns


def _under(above: list[RowWise], changed: Node) -> Node:
    for node in reversed(above):
        changed = replace(node, child=changed)
    return changed


def _is_simple(relation: Node) -> bool:
    """Its change is that of one source, row by row."""
    while isinstance(relation, RowWise):
        relation = relation.child
    return isinstance(relation, Scan)
