"""Inner and cross joins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_trickle.algebra.relations import NEW, OLD, Held, InnerJoin, Node, Sum
from spark_trickle.algebra.restrict import partners


def change(join: InnerJoin, change_of: Callable[[Node], Node]) -> Node:
    """Δ (L ⋈ R) = ΔL ⋈ R_new + L_old ⋈ ΔR.

    Each term starts at its change; of the other side only what can meet it is read.
    Reading the right side new and the left side old counts pairs that changed on both sides once.
    """
    return Sum((from_left(join, change_of), from_right(join, change_of)))


def from_left(join: InnerJoin, change_of: Callable[[Node], Node]) -> Node:
    """ΔL ⋈ R_new."""
    changed = Held(change_of(join.left))
    left_keys, right_keys = _equated(join)
    return replace(join, left=changed, right=partners(join.right, NEW, right_keys, changed, left_keys))


def from_right(join: InnerJoin, change_of: Callable[[Node], Node]) -> Node:
    """L_old ⋈ ΔR."""
    changed = Held(change_of(join.right))
    left_keys, right_keys = _equated(join)
    return replace(join, left=partners(join.left, OLD, left_keys, changed, right_keys), right=changed)


def _equated(join: InnerJoin) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(left for left, _ in join.keys), tuple(right for _, right in join.keys)
