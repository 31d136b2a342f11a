"""Project, filter, generate, expand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_trickle.algebra.relations import Node, RowWise


def change(node: RowWise, change_of: Callable[[Node], Node]) -> Node:
    """Δ f(R) = f(ΔR).

    f looks at one row at a time, so it commutes with adding and removing rows.
    """
    return replace(node, child=change_of(node.child))
