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
    left, right = Held(change_of(join.left)), Held(change_of(join.right))
    left_keys, right_keys = zip(*join.keys, strict=True) if join.keys else ((), ())
    from_left = replace(join, left=left, right=partners(join.right, NEW, right_keys, left, left_keys))
    from_right = replace(join, left=partners(join.left, OLD, left_keys, right, right_keys), right=right)
    return Sum((from_left, from_right))
