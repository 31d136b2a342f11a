"""JVM logical plans behind one wrapper: everything that planning needs of Catalyst.

Plans and expressions are opaque Java objects here (`Plan`, `Expression`); nobody outside this package
touches their methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property, reduce
from typing import Any

from py4j.clientserver import ClientServer
from pyspark.sql import DataFrame, SparkSession

from spark_trickle.catalyst.compiled import new
from spark_trickle.catalyst.few_rows import FOR_FEW_ROWS
from spark_trickle.catalyst.java import java, scala_object, scala_seq
from spark_trickle.catalyst.later import Later, later, texts
from spark_trickle.names import WEIGHT

Plan = Any
Expression = Any
Attribute = Any

_FEW = 16
_KIND = "__st_kind"
"""Where the class of a JVM object is noted once it is known."""
_SPREADING = (
    "AGGREGATE",
    "DISTINCT_LIKE",
    "EXCEPT",
    "GENERATE",
    "INTERSECT",
    "JOIN",
    "SORT",
    "UNION",
    "WINDOW",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Planner:
    """Catalyst of one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm = java(spark)
        self.session: Any = spark._jsparkSession
        self.logical = self.jvm.org.apache.spark.sql.catalyst.plans.logical
        self.expressions = self.jvm.org.apache.spark.sql.catalyst.expressions
        self.none = self.jvm.scala.Option.empty()
        self._empty = _made(self.seq([]))
        self._constants: dict[str, Expression] = {}
        self._memo: dict[tuple[int, str], tuple[object, Any]] = {}

    def memo(self, of: object, what: str, find: Callable[[], Any]) -> Any:
        """Something that stays the same for a part of a definition, found out once: asking the JVM takes time."""
        key = (id(of), what)
        if key not in self._memo:
            self._memo[key] = (of, _made(find()))  # kept alive: ids are only unique among living objects
        return self._memo[key][1]

    # Scala collections

    def seq(self, values: Iterable[Any]) -> Any:
        return scala_seq(self.jvm, values)

    def mapping(self, pairs: Iterable[tuple[Any, Any]]) -> Any:
        """A Scala map: usable wherever Catalyst wants a partial function."""
        table = self.jvm.java.util.HashMap()
        for key, value in pairs:
            table.put(key, value)
        return self.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(table)

    def some(self, value: Any) -> Any:
        return self.jvm.scala.Some(value)

    # Frames and plans

    def frame(self, plan: Plan) -> DataFrame:
        return DataFrame(self.jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.session, plan), self.spark)

    def analyzed(self, frame: DataFrame) -> Plan:
        return later(frame._jdf).queryExecution().analyzed()

    def view_text(self, name: str) -> str:
        """The text of a view as the session's catalog has it now; empty when there is none."""
        table = self._catalog_entry(name)
        return "" if table is None or table.viewText().isEmpty() else str(table.viewText().get())

    def table_location(self, name: str) -> str:
        """Where a named table lies now; empty for a table that has no name or is not there."""
        table = None if name.startswith("delta.") else self._catalog_entry(name)
        return "" if table is None else str(table.location().toString())

    def _catalog_entry(self, name: str) -> Any:
        state = self.session.sessionState()
        *space, table = items(state.sqlParser().parseMultipartIdentifier(name))
        identifier = self.jvm.org.apache.spark.sql.catalyst.TableIdentifier(
            table, *(self.jvm.scala.Option.apply(part) for part in reversed(space))
        )
        catalog = state.catalog()
        return catalog.getTableMetadata(identifier) if catalog.tableExists(identifier) else None

    # Building

    def new_id(self) -> Any:
        return self.expressions.NamedExpression.newExprId()

    def alias(self, child: Expression, name: str, expr_id: Any = None) -> Expression:
        qualifier = metadata_keys = self._empty
        return self.expressions.Alias(
            child, name, expr_id or self.new_id(), qualifier, self.none, metadata_keys
        )

    def literal(self, value: int) -> Expression:
        """A BIGINT; py4j would hand a small one over as an Integer, so Spark's parser makes it."""
        return self._parsed(f"{value}L")

    def literal_int(self, value: int) -> Expression:
        """An INT."""
        return self._parsed(f"{value}")

    def _parsed(self, constant: str) -> Expression:
        return self._constant(constant, lambda: self._parser().parseExpression(constant))

    def _type_of(self, ddl: str) -> Any:
        return self._constant(f"type {ddl}", lambda: self._parser().parseDataType(ddl))

    def _constant(self, name: str, find: Callable[[], Any]) -> Any:
        if name not in self._constants:
            self._constants[name] = _made(find())
        return self._constants[name]

    def _parser(self) -> Any:
        return self.session.sessionState().sqlParser()

    def null(self, data_type: Any) -> Expression:
        return self.expressions.Literal.create(None, data_type)

    def timestamp(self, instant: datetime) -> Expression:
        """A TIMESTAMP; to the microsecond."""
        micros = (instant - _EPOCH) // timedelta(microseconds=1)
        return self.expressions.Literal.create(micros, self._type("TimestampType"))

    def current_timestamp(self) -> Expression:
        return self.expressions.CurrentTimestamp()

    def cast(self, child: Expression, type_name: str, time_zone: Any) -> Expression:
        """A cast that cannot fail, in a time zone."""
        return self.expressions.Cast(child, self._type(type_name), time_zone)

    def cast_to(self, child: Expression, ddl: str) -> Expression:
        """A cast between numbers."""
        return self.expressions.Cast(child, self._type_of(ddl), self.none)

    def try_cast(self, child: Expression, data_type: Any) -> Expression:
        """A cast that gives NULL where the value does not fit."""
        mode = self._constant("TRY", self.expressions.EvalMode.TRY)
        return self.expressions.Cast(child, data_type, self.none, mode)

    def try_cast_to(self, child: Expression, ddl: str) -> Expression:
        return self.try_cast(child, self._type_of(ddl))

    def _type(self, name: str) -> Any:
        return getattr(getattr(self.jvm.org.apache.spark.sql.types, f"{name}$"), "MODULE$")

    def one_row(self) -> Plan:
        """One row without columns."""
        return self.logical.OneRowRelation()

    def empty(self, attributes: Any) -> Plan:
        """No rows, of these columns (a Scala sequence)."""
        return self.logical.LocalRelation(attributes, self._empty, False, self.none)

    def project(self, columns: Sequence[Expression], child: Plan) -> Plan:
        return self.logical.Project(self.seq(columns), child)

    def limit(self, rows: int, child: Plan) -> Plan:
        number = self.literal_int(rows)
        return self.logical.GlobalLimit(number, self.logical.LocalLimit(number, child))

    def filter(self, condition: Expression, child: Plan) -> Plan:
        return self.logical.Filter(condition, child)

    def join(self, left: Plan, right: Plan, join_type: str, condition: Expression | None) -> Plan:
        return self.join_as(left, right, self.join_type(join_type), condition)

    def join_as(self, left: Plan, right: Plan, join_type: Any, condition: Expression | None) -> Plan:
        wrapped = self.none if condition is None else self.some(condition)
        return self.logical.Join(left, right, join_type, wrapped, self.logical.JoinHint.NONE())

    def join_type(self, name: str) -> Any:
        return getattr(getattr(self.jvm.org.apache.spark.sql.catalyst.plans, f"{name}$"), "MODULE$")

    def union(self, plans: Sequence[Plan]) -> Plan:
        return plans[0] if len(plans) == 1 else self.logical.Union(self.seq(plans), False, False)

    def repeated(self, change: Plan) -> Plan:
        """Every row of a change as often as its weight says, with its weight in one more column."""
        weight = change.output().last()
        size = self.cast_to(self.absolute(weight), "int")
        copies = self.expressions.Explode(self.expressions.ArrayRepeat(weight, size))
        unit = self.alias(weight, WEIGHT).toAttribute()
        return self.logical.Generate(copies, self._empty, False, self.none, self.seq([unit]), change)

    def expanded(self, lists: Sequence[Sequence[Expression]], child: Plan) -> Plan:
        """Several rows for each, one a list of expressions; the lists have the same types."""
        columns = [self.alias(e, f"c{i}").toAttribute().withNullability(True) for i, e in enumerate(lists[0])]
        return self.logical.Expand(self.seq([self.seq(one) for one in lists]), self.seq(columns), child)

    def gathered(self, plan: Plan) -> Plan:
        """Rows at hand in one partition, so that they are grouped without an exchange; other plans as they are."""
        return self.in_one(plan) if self.is_at_hand(plan) else plan

    def in_one(self, plan: Plan) -> Plan:
        """All its rows in one partition."""
        return self.logical.Repartition(1, False, plan)

    def spread(self, plan: Plan) -> Plan:
        """The rows of a change as ones that no longer are at hand: what is done with them is done by jobs."""
        frame = self.frame(plan)._jdf
        made = later(scala_object(self.jvm.org.apache.spark.sql.execution, "LogicalRDD"))
        rows = made.fromDataset(frame.queryExecution().toRdd(), frame, False)
        return self.readdress(rows, output(plan)[:-1], weight=True)

    @cached_property
    def driver(self) -> Planner:
        """For plans over few rows that the driver holds: the same session, but nothing is spread or broadcast."""
        other = Planner(SparkSession(self.spark.sparkContext, self.session.cloneSession()))
        for name, value in FOR_FEW_ROWS.items():
            other.spark.conf.set(name, value)
        return other

    @cached_property
    def settings_for_tasks(self) -> Any:
        """The session's settings as properties of a task: operators ask for some of them only while they run."""
        every = self.session.sessionState().conf().getAllConfs()
        properties = self.jvm.java.util.Properties()
        properties.putAll(self.jvm.scala.jdk.javaapi.CollectionConverters.asJava(every))
        return properties

    @contextmanager
    def in_jobs(self) -> Iterator[None]:
        """Jobs that this thread starts see the session's settings, as they do when Spark itself starts them."""
        # Without a thread of its own in the JVM, the properties would be those of others.
        if not isinstance(self.spark.sparkContext._gateway, ClientServer):
            yield
            return
        context = self.spark.sparkContext._jsc.sc()
        before = context.getLocalProperties()
        own = before.clone()
        own.putAll(self.settings_for_tasks)
        context.setLocalProperties(own)
        try:
            yield
        finally:
            context.setLocalProperties(before)

    @cached_property
    def rows(self) -> Any:
        """Evaluates plans over rows at hand in the calling thread."""
        patterns = self.jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        spreading = _made(self.seq([getattr(patterns, name)() for name in _SPREADING]))
        gateway: Any = self.spark.sparkContext._gateway
        return new(gateway, "Rows", self.session, self.settings_for_tasks, spreading)

    def is_at_hand(self, plan: Plan) -> bool:
        """All its rows come from relations that the driver holds."""
        return all(kind == "LocalRelation" for kind in kinds_of(items(later(plan).collectLeaves())))

    def distinct(self, plan: Plan) -> Plan:
        return self.logical.Distinct(plan)

    def equal_null_safe(self, left: Expression, right: Expression) -> Expression:
        return self.expressions.EqualNullSafe(left, right)

    def equal(self, left: Expression, right: Expression) -> Expression:
        return self.expressions.EqualTo(left, right)

    def is_null(self, value: Expression) -> Expression:
        return self.expressions.IsNull(value)

    def negation(self, condition: Expression) -> Expression:
        return self.expressions.Not(condition)

    def is_true(self, condition: Expression) -> Expression:
        """False where it is NULL."""
        return self.equal_null_safe(condition, self._parsed("true"))

    def both(self, one: Expression, other: Expression) -> Expression:
        return self.expressions.And(one, other)

    def any_of(self, conditions: Sequence[Expression]) -> Expression | None:
        return reduce(self.expressions.Or, conditions) if conditions else None

    def either(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        return self.expressions.If(condition, yes, no)

    def only_if(self, condition: Expression, value: Expression) -> Expression:
        """NULL elsewhere, where the value is not computed."""
        return self.either(condition, value, self.null(value.dataType()))

    def first_present(self, *values: Expression) -> Expression:
        """The first that is not NULL."""
        return self.expressions.Coalesce(self.seq(values))

    def negated(self, value: Expression) -> Expression:
        return self.expressions.UnaryMinus(value, True)

    def absolute(self, value: Expression) -> Expression:
        return self.expressions.Abs(value, True)

    def unequal(self, left: Expression, right: Expression) -> Expression:
        return self.expressions.Not(self.expressions.EqualTo(left, right))

    def sum_of(self, value: Expression) -> Expression:
        return self.expressions.aggregate.Sum(value).toAggregateExpression()

    def aggregate(self, keys: Any, columns: Any, child: Plan) -> Plan:
        """GROUP BY; both lists are Scala sequences."""
        return self.logical.Aggregate(keys, columns, child, self.none)

    def less(self, left: Expression, right: Expression) -> Expression:
        return self.expressions.LessThan(left, right)

    def plus(self, left: Expression, right: Expression) -> Expression:
        return self.expressions.Add(left, right)

    def times(self, left: Expression, right: Expression) -> Expression:
        return self.expressions.Multiply(left, right)

    def divided(self, left: Expression, right: Expression) -> Expression:
        return self.expressions.Divide(left, right)

    def all_of(self, conditions: Sequence[Expression]) -> Expression | None:
        return reduce(self.expressions.And, conditions) if conditions else None

    def readdress(self, plan: Plan, targets: Sequence[Attribute], weight: bool = False) -> Plan:
        """The plan with its columns, in order, under the names and ids of `targets`; the weight follows."""
        own = output(plan)
        columns = [
            self.alias(have, want.name(), want.exprId())
            for have, want in zip(own[: len(targets)], targets, strict=True)
        ]
        if weight:
            columns.append(self.alias(own[-1], WEIGHT))
        return self.project(columns, plan)

    def under_ids(self, leaf: Plan, attributes: Any) -> Plan | None:
        """A leaf that gives its columns under other ids, which saves a projection; None for other kinds of plan.

        `attributes` is a Scala sequence: one column for each of the leaf's, of the same type.
        """
        match kind_of(leaf):
            case "LocalRelation":
                return self.logical.LocalRelation(attributes, leaf.data(), False, self.none)
            case "LogicalRelation":
                return leaf.copy(leaf.relation(), attributes, leaf.catalogTable(), False, leaf.stream())
        return None

    def last_to_end(self, plan: Plan, place: int) -> Plan:
        """The plan with the column at `place`, a weight, put behind all others."""
        columns = plan.output()
        others = columns.take(place).appendedAll(columns.drop(place + 1))
        return self.logical.Project(others.appended(columns.apply(place)), plan)

    def contains(self, plan: Plan, pattern: str) -> bool:
        """One of Catalyst's tree patterns occurs in the plan: what asking every node would tell, in one call."""
        patterns = self.jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        return bool(plan.containsPattern(getattr(patterns, pattern)()))

    # Rewriting

    def with_children(self, plan: Plan, children: Sequence[Plan]) -> Plan:
        return later(plan).withNewChildren(self.seq(children))

    def replace_expressions(self, plan: Plan, replacements: Mapping[Expression, Expression]) -> Plan:
        return plan.transformExpressionsUp(self.mapping(replacements.items()))

    def replace_everywhere(self, plan: Plan, replacements: Mapping[Expression, Expression]) -> Plan:
        """The same in every operator below, inside subqueries too."""
        return plan.transformAllExpressionsWithSubqueries(self.mapping(replacements.items()))

    def replace_nodes(self, plan: Plan, replacements: Iterable[tuple[Plan, Plan]]) -> Plan:
        """Every occurrence of a node replaced, inside subqueries too."""
        return later(plan).transformUpWithSubqueries(self.mapping(replacements))


def _made(found: Any) -> Any:
    """What is kept must be there: if making it fails, nothing may be kept."""
    for one in found if isinstance(found, tuple | list) else (found,):
        if isinstance(one, Later):
            one.made()
        elif one is not found:
            _made(one)
    return found


def items(sequence: Any) -> list[Any]:
    """A Scala sequence as a Python list."""
    size = sequence.size()
    if size > _FEW:
        sequence = sequence.toIndexedSeq()  # a linked list is slow to index
    return [sequence.apply(i) for i in range(size)]


def kind_of(node: Any) -> str:
    """The class name of a plan or expression, without Scala's decorations."""
    if isinstance(node, Later):
        node.kind = node.kind or str(node.getClass().getSimpleName()).rstrip("$")
        return node.kind
    if _KIND not in node.__dict__:
        setattr(node, _KIND, str(later(node).getClass().getSimpleName()).rstrip("$"))
    return str(getattr(node, _KIND))


def of_kind(kind: str, node: Any) -> Any:
    """A node whose class is known."""
    if isinstance(node, Later):
        node.kind = kind
    else:
        setattr(node, _KIND, kind)
    return node


def kinds_of(nodes: Sequence[Any]) -> list[str]:
    """The same for several, by one call."""
    return [kind.rstrip("$") for kind in texts(nodes, "getClass", "getSimpleName")]


def children(plan: Plan) -> list[Plan]:
    return items(later(plan).children())


def output(plan: Plan) -> list[Attribute]:
    return items(later(plan).output())


def distinct_keys(plan: Plan) -> list[frozenset[int]]:
    """Sets of columns, by id, that tell any two different rows apart; Spark knows some, all columns always do."""
    known = [items(key.toSeq()) for key in items(plan.distinctKeys().toSeq())]
    plain = [key for key in known if all(kind_of(e) == "AttributeReference" for e in key)]
    return [frozenset(map(column_id, key)) for key in [*plain, output(plan)]]


def column_ids(attributes: Sequence[Attribute]) -> list[int]:
    """The ids of several columns, by one call."""
    return [int(text) for text in texts(attributes, "exprId", "id")]


def column_id(attribute: Attribute) -> int:
    return int(later(attribute).exprId().id())


def walk(plan: Plan) -> Iterable[Plan]:
    """The plan and everything below it, parents first, subquery plans not included."""
    yield plan
    for child in children(plan):
        yield from walk(child)
