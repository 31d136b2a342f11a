"""Grouped aggregates, DISTINCT, INTERSECT, EXCEPT, partitioned windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_trickle.algebra.relations import NEW, OLD, KeysOf, Node, PerKey, Signed, Sum, Version
from spark_trickle.algebra.restrict import matching


def change(node: PerKey, change_of: Callable[[Node], Node]) -> Node:
    """Δ Q(R) = Q(R_new | S) − Q(R_old | S), S = the keys found in any ΔRᵢ.

    Outside S inputs, hence outputs, are equal. The same S restricts every input at both versions.
    """
    keys = touched_keys(node, change_of)
    added = Signed(restricted(node, NEW, keys), +1)
    removed = Signed(restricted(node, OLD, keys), -1)
    return Sum((added, removed))


def touched_keys(node: PerKey, change_of: Callable[[Node], Node]) -> KeysOf:
    """S: the keys of every changed row of every input."""
    parts = zip(node.children, node.keys, strict=True)
    return KeysOf(tuple((change_of(child), on) for child, on in parts))


def restricted(node: PerKey, version: Version, keys: KeysOf) -> PerKey:
    """Q(R_version | S)."""
    parts = zip(node.children, node.keys, strict=True)
    return replace(node, children=tuple(matching(child, version, on, keys) for child, on in parts))
