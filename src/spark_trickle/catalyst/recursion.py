"""A recursive query counts its levels, because Spark's limits do, and a change does not start at the first level."""

from __future__ import annotations

from spark_trickle.catalyst.plan import Plan, Planner, column_id, kind_of, output, walk
from spark_trickle.catalyst.rewrite import carry_columns

LEVEL = "__st_level"


def count_levels(planner: Planner, plan: Plan) -> Plan:
    """The recursive query below the root's projections, with the level of each row as its last column."""
    kind = kind_of(plan)
    if kind == "Project":
        return planner.with_children(plan, [count_levels(planner, plan.child())])
    if kind != "UnionLoop":
        return plan
    step = _next_level(planner, plan)
    if step is None:
        return plan
    first = planner.alias(planner.literal(1), LEVEL)
    anchor = planner.project([*output(plan.anchor()), first], plan.anchor())
    level = planner.new_id()
    ids = planner.seq([*(a.exprId() for a in output(plan)), level])
    counted = planner.logical.UnionLoop(plan.id(), anchor, step, ids, plan.limit(), plan.maxDepth())
    return planner.project(output(plan), counted)


def counts_levels(loop: Plan) -> bool:
    return str(output(loop)[-1].name()) == LEVEL


def most_levels(planner: Planner, loop: Plan) -> int:
    """How many levels Spark allows the query; negative for any number."""
    own = loop.maxDepth()
    if own.isDefined():
        return int(own.get())
    return int(planner.spark.conf.get("spark.sql.cteRecursionLevelLimit") or -1)


def _next_level(planner: Planner, loop: Plan) -> Plan | None:
    """The step with the level of its one reference to the query, plus one; None where it does not come through."""
    found = [n for n in walk(loop.recursion()) if kind_of(n) == "UnionLoopRef" and n.loopId() == loop.id()]
    if len(found) != 1:
        return None
    (itself,) = found
    level = planner.alias(planner.literal(1), LEVEL).toAttribute()
    columns = planner.seq([*output(itself), level])
    counting = planner.logical.UnionLoopRef(itself.loopId(), columns, itself.accumulated())
    step = planner.replace_nodes(loop.recursion(), [(itself, counting)])
    carried = carry_columns(planner, step, [column_id(level)])
    if column_id(level) not in {column_id(a) for a in output(carried)}:
        return None
    following = planner.alias(planner.plus(level, planner.literal(1)), LEVEL)
    return planner.project([*output(loop.recursion()), following], carried)
