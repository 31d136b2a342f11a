"""From the analyzed plan to a tree without subqueries, by Spark's own rules.

Spark's whole optimizer must not run here: several of its rules bake in the data of one version
(metadata-only answers, empty relations, partition pruning).
"""

from __future__ import annotations

from typing import Any

from spark_trickle.catalyst.plan import Plan, Planner, children, items, kind_of, output, walk
from spark_trickle.catalyst.recursion import count_levels
from spark_trickle.catalyst.rewrite import limits_decide_ties, outer_joins_to_left
from spark_trickle.catalyst.time import join_clock

FINISH = (
    "analysis.EliminateSubqueryAliases",
    "analysis.EliminateView",
    "expressions.EliminatePipeOperators",  # |> inside a view or a subquery
    "optimizer.EliminateResolvedHint",
    "optimizer.EliminateSQLFunctionNode",  # SQL UDFs are inlined plans
    "optimizer.ReplaceExpressions",  # runtime-replaceable functions become what they stand for
    "optimizer.PullOutGroupingExpressions",  # grouping keys become columns
    "optimizer.OptimizeOneRowRelationSubquery",  # (SELECT expression) is the expression
)
"""Once, before and after subqueries are taken apart: what the analyzer leaves for later."""

DECORRELATE = (
    "optimizer.PullupCorrelatedPredicates",
    "optimizer.RewriteCorrelatedScalarSubquery",
    "optimizer.RewriteLateralSubquery",
    "optimizer.RewritePredicateSubquery",  # EXISTS, IN, NOT IN become joins
)
"""Until stable: nested subqueries need several rounds."""

SIMPLIFY = (
    "optimizer.BooleanSimplification",  # (a = b AND …) OR (a = b AND …) is an equality, too
    "optimizer.PushDownPredicates",
    "optimizer.ReorderJoin",  # no product of tables that a later join connects: changes would go through it
    "optimizer.EliminateOuterJoin",
    "optimizer.CollapseProject",
)
"""Until stable: predicates reach their joins, so that equalities are seen and joins follow them."""

PRUNE = ("optimizer.ColumnPruning", "optimizer.CollapseProject")
"""Until stable: a change in a column that nobody reads is no change."""

RULES = (FINISH, DECORRELATE, SIMPLIFY, PRUNE)

_ROUNDS = 20


class NotNormalizable(Exception):  # noqa: N818 - not an error: the query is then maintained as a whole
    """Why a plan cannot be taken apart safely."""


def normalize(planner: Planner, analyzed: Plan) -> Plan:
    """The plan as a tree of plain operators; raises NotNormalizable with the reason."""
    plan = planner.jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True, False).apply(analyzed)
    plan = _once(planner, plan, FINISH)
    for _ in range(_ROUNDS):
        decorrelated = _until_stable(planner, plan, DECORRELATE)
        joined = _once(planner, join_scalar_subqueries(planner, decorrelated), FINISH)
        if joined.fastEquals(plan):
            break
        plan = joined  # what was inside subqueries is part of the plan now, with subqueries of its own
    plan = _until_stable(planner, plan, SIMPLIFY)
    plan = outer_joins_to_left(planner, plan)
    plan = _until_stable(planner, plan, PRUNE)
    plan = limits_decide_ties(planner, plan)  # after pruning, which puts projections below limits
    plan = _without_root_sort(planner, plan)
    plan = count_levels(planner, plan)
    plan = join_clock(planner, plan)
    _check(planner, plan, analyzed)
    return plan


def join_scalar_subqueries(planner: Planner, plan: Plan) -> Plan:
    """Uncorrelated scalar subqueries become single-row joins, from every operator; what is inside them comes later.

    Two copies of a plan must not share a subquery expression: adaptive execution would use one result
    for both. The join keeps "more than one row" an error and "no row" NULL.
    """
    if not planner.contains(plan, "SCALAR_SUBQUERY"):
        return plan
    inner = [join_scalar_subqueries(planner, child) for child in children(plan)]
    if inner:
        plan = planner.with_children(plan, inner)
    found: dict[int, Any] = {}
    for expression in items(plan.expressions()):
        for subquery in _scalar_subqueries(expression):
            found.setdefault(int(subquery.exprId().id()), subquery)
    if not found:
        return plan
    if kind_of(plan) == "Aggregate":
        lower, upper = _split_aggregate(planner, plan)
        if upper is not None:
            project = planner.project(upper, join_scalar_subqueries(planner, lower))
            return join_scalar_subqueries(planner, project)
    wanted = output(plan)
    first, *rest = children(plan)
    replacements = {}
    for subquery in found.values():
        query = subquery.plan()
        value = planner.alias(output(query)[0], "__st_scalar")
        first = planner.join(first, planner.project([value], query), "LeftSingle", None)
        replacements[subquery] = value.toAttribute()
    rewritten = planner.replace_expressions(plan, replacements)
    rewritten = planner.with_children(rewritten, [first, *rest])
    if kind_of(plan) in {"Project", "Aggregate"}:
        return rewritten
    return planner.project(wanted, rewritten)


def _split_aggregate(planner: Planner, plan: Plan) -> tuple[Plan, list[Any] | None]:
    """An aggregate whose subqueries stand beside its functions: functions below, expressions above."""
    outside = [
        e for e in items(plan.aggregateExpressions()) if _scalar_subqueries(e, stop_at_aggregates=True)
    ]
    if not outside:
        return plan, None
    functions: dict[Any, Any] = {}
    for expression in items(plan.aggregateExpressions()):
        for function in _aggregate_functions(expression):
            functions.setdefault(function, planner.alias(function, "__st_value"))
    grouping = items(plan.groupingExpressions())
    keys = [g for g in grouping if kind_of(g) == "AttributeReference"]
    if len(keys) != len(grouping):
        raise NotNormalizable("a scalar subquery stands beside an aggregate with computed grouping keys")
    lower = planner.logical.Aggregate(
        plan.groupingExpressions(), planner.seq([*keys, *functions.values()]), plan.child(), plan.hint()
    )
    table = planner.mapping((f, a.toAttribute()) for f, a in functions.items())
    upper = [e.transformDown(table) for e in items(plan.aggregateExpressions())]
    return lower, upper


def _scalar_subqueries(expression: Any, stop_at_aggregates: bool = False) -> list[Any]:
    kind = kind_of(expression)
    if kind == "ScalarSubquery":
        return [] if expression.isCorrelated() else [expression]
    if stop_at_aggregates and kind == "AggregateExpression":
        return []
    return [
        s for child in items(expression.children()) for s in _scalar_subqueries(child, stop_at_aggregates)
    ]


def _aggregate_functions(expression: Any) -> list[Any]:
    if kind_of(expression) == "AggregateExpression":
        return [expression]
    return [f for child in items(expression.children()) for f in _aggregate_functions(child)]


def _once(planner: Planner, plan: Plan, rules: tuple[str, ...]) -> Plan:
    for rule in rules:
        package, name = rule.split(".")
        plan = getattr(getattr(planner.jvm.org.apache.spark.sql.catalyst, package), name).apply(plan)
    return plan


def _until_stable(planner: Planner, plan: Plan, rules: tuple[str, ...]) -> Plan:
    for _ in range(_ROUNDS):
        after = _once(planner, plan, rules)
        if after.fastEquals(plan):
            return plan
        plan = after
    return plan


def _without_root_sort(planner: Planner, plan: Plan) -> Plan:
    """Rows of a table have no order, so an ORDER BY at the top says nothing."""
    kind = kind_of(plan)
    if kind == "Sort":
        return _without_root_sort(planner, plan.child())
    if kind in {"Project", "Filter"}:
        return planner.with_children(plan, [_without_root_sort(planner, plan.child())])
    return plan


def _check(planner: Planner, plan: Plan, analyzed: Plan) -> None:
    for node in walk(plan):
        if items(node.subqueries()):
            raise NotNormalizable(f"a subquery in {kind_of(node)} cannot be turned into a join")
        if kind_of(node) == "LateralJoin":
            raise NotNormalizable("a LATERAL subquery cannot be turned into a join")
    if planner.contains(plan, "OUTER_REFERENCE"):
        raise NotNormalizable("a correlated subquery cannot be turned into a join")
    have = [(a.name(), a.dataType().catalogString()) for a in output(plan)]
    want = [(a.name(), a.dataType().catalogString()) for a in output(analyzed)]
    if have != want:
        raise NotNormalizable(f"Spark's rules changed the output from {want} to {have}")
    try:
        planner.frame(plan)
    except Exception as error:
        raise NotNormalizable(f"the rewritten plan is refused by Spark ({type(error).__name__})") from error
