"""`SELECT *` over a stream table means the columns of its query: `__st` is not among them."""

from __future__ import annotations

from typing import Any

from spark_trickle.catalyst.expressions import references
from spark_trickle.catalyst.plan import Plan, Planner, children, column_id, items, kind_of, output, walk
from spark_trickle.names import PREFIX


def without_hidden(planner: Planner, plan: Plan) -> Plan:
    """The query without the hidden columns of what it reads; unchanged where it asks for one by name."""
    if not any(a.name() == PREFIX for leaf in walk(plan) if not children(leaf) for a in output(leaf)):
        return plan
    stripped = _stripped(planner, plan, set())
    whole = stripped.resolved() and all(node.missingInput().isEmpty() for node in walk(stripped))
    return stripped if whole else plan


def _stripped(planner: Planner, plan: Plan, gone: set[int]) -> Plan:
    """`gone` collects the ids of hidden columns on the way up."""
    below = children(plan)
    if not below:
        hidden = {column_id(a) for a in output(plan) if a.name() == PREFIX}
        gone |= hidden
        others = [a for a in output(plan) if column_id(a) not in hidden]
        return planner.project(others, plan) if hidden else plan
    inner = [_stripped(planner, child, gone) for child in below]
    if kind_of(plan) != "Project":
        return planner.with_children(plan, inner)
    named = items(plan.projectList())
    dropped = [e for e in named if _is_hidden(e, gone)]
    gone |= {column_id(e) for e in dropped}
    return planner.project([e for e in named if column_id(e) not in gone], inner[0])


def _is_hidden(named: Any, gone: set[int]) -> bool:
    """The column itself, or the copy of it that a view makes."""
    used = references(named)
    return named.name() == PREFIX and bool(used) and used <= gone
