"""SQL text or a DataFrame → analyzed plan. Nothing is executed: a command is refused, not run."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_trickle.catalyst.plan import Plan, Planner, items, kind_of, walk
from spark_trickle.catalyst.spark_errors import query_error
from spark_trickle.errors import QueryError

_COMMANDS = (
    "org.apache.spark.sql.catalyst.plans.logical.Command",
    "org.apache.spark.sql.catalyst.plans.logical.ParsedStatement",
)


def analyze_text(planner: Planner, query: str) -> Plan:
    """The analyzed plan of one SELECT statement."""
    if not query.strip().strip(";").strip():
        raise QueryError("The query is empty.", hint="Give one SELECT statement.", code="EMPTY_QUERY")
    try:
        parsed = planner.session.sessionState().sqlParser().parsePlan(query)
        _refuse_commands(planner, parsed)
        plan = planner.analyzed(planner.frame(parsed))
    except PySparkException as error:
        raise query_error(error) from None
    _refuse_temporary(plan)
    return planner.expressions.EliminatePipeOperators.apply(plan)  # |> is only another way to write it


def analyze_frame(planner: Planner, frame: DataFrame) -> Plan:
    """The analyzed plan of a DataFrame."""
    if frame.isStreaming:
        raise QueryError(
            "A streaming DataFrame cannot define a stream table.",
            hint="Read the tables with spark.read or spark.table.",
            code="STREAMING_QUERY",
        )
    return planner.analyzed(frame)


def analyze_function(planner: Planner, build: Callable[[], DataFrame]) -> Plan:
    """The analyzed plan of the DataFrame that a function builds."""
    try:
        plan = analyze_frame(planner, build())
    except PySparkException as error:
        raise query_error(error) from None
    _refuse_temporary(plan)
    return plan


def all_plans(plan: Plan) -> list[Plan]:
    """Every node of a plan, those of subqueries included."""
    found: list[Plan] = []
    for node in walk(plan):
        found.append(node)
        for subquery in items(node.subqueries()):
            found.extend(all_plans(subquery))
    return found


def _refuse_commands(planner: Planner, parsed: Plan) -> None:
    commands = [planner.jvm.java.lang.Class.forName(name) for name in _COMMANDS]
    for node in walk(parsed):
        for command in commands:
            if command.isInstance(node):
                raise QueryError(
                    f"A stream table is defined by a SELECT; this is {kind_of(node)}.",
                    hint="Give the SELECT alone, without CREATE, INSERT or other commands.",
                    code="NOT_A_SELECT",
                )


def _refuse_temporary(plan: Plan) -> None:
    for node in all_plans(plan):
        if kind_of(node) == "View" and node.isTempView():
            raise QueryError(
                f"The query reads the temporary view `{node.desc().identifier().table()}`.",
                hint="Create it as a permanent view: CREATE VIEW … AS ….",
                code="TEMPORARY_VIEW",
            )
