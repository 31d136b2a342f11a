"""Anything of which nothing better is known."""

from __future__ import annotations

from collections.abc import Callable

from spark_trickle.algebra.relations import NEW, OLD, At, Loop, Node, Signed, Sum, Whole


def change(node: Whole | Loop, _change_of: Callable[[Node], Node]) -> Node:
    """Δ Q(R) = Q(R_new) − Q(R_old)."""
    return Sum((Signed(At(node, NEW), +1), Signed(At(node, OLD), -1)))
