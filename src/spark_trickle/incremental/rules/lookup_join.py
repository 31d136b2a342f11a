"""Left outer, semi, anti, existence and single-row joins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_trickle.algebra.relations import (
    NEW,
    OLD,
    At,
    Held,
    KeysOf,
    LookupJoin,
    Net,
    Node,
    Partners,
    Signed,
    Sum,
)
from spark_trickle.algebra.repeatable import repeatability
from spark_trickle.algebra.restrict import matching, partners


def change(join: LookupJoin, change_of: Callable[[Node], Node]) -> Node:
    """Δ J(L, R) = J(ΔL, R_new) + J(L*, R_new) − J(L*, R_old), where L* ⊇ old left rows that may see ΔR.

    J treats each left row on its own, so rows outside L* give the same on both sides and cancel.
    With equalities in the condition L* is found by key; the right side is then read by key as well,
    because a right row with another key meets no row of L*. Without equalities the change is netted
    first: a value that stayed the same, such as an unchanged scalar subquery, must not wake every row.
    """
    change_left, change_right = Held(change_of(join.left)), change_of(join.right)
    left_keys, right_keys = zip(*join.keys, strict=True) if join.keys else ((), ())
    looked_up = partners(join.right, NEW, right_keys, change_left, left_keys)
    from_left = replace(join, left=change_left, right=looked_up)
    if join.keys:
        keys = KeysOf(((Held(change_right), right_keys),))
        touched: Node = Held(matching(join.left, OLD, left_keys, keys), keys)
        new = matching(join.right, NEW, right_keys, keys)
        old = matching(join.right, OLD, right_keys, keys)
        sides: tuple[Node, Node] = (new, old)
    else:
        # Two evaluations of an unrepeatable value may agree with each other but not with what is stored.
        unrepeatable = repeatability(join.right).columns
        touched = Partners(At(join.left, OLD), change_right if unrepeatable else Net(change_right), join)
        sides = (At(join.right, NEW), At(join.right, OLD))
    added = Signed(replace(join, left=touched, right=sides[0]), +1)
    removed = Signed(replace(join, left=touched, right=sides[1]), -1)
    return Sum((from_left, added, removed))
