"""Recursive queries."""

from __future__ import annotations

from collections.abc import Callable

from spark_trickle.algebra.relations import Loop, Node
from spark_trickle.incremental.rules import whole


def change(node: Loop, change_of: Callable[[Node], Node]) -> Node:
    """Δ loop(R) = loop(R_new) − loop(R_old): the recursion is run on both versions."""
    return whole.change(node, change_of)
