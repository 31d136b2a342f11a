"""Grouped aggregates, DISTINCT, INTERSECT, EXCEPT, partitioned windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_trickle.algebra.relations import NEW, OLD, Node, PerKey, Signed, Sum, Version
from spark_trickle.algebra.restrict import matching
from spark_trickle.incremental.rules.touched import Touched, exactly


def change(node: PerKey, change_of: Callable[[Node], Node]) -> Node:
    """Δ Q(R) = Q(R_new | S) − Q(R_old | S), S = the keys found in any ΔRᵢ.

    Outside S inputs, hence outputs, are equal. The same S restricts every input at both versions.
    """
    return change_within(node, exactly(node, change_of))


def change_within(node: PerKey, touched: Touched) -> Node:
    """Q(R_new | S) − Q(R_old | S): the change of the keys in S, whatever they are."""
    added = Signed(restricted(node, NEW, touched), +1)
    removed = Signed(restricted(node, OLD, touched), -1)
    return Sum((added, removed))


def restricted(node: PerKey, version: Version, touched: Touched) -> PerKey:
    """Q(R_version | S)."""
    parts = zip(node.children, node.keys, strict=True)
    children = (matching(child, version, touched.of(on), touched.keys) for child, on in parts)
    return replace(node, children=tuple(children))
