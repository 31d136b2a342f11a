"""Project, filter, generate, expand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_trickle.algebra.relations import LookupJoin, Net, Node, RowWise
from spark_trickle.algebra.repeatable import repeatability


def change(node: RowWise, change_of: Callable[[Node], Node]) -> Node:
    """Δ f(R) = f(ΔR).

    f looks at one row at a time, so it commutes with adding and removing rows. Where a value that all rows look at has
    changed, every row is removed and added; once the value itself is dropped, most of them are the same again.
    """
    changed = replace(node, child=change_of(node.child))
    return Net(changed) if drops_what_all_look_at(node) else changed


def drops_what_all_look_at(node: RowWise) -> bool:
    """The projection above a comparison with an uncorrelated scalar subquery."""
    below: Node = node
    while isinstance(below, RowWise):
        below = below.child
    if not isinstance(below, LookupJoin) or below.keys:
        return False
    looked_at = {c.id for c in below.columns} - {c.id for c in below.left.columns}
    if not looked_at or not node.operator.keeps_rows:
        return False
    read = {c.id for c in node.columns}.union(*node.operator.reads.values())
    passed = set(node.operator.passes.values())
    if (read | passed) & looked_at:
        return False
    doubtful = repeatability(node)
    return not doubtful.columns and not doubtful.rows
