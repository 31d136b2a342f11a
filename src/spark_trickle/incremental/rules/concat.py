"""UNION ALL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_trickle.algebra.relations import Concat, Node


def change(node: Concat, change_of: Callable[[Node], Node]) -> Node:
    """Δ (R₁ + … + Rₙ) = ΔR₁ + … + ΔRₙ."""
    return replace(node, children=tuple(change_of(child) for child in node.children))
