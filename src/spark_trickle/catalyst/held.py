"""Rows held by the driver, in Spark's own binary form: no type is converted on the way.

A held relation is a `LocalRelation`. Spark projects, filters and limits one without a job; what else is done
here with the rows themselves needs none either. Two rows are equal exactly when all their values are stored alike.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_trickle.catalyst.guard import check_time
from spark_trickle.catalyst.in_thread import evaluated, projected
from spark_trickle.catalyst.java import scala_object
from spark_trickle.catalyst.later import active, later
from spark_trickle.catalyst.plan import Attribute, Expression, Plan, Planner, items, kind_of, output
from spark_trickle.names import WEIGHT

_ALL = 2**30


def is_held(plan: Plan | None) -> bool:
    """Held by the driver, or nothing at all."""
    return plan is None or kind_of(plan) == "LocalRelation"


def hold(planner: Planner, rows: DataFrame | Plan, most: int = _ALL) -> Plan | None:
    """The rows of a frame or a plan, or None when there are more than `most`."""
    check_time()
    analyzed = isinstance(rows, DataFrame)
    plan = planner.analyzed(rows) if analyzed else rows
    if is_held(plan):
        return plan if count(plan) <= most else None
    found = evaluated(planner, plan, most, analyzed=analyzed)
    if found is not None:
        return None if isinstance(found, int) else found
    if planner.is_at_hand(plan):
        planner = planner.driver
        limited = planner.rows.limited(plan, analyzed, most)
    else:
        limited = planner.limit(most + 1, plan)
        if analyzed:
            limited.setAnalyzed()  # what was put around it needs nothing of the kind
    execution = planner.frame(limited)._jdf.queryExecution()
    with planner.in_jobs():
        rows = execution.executedPlan().executeCollect()
    data = planner.jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(rows)
    return _relation(planner, execution.analyzed().output(), data) if int(data.size()) <= most else None


def hold_if_free(planner: Planner, plan: Plan) -> Plan | None:
    """The rows of a plan if Spark has them without a job."""
    return projected(planner, plan)


def count(held: Plan) -> int:
    return int(held.data().size())


def copies(planner: Planner, held: Plan) -> int:
    """As how many rows those of a change count, each as often as its weight says."""
    weights = columns_of(planner, held, output(held)[-1:])
    return sum(abs(weight) for weight in arrow_rows(planner, weights).column(0).to_pylist())


def all_differ(held: Plan) -> bool:
    """No row occurs twice."""
    return int(held.data().distinct().size()) == count(held)


def union(planner: Planner, parts: list[Plan]) -> Plan:
    """The rows of several, each once."""
    data = parts[0].data()
    for part in parts[1:]:
        data = data.appendedAll(part.data())
    # One part's values may never be NULL, another's may.
    nullable = [
        a.withNullability(True).withDataType(a.dataType().asNullable()) for a in items(parts[0].output())
    ]
    return _relation(planner, planner.seq(nullable), data.distinct())


def columns_of(planner: Planner, held: Plan, columns: list[Attribute]) -> Plan:
    """Some columns of the rows, in the same order."""
    return _projected(planner, planner.project(columns, held))


def difference(planner: Planner, new: Plan | None, old: Plan | None) -> Plan | None:
    """Rows of two held relations that only one of them has, with weights; None when there are none.

    Not netted: a row that is to be removed twice stands there twice.
    """
    parts = []
    for one, other, sign in ((new, old, 1), (old, new, -1)):
        if one is None:
            continue
        weight = planner.alias(planner.literal(sign), WEIGHT)
        weighted = one.output().appended(weight)
        parts.append(_projected(planner, planner.logical.Project(weighted, only_in(planner, one, other))))
    held = [plan for plan in parts if count(plan)]
    if len(held) < 2:
        return held[0] if held else None
    return _relation(planner, held[0].output(), held[0].data().appendedAll(held[1].data()))


def only_in(planner: Planner, one: Plan, other: Plan | None) -> Plan:
    """The rows of one that the other does not have, or has less often."""
    if other is None:
        return one
    return _relation(planner, one.output(), one.data().diff(other.data()))


def partners(planner: Planner, wanted: Plan, rows: Plan, companions: Plan) -> Plan | None:
    """What lies beside each wanted row; None unless each is among the rows, and none of them or of those twice.

    `rows` and `companions` are two halves of the same rows.
    """
    pairs = rows.data().zip(companions.data())
    table = getattr(planner.jvm.scala.collection.immutable.HashMap, "from")(pairs)
    if int(table.size()) != count(rows) or not all_differ(wanted):
        return None
    found = wanted.data().collect(table)
    if int(found.size()) != count(wanted):
        return None
    return _relation(planner, companions.output(), found)


def values_at(planner: Planner, held: Plan, place: int) -> Any:
    """The values of one column, in the order of the rows, as Spark keeps them inside."""
    jvm = planner.jvm
    places = jvm.org.apache.spark.api.python.PythonUtils.toSeq(
        jvm.java.util.Collections.nCopies(count(held), place)
    )
    data_type = held.output().apply(place).dataType()
    accessor = jvm.org.apache.spark.sql.catalyst.InternalRow.getAccessor(data_type, True)
    return held.data().zip(places).map(accessor.tupled())


def constants(planner: Planner, held: Plan) -> list[Expression] | None:
    """The values of the only row as constants under the names and ids of its columns, NULL where there is none.

    None where they would pass through Python on their way, which knows fewer types of numbers.
    """
    if active() is None:
        return None
    found = []
    for place, column in enumerate(items(held.output())):
        value = later(values_at(planner, held, place)).apply(0) if count(held) else None
        constant = planner.expressions.Literal.create(value, column.dataType())
        found.append(planner.alias(constant, column.name(), column.exprId()))
    return found


def arrow_rows(planner: Planner, held: Plan) -> pa.Table:
    """The rows as a table of this process."""
    jvm = planner.jvm
    converters = scala_object(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters")
    batches = converters.toBatchWithSchemaIterator(
        held.data().iterator(), held.schema(), _ALL, _ALL, "UTC", True, False
    )
    with pa.ipc.open_stream(batches.next()) as reader:
        rows = reader.read_all()
    assert rows.num_rows == count(held)  # noqa: S101 - one batch holds them all, or rows would be lost
    return rows


def _projected(planner: Planner, projection: Plan) -> Plan:
    """A projection of held rows."""
    found = hold_if_free(planner, projection)
    assert found is not None  # noqa: S101 - Spark's rule for this is never switched off in our sessions
    return found


def _relation(planner: Planner, attributes: Any, data: Any) -> Plan:
    return planner.logical.LocalRelation(attributes, data, False, planner.none)
