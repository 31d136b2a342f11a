"""Where small sources are read whole: reading by keys costs a Spark job that finds them.

Rows that meet a change are as few as the change, whatever is read beside it. But where the rows of a small source
themselves tell which rows of another one are read, reading all of them would mean reading all of the other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from spark_trickle.algebra.relations import (
    At,
    Changes,
    InnerJoin,
    Kept,
    KeysOf,
    LookupJoin,
    Matching,
    Net,
    Node,
    Part,
    Scan,
    Signed,
    Sum,
)
from spark_trickle.algebra.shared import parts_of


class Narrowed:
    """The restrictions of small sources that other restrictions depend on."""

    def __init__(self, small: Set[str]) -> None:
        self._small = small
        self._seen: dict[tuple[int, bool], Node | KeysOf] = {}
        self._needed: set[int] = set()

    def add(self, plan: Node | KeysOf) -> None:
        """Look through one more plan."""
        self._visit(plan, False)

    def is_dispensable(self, node: Matching) -> bool:
        """The restriction may be left out, and its source read whole."""
        return self._of_small_source(node) and id(node) not in self._needed

    def _of_small_source(self, node: Matching) -> bool:
        if node.needed or not isinstance(node.child, At) or not isinstance(node.child.relation, Scan):
            return False
        return node.child.relation.source in self._small

    def _visit(self, node: Node | KeysOf, decides: bool) -> None:
        """`decides`: the rows tell what is read elsewhere."""
        if (id(node), decides) in self._seen:
            return
        self._seen[id(node), decides] = node  # ids are only unique among living objects
        for part, passes_on in self._parts(node, decides):
            self._visit(part, passes_on)

    def _parts(self, node: Node | KeysOf, decides: bool) -> Iterator[tuple[Node | KeysOf, bool]]:
        match node:
            case KeysOf():
                yield from ((part, True) for part in parts_of(node))
            case Matching(child=child, keys=keys):
                yield child, decides
                if decides:
                    self._needed.add(id(node))
                if not self.is_dispensable(node):
                    yield keys, True
            case InnerJoin(left=left, right=right):
                yield left, decides and not is_change(right)
                yield right, decides and not is_change(left)
            case LookupJoin(left=left, right=right):
                yield left, decides
                yield right, False
            case _:
                yield from ((part, decides) for part in parts_of(node))


def is_change(node: Node) -> bool:
    """Its rows come from a change, so there are few of them."""
    match node:
        case Changes() | Signed() | Sum() | Net() | Part() | Kept():
            return True
        case Matching(child=child):
            return is_change(child)
    return any(is_change(part) for part in parts_of(node) if not isinstance(part, KeysOf))
