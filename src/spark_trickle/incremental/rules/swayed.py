"""Rows that are compared with one value for all, such as that of an uncorrelated subquery, which has changed."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

from spark_trickle.algebra.relations import (
    NEW,
    OLD,
    At,
    Held,
    InnerJoin,
    LookupJoin,
    Net,
    Node,
    Partners,
    RowWise,
    Signed,
    Sum,
)
from spark_trickle.algebra.restrict import partners
from spark_trickle.incremental.rules.row_wise import drops_what_all_look_at


def change(node: RowWise, change_of: Callable[[Node], Node]) -> Node | None:
    """Δ π σ J(L, R) = π σ J(ΔL, R_new) + π σ J(L*, R_new) − π σ J(L*, R_old), where L* ⊆ L_old; None: another shape.

    J gives every row of L one value of R, by which σ decides, and π drops it again. So a row about which σ decides alike
    with both values gives the same twice, and L* needs only the others: few, when the value has moved a little.
    """
    decision = node.child
    if not isinstance(decision, RowWise) or not decision.operator.drops_rows:
        return None
    join = decision.child
    if not isinstance(join, LookupJoin) or not join.operator.keeps_rows or join.keys or join.operator.decides:
        return None
    if not drops_what_all_look_at(node):
        return None
    new, old = Held(At(join.right, NEW)), Held(At(join.right, OLD))
    moved = Net(change_of(join.right))

    def swayed(rows: Node) -> Node:
        return Partners(rows, moved, join, decision, (new, old))

    asked = decision.operator.decides & {c.id for c in join.left.columns}
    touched = Held(_only(join.left, asked, swayed))
    from_left = replace(join, left=Held(change_of(join.left)), right=new)
    added = Signed(replace(join, left=touched, right=new), +1)
    removed = Signed(replace(join, left=touched, right=old), -1)
    return Net(replace(node, child=replace(decision, child=Sum((from_left, added, removed)))))


def _only(relation: Node, asked: Set[int], swayed: Callable[[Node], Node]) -> Node:
    """The old rows of a relation that are swayed, where its columns `asked` tell; found before they are joined."""
    match relation:
        case RowWise(child=child) if asked and _passes(relation, asked):
            return replace(relation, child=_only(child, asked, swayed))
        case LookupJoin(left=left) if asked and asked <= _ids(left):
            return _joined(relation, Held(_only(left, asked, swayed)), None)
        case InnerJoin(left=left) if asked and asked <= _ids(left):
            return _joined(relation, Held(_only(left, asked, swayed)), None)
        case InnerJoin(right=right) if asked and asked <= _ids(right):
            return _joined(relation, None, Held(_only(right, asked, swayed)))
    return swayed(At(relation, OLD))


def _joined(join: InnerJoin | LookupJoin, left: Node | None, right: Node | None) -> Node:
    """The join with one side given; of the other, what can meet it."""
    own, other = zip(*join.keys, strict=True) if join.keys else ((), ())
    if left is not None:
        return replace(join, left=left, right=partners(join.right, OLD, other, left, own))
    assert right is not None  # noqa: S101 - one of them is given
    return replace(join, left=partners(join.left, OLD, own, right, other), right=right)


def _passes(node: RowWise, asked: Set[int]) -> bool:
    """It lets all rows through, with these columns as they are; a filter may keep rows from a condition that fails."""
    return node.operator.keeps_rows and all(node.operator.passes.get(column) == column for column in asked)


def _ids(side: Node) -> Set[int]:
    return {column.id for column in side.columns}
