"""A join with groups: of the touched groups only those are evaluated that the other side has a partner for.

A change may touch thousands of groups of which a selective other side meets a handful. So the touched keys are looked
for on the other side first, and what is found there tells which groups are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from spark_trickle.algebra.relations import (
    NEW,
    OLD,
    Held,
    InnerJoin,
    KeysOf,
    Node,
    PerKey,
    RowWise,
    Sum,
    Version,
)
from spark_trickle.algebra.restrict import matching
from spark_trickle.incremental.rules import inner_join, per_key
from spark_trickle.incremental.rules.touched import Touched


@dataclass(frozen=True, slots=True)
class _Groups:
    """A side of a join that consists of groups, told by the columns that it is joined by."""

    above: tuple[RowWise, ...]
    groups: PerKey
    places: tuple[int, ...]

    def touched(self, change_of: Callable[[Node], Node]) -> KeysOf:
        parts = zip(self.groups.children, self.groups.keys, strict=True)
        return KeysOf(
            tuple((change_of(child), tuple(own[place] for place in self.places)) for child, own in parts)
        )

    def change(self, keys: KeysOf) -> Node:
        """What changes in the groups of these keys, as rows of the side."""
        changed = per_key.change_within(self.groups, Touched(keys, self.places))
        for node in reversed(self.above):
            changed = replace(node, child=changed)
        return changed


def change(join: InnerJoin, change_of: Callable[[Node], Node]) -> Node:
    """Δ (L ⋈ R) = ΔL ⋈ R_new + L_old ⋈ ΔR, where ΔR need only be right for keys that L_old has, and ΔL for those of R_new.

    L_old ⋈ ΔR = L' ⋈ ΔR|S', with L' the rows of L_old whose keys are touched in R, and S' the keys of L'.
    """
    left_keys, right_keys = zip(*join.keys, strict=True) if join.keys else ((), ())
    left, right = _groups_of(join.left, left_keys), _groups_of(join.right, right_keys)
    if left is None and right is None:
        return inner_join.change(join, change_of)
    from_left = inner_join.from_left(join, change_of)
    if left is not None:
        met, keys = _met(join.right, NEW, right_keys, left.touched(change_of))
        from_left = replace(join, left=left.change(keys), right=met)
    from_right = inner_join.from_right(join, change_of)
    if right is not None:
        met, keys = _met(join.left, OLD, left_keys, right.touched(change_of))
        from_right = replace(join, left=met, right=right.change(keys))
    return Sum((from_left, from_right))


def _met(side: Node, version: Version, columns: tuple[int, ...], touched: KeysOf) -> tuple[Node, KeysOf]:
    """The rows of a side with touched keys, and the keys that they have."""
    rows = Held(matching(side, version, columns, touched), touched)
    return rows, KeysOf(((rows, columns),))


def _groups_of(side: Node, columns: tuple[int, ...]) -> _Groups | None:
    """None for a side that does not consist of groups, or is joined by something else than their keys."""
    above: list[RowWise] = []
    while isinstance(side, RowWise):
        passes = side.operator.passes
        if any(column not in passes for column in columns):
            return None
        columns = tuple(passes[column] for column in columns)
        above.append(side)
        side = side.child
    if not isinstance(side, PerKey) or not columns:
        return None
    passes, first = side.operator.passes, side.keys[0]
    if any(passes.get(column) not in first for column in columns):
        return None
    return _Groups(tuple(above), side, tuple(first.index(passes[column]) for column in columns))
