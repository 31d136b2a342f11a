"""Functions of the clock, bound to the instant a refresh is for: a source of one row that changes by itself."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spark_trickle.catalyst.analyze import all_plans
from spark_trickle.catalyst.expressions import expressions_in
from spark_trickle.catalyst.plan import Attribute, Expression, Plan, Planner, children, items, kind_of, output

CLOCK = "clock"
"""The name of the source; the names of tables have three parts."""

NOW = "__st_now"

TIME = frozenset({"CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp"})


def asks_for_time(planner: Planner, plan: Plan) -> bool:
    """True if an operator of the plan asks for the time; inside subqueries too."""
    return planner.contains(plan, "CURRENT_LIKE") and any(_time_functions(node) for node in all_plans(plan))


def _time_functions(plan: Plan) -> list[Expression]:
    """Where the operator itself, not its inputs, asks for the time."""
    parts = (part for e in items(plan.expressions()) for part in expressions_in(e))
    return [part for part in parts if kind_of(part) in TIME]


def join_clock(planner: Planner, plan: Plan) -> Plan:
    """The time as a column of the input of every operator that asks for it."""
    if not planner.contains(plan, "CURRENT_LIKE"):
        return plan
    below = [join_clock(planner, child) for child in children(plan)]
    plan = planner.with_children(plan, below) if below else plan
    asked = _time_functions(plan)
    if not asked:
        return plan
    wanted = output(plan)
    first, *rest = below or [planner.one_row()]
    now = planner.alias(planner.current_timestamp(), NOW)
    found = {part: _from_now(planner, part, now.toAttribute()) for part in asked}
    with_now = planner.project([*output(first), now], first)
    rewritten = planner.with_children(planner.replace_expressions(plan, found), [with_now, *rest])
    if kind_of(plan) in {"Project", "Aggregate"}:
        return rewritten
    return planner.project(wanted, rewritten)


def clock_column(plan: Plan) -> Attribute | None:
    """The column by which a projection adds the time to its input; None for any other plan."""
    if kind_of(plan) == "Project":
        for column in items(plan.projectList()):
            if kind_of(column) == "Alias" and str(column.name()) == NOW:
                return column.toAttribute()
    return None


def at_instant(planner: Planner, plan: Plan, instant: datetime) -> Plan:
    """The plan with the time fixed."""
    return planner.replace_everywhere(plan, {planner.current_timestamp(): planner.timestamp(instant)})


def _from_now(planner: Planner, part: Expression, now: Any) -> Expression:
    match kind_of(part):
        case "CurrentDate":
            return planner.cast(now, "DateType", part.timeZoneId())
        case "LocalTimestamp":
            return planner.cast(now, "TimestampNTZType", part.timeZoneId())
        case _:
            return now
