"""Inner and cross joins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_trickle.algebra.relations import NEW, OLD, At, InnerJoin, Node, Sum


def change(join: InnerJoin, change_of: Callable[[Node], Node]) -> Node:
    """Δ (L ⋈ R) = ΔL ⋈ R_new + L_old ⋈ ΔR.

    Reading the right side new and the left side old counts pairs that changed on both sides once.
    """
    from_left = replace(join, left=change_of(join.left), right=At(join.right, NEW))
    from_right = replace(join, left=At(join.left, OLD), right=change_of(join.right))
    return Sum((from_left, from_right))
