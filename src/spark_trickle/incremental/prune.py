"""What this refresh can do without: terms of unchanged inputs, and keys for sources that are read whole anyway."""

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
from spark_trickle.incremental.whole import Narrowed


class Pruner:
    """Prunes plans of one refresh; a node shared by several parents stays one node."""

    def __init__(self, changed: Set[str], small: Set[str] = frozenset()) -> None:
        """`changed`: the sources that did; `small`: those that may be read whole instead of by keys."""
        self._changed = changed
        self._narrowed = Narrowed(small)
        self._nodes: dict[int, Node | None] = {}
        self._keys: dict[int, KeysOf | None] = {}

    def node(self, node: Node) -> Node | None:
        """The plan without what it can do without; None when nothing is left."""
        self._narrowed.add(node)
        return self._node(node)

    def keys(self, keys: KeysOf) -> KeysOf | None:
        """The key set from the changes that are left; None when it must be empty."""
        self._narrowed.add(keys)
        return self._key_set(keys)

    def _node(self, node: Node) -> Node | None:
        if id(node) not in self._nodes:
            self._nodes[id(node)] = self._prune(node)
        return self._nodes[id(node)]

    def _key_set(self, keys: KeysOf) -> KeysOf | None:
        if id(keys) not in self._keys:
            found = [(self._node(part), on) for part, on in keys.parts]
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
                inner = self._node(child)
                return inner and replace(node, child=inner)
            case InnerJoin(left=left, right=right) | LookupJoin(left=left, right=right):
                first, second = self._node(left), self._node(right)
                # A lookup's right side may be restricted to no key at all; its left side decides.
                return first and second and replace(node, left=first, right=second)
            case Concat(children=children) | PerKey(children=children):
                return self._of_children(node, children)
            case Held(child=child, keys=keys):
                below = self._node(child)
                return below and Held(below, self._key_set(keys) if keys else None)
            case Matching(child=child, keys=keys) if self._narrowed.is_dispensable(node):
                return child if self._key_set(keys) else None
            case Matching(child=child, keys=keys):
                below, kept = self._node(child), self._key_set(keys)
                return replace(node, child=below, keys=kept) if below and kept else None
            case Partners(change=change, sides=sides):
                # All but the change are relations at a version: nothing can be left out of those.
                met = self._node(change)
                both = tuple(side for side in map(self._node, sides) if side is not None)
                return met and replace(node, change=met, sides=both)
            case Sum(changes=changes):
                terms = tuple(t for t in map(self._node, changes) if t is not None)
                return Sum(terms) if terms else None
            case Net(change=change) | Part(change=change):
                netted = self._node(change)
                return netted and replace(node, change=netted)
            case Kept(rows=rows, removed=removed):
                before, gone = self._node(rows), self._node(removed)
                return replace(node, rows=before, removed=gone) if before and gone else before
        assert_never(node)

    def _of_children(self, node: Concat | PerKey, children: tuple[Node, ...]) -> Node | None:
        kept = [self._node(child) for child in children]
        if isinstance(node, PerKey):
            # All children share one key set, so they are pruned together or not at all.
            present = tuple(child for child in kept if child is not None)
            return replace(node, children=present) if len(present) == len(children) else None
        if all(child is None for child in kept):
            return None
        return replace(node, children=tuple(child for child in kept if child is not None))
