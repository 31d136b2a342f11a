"""Dropping what did not change: a term with an unchanged input contributes nothing."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import assert_never

from spark_trickle.algebra.relations import (
    At,
    Changes,
    Concat,
    Held,
    InnerJoin,
    Kept,
    KeysOf,
    LookupJoin,
    Loop,
    Matching,
    Net,
    Node,
    Part,
    Partners,
    PerKey,
    RowWise,
    Scan,
    Signed,
    Sum,
    Top,
    Whole,
)
from spark_trickle.algebra.traverse import sources_of


class Pruner:
    """Prunes plans of one refresh; a node shared by several parents stays one node."""

    def __init__(self, changed: Set[str]) -> None:
        self._changed = changed
        self._nodes: dict[int, Node | None] = {}
        self._keys: dict[int, KeysOf | None] = {}

    def node(self, node: Node) -> Node | None:
        """The plan without its empty parts; None when nothing is left."""
        if id(node) not in self._nodes:
            self._nodes[id(node)] = self._prune(node)
        return self._nodes[id(node)]

    def keys(self, keys: KeysOf) -> KeysOf | None:
        """The key set from the changes that are left; None when it must be empty."""
        if id(keys) not in self._keys:
            found = [(self.node(part), on) for part, on in keys.parts]
            parts = tuple((part, on) for part, on in found if part is not None)
            self._keys[id(keys)] = KeysOf(parts) if parts else None
        return self._keys[id(keys)]

    def _prune(self, node: Node) -> Node | None:
        match node:
            case Changes(scan=scan):
                return node if scan.source in self._changed else None
            case At() | Scan() | Whole() | Top() | Loop():
                return node
            case Signed(child=At(relation=relation)):
                # Q(new) and Q(old) come as a pair; without a change below they cancel.
                return node if sources_of(relation) & self._changed else None
            case RowWise(child=child) | Signed(child=child):
                inner = self.node(child)
                return inner and replace(node, child=inner)
            case InnerJoin(left=left, right=right) | LookupJoin(left=left, right=right):
                first, second = self.node(left), self.node(right)
                # A lookup's right side may be restricted to no key at all; its left side decides.
                return first and second and replace(node, left=first, right=second)
            case Concat(children=children) | PerKey(children=children):
                return self._of_children(node, children)
            case Held(child=child, keys=keys):
                below = self.node(child)
                return below and Held(below, self.keys(keys) if keys else None)
            case Matching(child=child, keys=keys):
                below, kept = self.node(child), self.keys(keys)
                return replace(node, child=below, keys=kept) if below and kept else None
            case Partners(left=left, change=change):
                met = self.node(change)
                return met and replace(node, change=met)
            case Sum(changes=changes):
                terms = tuple(t for t in map(self.node, changes) if t is not None)
                return Sum(terms) if terms else None
            case Net(change=change) | Part(change=change):
                netted = self.node(change)
                return netted and replace(node, change=netted)
            case Kept(rows=rows, removed=removed):
                before, gone = self.node(rows), self.node(removed)
                return replace(node, rows=before, removed=gone) if before and gone else before
        assert_never(node)

    def _of_children(self, node: Concat | PerKey, children: tuple[Node, ...]) -> Node | None:
        kept = [self.node(child) for child in children]
        if isinstance(node, PerKey):
            # All children share one key set, so they are pruned together or not at all.
            present = tuple(child for child in kept if child is not None)
            return replace(node, children=present) if len(present) == len(children) else None
        if all(child is None for child in kept):
            return None
        return replace(node, children=tuple(child for child in kept if child is not None))
