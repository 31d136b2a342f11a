"""Anything of which nothing better is known below the root: unknown operators, LIMIT, recursive queries."""

from __future__ import annotations

from spark_trickle.algebra.relations import NEW, OLD, At, Loop, Node, Signed, Sum, Top, Whole


def change(node: Whole | Top | Loop) -> Node:
    """Δ Q(R) = Q(R_new) − Q(R_old)."""
    return Sum((Signed(At(node, NEW), +1), Signed(At(node, OLD), -1)))
