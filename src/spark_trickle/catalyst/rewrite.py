"""Our own rewrites, where Spark has no rule of its own: each keeps the query's answer."""

from __future__ import annotations

from typing import Any

from spark_trickle.catalyst.plan import Plan, Planner, children, column_id, items, kind_of, output


def outer_joins_to_left(planner: Planner, plan: Plan) -> Plan:
    """R RIGHT JOIN is L LEFT JOIN with the columns put back; FULL is (L ⟕ R) + pad(R ▷ L)."""
    inner = [outer_joins_to_left(planner, child) for child in children(plan)]
    if inner:
        plan = planner.with_children(plan, inner)
    if kind_of(plan) != "Join":
        return plan
    join_type = kind_of(plan.joinType())
    if join_type not in {"RightOuter", "FullOuter"}:
        return plan
    left, right = inner
    condition = plan.condition().get() if plan.condition().isDefined() else None
    if join_type == "RightOuter":
        return planner.project(output(plan), planner.join(right, left, "LeftOuter", condition))
    matched = planner.join(left, right, "LeftOuter", condition)
    alone = planner.join(right, left, "LeftAnti", condition)
    padding = [planner.alias(planner.null(a.dataType()), a.name()) for a in output(left)]
    own = [planner.alias(a, a.name()) for a in output(right)]
    padded = planner.project([*padding, *own], alone)
    return planner.union([planner.project(output(plan), matched), padded])


def _with_tie_breakers(planner: Planner, sort: Plan) -> Plan:
    """A Sort whose order is followed by every column it does not name yet."""
    order = items(sort.order())
    named = {column_id(o.child()) for o in order if kind_of(o.child()) == "AttributeReference"}
    rest = [a for a in output(sort) if column_id(a) not in named and _orderable(planner, a)]
    if not rest:
        return sort
    ascending = getattr(planner.jvm.org.apache.spark.sql.catalyst.expressions, "Ascending$")
    direction = getattr(ascending, "MODULE$")
    nulls = direction.defaultNullOrdering()
    more = [planner.expressions.SortOrder(a, direction, nulls, planner.seq([])) for a in rest]
    return planner.logical.Sort(planner.seq([*order, *more]), True, sort.child(), sort.hint())


_LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Offset"})


def limits_decide_ties(planner: Planner, plan: Plan) -> Plan:
    """LIMIT and OFFSET right above their Sort, projections above them; the Sort gets its tie-breakers."""
    below = [limits_decide_ties(planner, child) for child in children(plan)]
    if kind_of(plan) in _LIMITS:
        (child,) = below
        if kind_of(child) == "Project":
            limited = limits_decide_ties(planner, planner.with_children(plan, [child.child()]))
            return planner.with_children(child, [limited])
        below = [_with_tie_breakers(planner, child) if kind_of(child) == "Sort" else child]
    return planner.with_children(plan, below) if below else plan


def carry_columns(planner: Planner, plan: Plan, wanted: list[int]) -> Plan:
    """The same query with more columns at the end: keys of the operator below its projections."""
    kind = kind_of(plan)
    present = {column_id(a): a for a in output(plan)}
    missing = [c for c in wanted if c not in present]
    if kind == "Project":
        child = carry_columns(planner, plan.child(), wanted)
        found = {column_id(a): a for a in output(child)}
        return planner.project([*items(plan.projectList()), *(found[c] for c in missing)], child)
    if kind == "Aggregate" and missing:
        grouping = items(plan.groupingExpressions())
        keys = {column_id(g): g for g in grouping if kind_of(g) == "AttributeReference"}
        columns = [*items(plan.aggregateExpressions()), *(keys[c] for c in missing)]
        return planner.logical.Aggregate(
            plan.groupingExpressions(), planner.seq(columns), plan.child(), plan.hint()
        )
    if missing:
        return planner.with_children(plan, [carry_columns(planner, c, wanted) for c in children(plan)])
    return plan


def _orderable(planner: Planner, attribute: Any) -> bool:
    return bool(planner.expressions.RowOrdering.isOrderable(attribute.dataType()))
