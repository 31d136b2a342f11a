"""Joins in the longer form, in which no row of one version ever meets a row of the other.

The short forms of `inner_join` and `lookup_join` also evaluate pairs that never coexisted. Those cancel, but an
expression over one of them may raise (`10 / (l.x - r.x)`, a scalar lookup that finds two rows) although the query
itself is fine. Here every pair is one of the old or one of the new version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_trickle.algebra.relations import (
    NEW,
    OLD,
    At,
    InnerJoin,
    Kept,
    KeysOf,
    LookupJoin,
    Matching,
    Net,
    Node,
    Part,
    Partners,
    Signed,
    Sum,
)
from spark_trickle.algebra.repeatable import repeatability
from spark_trickle.algebra.restrict import matching


def of_inner_join(join: InnerJoin, change_of: Callable[[Node], Node]) -> Node:
    """Δ (L ⋈ R) = ΔL⁺ ⋈ R_new − ΔL⁻ ⋈ R_old + Lc ⋈ ΔR, where Lc = L_old − ΔL⁻, the rows that stayed."""
    change_right = change_of(join.right)
    changed = Net(change_of(join.left))
    stayed = _stayed(join, changed, _right_keys(join, change_right))
    return Sum((*_from_left(join, changed), replace(join, left=stayed, right=change_right)))


def of_lookup_join(join: LookupJoin, change_of: Callable[[Node], Node]) -> Node:
    """Δ J(L, R) = J(ΔL⁺, R_new) − J(ΔL⁻, R_old) + J(Lc*, R_new) − J(Lc*, R_old), Lc* ⊇ rows of Lc that may see ΔR."""
    change_right = change_of(join.right)
    changed = Net(change_of(join.left))
    keys = _right_keys(join, change_right)
    touched = _stayed(join, changed, keys)
    sides: tuple[Node, Node] = (At(join.right, NEW), At(join.right, OLD))
    if keys is None:
        unrepeatable = repeatability(join.right).columns
        touched = Partners(touched, change_right if unrepeatable else Net(change_right), join)
    else:
        on = tuple(right for _, right in join.keys)
        sides = (matching(join.right, NEW, on, keys), matching(join.right, OLD, on, keys))
    added = Signed(replace(join, left=touched, right=sides[0]), +1)
    removed = Signed(replace(join, left=touched, right=sides[1]), -1)
    return Sum((*_from_left(join, changed), added, removed))


def can_tell(join: InnerJoin | LookupJoin) -> bool:
    """Which left rows stayed can be told: two evaluations of one give the same."""
    return not repeatability(join.left).columns


def _from_left(join: InnerJoin | LookupJoin, changed: Net) -> tuple[Node, Node]:
    return (
        replace(join, left=Part(changed, +1), right=At(join.right, NEW)),
        replace(join, left=Part(changed, -1), right=At(join.right, OLD)),
    )


def _right_keys(join: InnerJoin | LookupJoin, change_right: Node) -> KeysOf | None:
    return KeysOf(((change_right, tuple(right for _, right in join.keys)),)) if join.keys else None


def _stayed(join: InnerJoin | LookupJoin, changed: Net, keys: KeysOf | None) -> Node:
    """Lc, of which only the rows with these keys are asked for."""
    removed = Part(changed, -1)
    if keys is None:
        return Kept(At(join.left, OLD), removed)
    on = tuple(left for left, _ in join.keys)
    return Kept(matching(join.left, OLD, on, keys), Matching(removed, tuple(enumerate(on)), keys))
