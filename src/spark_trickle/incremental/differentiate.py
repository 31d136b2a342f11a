"""The change of a relation: its new answer minus its old answer."""

from __future__ import annotations

from typing import assert_never

from spark_trickle.algebra.relations import (
    At,
    Changes,
    Concat,
    Held,
    InnerJoin,
    Kept,
    LookupJoin,
    Loop,
    Matching,
    Net,
    Node,
    Part,
    Partners,
    PerKey,
    Relation,
    RowWise,
    Scan,
    Signed,
    Sum,
    Top,
    Whole,
)
from spark_trickle.incremental.rules import (
    concat,
    lookup_join,
    met_groups,
    per_key,
    real_pairs,
    row_wise,
    swayed,
    whole,
)


def differentiate(relation: Relation, only_real_pairs: bool = False) -> Node:
    """A plan for the change. Shared parts are one node, so that a builder can evaluate them once.

    With `only_real_pairs`, joins take the longer form in which rows of different versions never meet.
    """
    memo: dict[int, Node] = {}

    def change_of(node: Node) -> Node:
        if id(node) not in memo:
            memo[id(node)] = _rule(node)
        return memo[id(node)]

    def _rule(node: Node) -> Node:
        match node:
            case Scan():
                return Changes(node)
            case RowWise():
                found = None if only_real_pairs else swayed.change(node, change_of)
                return found or row_wise.change(node, change_of)
            case Concat():
                return concat.change(node, change_of)
            case InnerJoin() if only_real_pairs and real_pairs.can_tell(node):
                return real_pairs.of_inner_join(node, change_of)
            case LookupJoin() if only_real_pairs and real_pairs.can_tell(node):
                return real_pairs.of_lookup_join(node, change_of)
            case InnerJoin():
                return met_groups.change(node, change_of)
            case LookupJoin():
                return lookup_join.change(node, change_of)
            case PerKey():
                return per_key.change(node, change_of)
            case Whole() | Top() | Loop():
                return whole.change(node)
            case (
                At()
                | Changes()
                | Matching()
                | Partners()
                | Held()
                | Signed()
                | Sum()
                | Net()
                | Part()
                | Kept()
            ):
                raise TypeError(f"{type(node).__name__} is part of a change already")
        assert_never(node)

    return change_of(relation)
