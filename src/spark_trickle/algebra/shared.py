"""Which parts of a change are read more than once: those are worth evaluating on their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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


class Sharing:
    """Counts who reads each part of the plans of one refresh."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._known: dict[int, Node | KeysOf] = {}

    def add(self, plan: Node | KeysOf) -> None:
        """One more plan, with everything below it; what is known already is not counted again."""
        waiting = [plan]
        while waiting:
            one = waiting.pop()
            if id(one) in self._known:
                continue
            self._known[id(one)] = one  # ids are only unique among living objects
            for part in parts_of(one):
                self._counts[id(part)] += 1
                waiting.append(part)

    def is_shared(self, node: Node) -> bool:
        return self._counts[id(node)] > 1


def parts_of(node: Node | KeysOf) -> Iterator[Node | KeysOf]:
    """What is read to evaluate it; a key set is read once, whoever asks for it."""
    match node:
        case KeysOf(parts=parts):
            yield from (part for part, _ in parts)
        case Changes() | At() | Scan() | Whole() | Top() | Loop():
            return
        case RowWise(child=child) | Signed(child=child):
            yield child
        case InnerJoin(left=left, right=right) | LookupJoin(left=left, right=right):
            yield from (left, right)
        case Concat(children=children) | PerKey(children=children):
            yield from children
        case Held(child=child, keys=keys):
            yield child
            if keys is not None:
                yield keys
        case Matching(child=child, keys=keys):
            yield from (child, keys)
        case Partners(left=left, change=change, sides=sides):
            yield from (left, change, *sides)
        case Sum(changes=changes):
            yield from changes
        case Net(change=change) | Part(change=change):
            yield change
        case Kept(rows=rows, removed=removed):
            yield from (rows, removed)
        case _:
            assert_never(node)
