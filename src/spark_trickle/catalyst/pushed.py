"""Conditions of a query that a source can be read by, as Spark itself would hand them to one.

Spark's own translation decides which conditions those are; what it does not translate is left to the query, which asks
all of them again. Only values are taken that compare alike everywhere: no binary fractions, no order of texts.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.algebra.comparisons import Check, Comparison, Value
from spark_trickle.catalyst.expressions import conjuncts
from spark_trickle.catalyst.java import scala_object
from spark_trickle.catalyst.plan import Expression, Plan, Planner, kind_of, output

_RULES = (
    "ReplaceExpressions",
    "RewriteWithExpression",
    "ConstantFolding",
    "UnwrapCastInBinaryComparison",
    "LikeSimplification",
    "BooleanSimplification",
)
_TESTS = {
    "EqualTo": Check.EQUAL,
    "LessThan": Check.LESS,
    "LessThanOrEqual": Check.AT_MOST,
    "GreaterThan": Check.MORE,
    "GreaterThanOrEqual": Check.AT_LEAST,
    "In": Check.ONE_OF,
    "StringStartsWith": Check.STARTS_WITH,
    "IsNotNull": Check.PRESENT,
}
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""Among the notes on a column: its texts may be stored otherwise than they compare."""
_OF_TEXT = frozenset({Check.EQUAL, Check.ONE_OF, Check.STARTS_WITH, Check.PRESENT})
_OF_NUMBERS = frozenset(Check) - {Check.STARTS_WITH}
_ORDERED = ("tinyint", "smallint", "int", "bigint", "date", "decimal")


def comparisons(planner: Planner, condition: Expression, leaf: Plan) -> tuple[Comparison, ...]:
    """What a condition on the rows of a source asks of single columns; more may be asked."""
    optimizer = planner.jvm.org.apache.spark.sql.catalyst.optimizer
    filtered = planner.filter(condition, leaf)
    try:
        for name in _RULES:
            filtered = scala_object(optimizer, name).apply(filtered)
    except (
        PySparkException,
        Py4JError,
    ):  # a constant that cannot be computed: the query will say so, if it comes to that
        return ()
    if kind_of(filtered) != "Filter":
        return ()
    columns = [a for a in output(leaf) if not a.metadata().contains(_PADDED)]
    kinds = {str(a.name()): str(a.dataType().catalogString()) for a in columns}
    found = (_comparison(planner, part, kinds) for part in conjuncts(filtered.condition()))
    return tuple(one for one in found if one is not None)


def _comparison(planner: Planner, condition: Expression, kinds: dict[str, str]) -> Comparison | None:
    strategy = scala_object(planner.jvm.org.apache.spark.sql.execution.datasources, "DataSourceStrategy")
    translated = strategy.translateFilter(condition, False)
    if translated.isEmpty():
        return None
    pushed = translated.get()
    check = _TESTS.get(kind_of(pushed))
    if check is None:
        return None
    column = str(pushed.attribute())
    kind = kinds.get(column, "")
    if kind != "string" and not kind.startswith(_ORDERED):
        return None
    if check not in (_OF_TEXT if kind == "string" else _OF_NUMBERS):
        return None
    if check is Check.PRESENT:
        return Comparison(column, check)
    # NULL in a list is equal to nothing; compared with NULL nothing passes, which is left to the query.
    given = [v for v in pushed.values() if v is not None] if check is Check.ONE_OF else [pushed.value()]
    values = [_value(one, kind) for one in given]
    if any(value is None for value in values):
        return None
    return Comparison(column, check, tuple(value for value in values if value is not None))


def _value(given: Any, kind: str) -> Value | None:
    """A value in Python's form; None where it has none of the same meaning."""
    if given is None:
        return None
    if kind == "date":
        text = str(given.toString() if hasattr(given, "toString") else given)
        try:
            return date.fromisoformat(text)
        except ValueError:  # beyond the years that Python knows
            return None
    return given if isinstance(given, Value) and not isinstance(given, bool) else None
