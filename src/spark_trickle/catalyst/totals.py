"""Running totals: an aggregate continued from its stored state and the change of its input.

Every aggregate function is a value computed from totals: counts and sums that add up, extremes, parities. The
totals are aggregates too, so a full refresh computes them with the query itself, in columns of their own. A
refresh evaluates the same aggregates over the added and over the removed rows, merges them with the stored
ones, and computes the values from what comes out, with Spark's own expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from spark_trickle.catalyst.expressions import expressions_in, is_collated
from spark_trickle.catalyst.plan import (
    Attribute,
    Expression,
    Plan,
    Planner,
    column_id,
    items,
    kind_of,
    output,
)

_EXACT_DOUBLE = 2**53
_WIDE = "decimal(20,0)"
"""Holds every integer, and its negative."""
_INTEGERS = frozenset({"byte", "short", "integer", "long", "tinyint", "smallint", "int", "bigint"})


class Merge(Enum):
    """How a total is brought up to date."""

    ADD = "add"
    LEAST = "least"
    GREATEST = "greatest"
    PARITY = "parity"


@dataclass(frozen=True)
class Total:
    """One total of an aggregate."""

    aggregate: Expression
    merge: Merge
    attribute: Attribute
    """The merged value, in the expressions that compute with it."""
    counted_by: int | None = None
    """The total that counts its rows: where that is zero there is no value."""


@dataclass
class RunningTotals:
    """The totals of one aggregate, and how each of its functions is computed from them."""

    planner: Planner
    keys: list[Attribute]
    totals: list[Total] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    """Output columns of the aggregate that hold the totals."""
    limits: list[tuple[int, int]] = field(default_factory=list)
    """Totals that must stay below a limit for the values to be exact."""
    values: dict[Expression, Expression] = field(default_factory=dict)
    rows: int = 0
    """The total that counts all rows of a group."""
    grouped: bool = True
    """A group without rows is none; without GROUP BY there is one row always, `GROUP BY 'constant'` has one or none."""
    plan: Plan = None
    """The aggregate with its totals."""

    # Which totals there are

    def _total(self, function: Expression, merge: Merge, where: Any, counted_by: int | None = None) -> int:
        aggregate = function.toAggregateExpression(False, where)
        for i, known in enumerate(self.totals):
            if known.aggregate.semanticEquals(aggregate):
                return i
        attribute = self.planner.alias(self.planner.null(function.dataType()), f"__st_t{len(self.totals)}")
        self.totals.append(Total(aggregate, merge, attribute.toAttribute(), counted_by))
        return len(self.totals) - 1

    def _count(self, argument: Expression | None, where: Any) -> int:
        """Rows, or those in which the argument is not NULL."""
        if argument is not None and not argument.nullable():
            argument = None
        counted = self.planner.literal_int(1) if argument is None else argument
        function = self.planner.expressions.aggregate.Count(self.planner.seq([counted]))
        return self._total(function, Merge.ADD, where)

    def value_of(self, aggregate: Expression) -> Expression | None:
        """The value of an aggregate function, from totals; None when it has none."""
        function, where = aggregate.aggregateFunction(), aggregate.filter()
        if aggregate.isDistinct():
            return None
        match kind_of(function):
            case "Count":
                return self._attribute(self._total(function, Merge.ADD, where))
            case "Sum" if _adds_exactly(function.child().dataType()):
                return self._present(function, function.child(), Merge.ADD, where)
            case "Average" if _adds_exactly(function.child().dataType()):
                return self._average(function, where)
            case "Min" if not is_collated(function.dataType()) and not _is_float(function.dataType()):
                return self._present(function, function.child(), Merge.LEAST, where)
            case "Max" if not is_collated(function.dataType()) and not _is_float(function.dataType()):
                return self._present(function, function.child(), Merge.GREATEST, where)
            case "BitXorAgg":
                return self._present(function, function.child(), Merge.PARITY, where)
        return None

    def _present(self, function: Expression, argument: Expression, merge: Merge, where: Any) -> Expression:
        """The total itself."""
        return self.value(self._total(function, merge, where, self._count(argument, where)))

    def value(self, number: int) -> Expression:
        """A total as the aggregate it is: NULL where no row had a value."""
        total = self.totals[number]
        if total.counted_by is None:
            return total.attribute
        nothing = self.planner.null(total.attribute.dataType())
        return self.planner.either(self._is_zero(total.counted_by), nothing, total.attribute)

    def _average(self, function: Expression, where: Any) -> Expression:
        """Spark's own last step of AVG, over our sum and count."""
        planner, argument = self.planner, function.child()
        count = self._count(argument, where)
        sums = planner.expressions.aggregate.Sum
        if _is_decimal(argument.dataType()):
            total = self._total(sums(argument), Merge.ADD, where, count)
        else:  # Spark adds integers in DOUBLE, which is exact up to 2^53
            wide = planner.cast_to(argument, _WIDE)
            total = self._total(sums(wide), Merge.ADD, where, count)
            size = self._total(sums(planner.absolute(wide)), Merge.ADD, where, count)
            self.limits.append((size, _EXACT_DOUBLE))
        added, counted = items(function.aggBufferAttributes())
        zero = planner.cast_to(planner.literal_int(0), str(added.dataType().catalogString()))
        own = planner.cast_to(self._attribute(total), str(added.dataType().catalogString()))
        replaced = planner.mapping(
            [(added, planner.first_present(own, zero)), (counted, self._attribute(count))]
        )
        return function.evaluateExpression().transformUp(replaced)

    def _attribute(self, number: int) -> Attribute:
        return self.totals[number].attribute

    def _is_zero(self, number: int) -> Expression:
        return self.planner.equal(self._attribute(number), self.planner.literal(0))

    # The three steps of a refresh

    def of_change(self, change: Plan) -> Plan:
        """The totals of the added and of the removed rows of a change, by group: two columns for each total."""
        planner = self.planner
        units, zero = planner.repeated(planner.gathered(change)), planner.literal(0)
        unit = output(units)[-1]
        parts = []
        for i, total in enumerate(self.totals):
            added, removed = planner.less(zero, unit), planner.less(unit, zero)
            for name, part in (("added", added), ("removed", removed)):
                parts.append(planner.alias(self._only(total.aggregate, part), f"__st_{name}{i}"))
        keys = [planner.alias(key, f"__st_key{i}") for i, key in enumerate(self.keys)]
        return planner.aggregate(planner.seq(self.keys), planner.seq([*keys, *parts]), units)

    def _only(self, aggregate: Expression, condition: Expression) -> Expression:
        """The same aggregate over the rows that fulfil one more condition."""
        where = aggregate.filter()
        both = self.planner.all_of([where.get(), condition] if where.isDefined() else [condition])
        # A function of its own: two that share one also share the columns of their buffers.
        function = aggregate.aggregateFunction().clone()
        return function.toAggregateExpression(False, self.planner.some(both))

    def merged(self, stored: Plan, keys: Sequence[int], totals: Sequence[int], change: Plan) -> Plan:
        """One row a group: its keys, its totals, whether the table holds it, and whether totals alone do not tell.

        `stored` are rows of the table, `keys` and `totals` their places; `change` comes from `of_change`.
        """
        planner, k, n = self.planner, len(self.keys), len(self.totals)
        own, given = output(stored), output(change)
        yes, no = planner.literal_int(1), planner.literal_int(0)
        before = [own[i] for i in totals]
        lacking = self._lacking(before)
        branches = [(stored, [own[i] for i in keys], before, [None] * n, yes, lacking)]
        added = [given[k + 2 * i] for i in range(n)]
        removed = [given[k + 2 * i + 1] for i in range(n)]
        less = [
            planner.negated(self._summand(t, r)) if t.merge is Merge.ADD else r
            for t, r in zip(self.totals, removed, strict=True)
        ]
        for signed, gone in ((added, [None] * n), (less, removed)):
            branches.append((change, given[:k], signed, gone, no, no))
        union = planner.gathered(
            planner.union([self._branch(number, *b) for number, b in enumerate(branches)])
        )
        return self._combined(union)

    def _branch(
        self,
        number: int,
        source: Plan,
        keys: Sequence[Expression],
        values: Sequence[Expression],
        gone: Sequence[Expression | None],
        known: Expression,
        lacking: Expression,
    ) -> Plan:
        planner = self.planner
        columns = list(keys)
        for total, value, lost in zip(self.totals, values, gone, strict=True):
            merged = value
            if total.merge is Merge.ADD:
                merged = self._summand(total, value) if number < 2 else value
            elif total.merge is not Merge.PARITY and number == 2:
                merged = planner.null(total.attribute.dataType())
            columns.append(merged)
            if total.merge in {Merge.LEAST, Merge.GREATEST}:
                columns.append(lost if lost is not None else planner.null(total.attribute.dataType()))
                columns.append(value if number == 0 else planner.null(total.attribute.dataType()))
        columns += [known, lacking]
        return planner.project([planner.alias(c, f"c{i}") for i, c in enumerate(columns)], source)

    def _summand(self, total: Total, value: Expression) -> Expression:
        """In a decimal type: integers have a negative each, and sums of sums their room."""
        return value if _is_decimal(total.attribute.dataType()) else self.planner.cast_to(value, _WIDE)

    def _lacking(self, before: Sequence[Expression]) -> Expression:
        """A stored row whose totals do not tell: a sum that went beyond its type."""
        planner = self.planner
        checks = [
            planner.both(
                planner.is_null(before[i]), planner.less(planner.literal(0), before[total.counted_by])
            )
            for i, total in enumerate(self.totals)
            if total.counted_by is not None
        ]
        lacks = planner.any_of(checks)
        one, none = planner.literal_int(1), planner.literal_int(0)
        return none if lacks is None else planner.either(lacks, one, none)

    def _combined(self, union: Plan) -> Plan:
        planner, functions = self.planner, self.planner.expressions.aggregate
        columns = iter(output(union))
        keys = [next(columns) for _ in self.keys]
        named = [planner.alias(c, own.name(), own.exprId()) for c, own in zip(keys, self.keys, strict=True)]
        values, doubts = [], []
        for i, total in enumerate(self.totals):
            column = next(columns)
            match total.merge:
                case Merge.ADD:
                    value = functions.Sum(column)
                case Merge.PARITY:
                    value = functions.BitXorAgg(column)
                case Merge.LEAST:
                    value = functions.Min(column)
                case Merge.GREATEST:
                    value = functions.Max(column)
            values.append(planner.alias(value.toAggregateExpression(), f"v{i}"))
            if total.merge in {Merge.LEAST, Merge.GREATEST}:
                extreme = functions.Min if total.merge is Merge.LEAST else functions.Max
                doubts += [
                    (i, planner.alias(extreme(next(columns)).toAggregateExpression(), f"{what}{i}"))
                    for what in ("gone", "was")
                ]
        flags = [
            planner.alias(functions.Max(next(columns)).toAggregateExpression(), name)
            for name in ("known", "lacking")
        ]
        parts = [*named, *values, *(d for _, d in doubts), *flags]
        grouped = planner.aggregate(planner.seq(keys), planner.seq(parts), union)
        return self._judged(grouped, doubts)

    def _judged(self, grouped: Plan, doubts: Sequence[tuple[int, Expression]]) -> Plan:
        """Totals in their own types; `known`: the table holds the group; `doubtful`: totals alone do not tell."""
        planner = self.planner
        found = output(grouped)
        k, n = len(self.keys), len(self.totals)
        known, lacking = found[-2:]
        values = [
            planner.try_cast(v, t.attribute.dataType())
            for v, t in zip(found[k : k + n], self.totals, strict=True)
        ]
        named = [
            planner.alias(v, t.attribute.name(), t.attribute.exprId())
            for v, t in zip(values, self.totals, strict=True)
        ]
        zero = planner.literal(0)
        wrong = [planner.equal(lacking, planner.literal_int(1))]
        for i, total in enumerate(self.totals):
            if total.counted_by is not None:
                counted = values[total.counted_by]
                wrong.append(planner.both(planner.is_null(values[i]), planner.less(zero, counted)))
            elif total.merge is Merge.ADD:
                wrong += [planner.is_null(values[i]), planner.less(values[i], zero)]
        ends = [d.toAttribute() for _, d in doubts]
        for (i, _), gone, was in zip(doubts[::2], ends[::2], ends[1::2], strict=True):
            least = self.totals[i].merge is Merge.LEAST
            beyond = planner.less(was, gone) if least else planner.less(gone, was)
            kept = planner.both(planner.negation(planner.is_null(was)), beyond)
            wrong.append(planner.both(planner.negation(planner.is_null(gone)), planner.negation(kept)))
        for i, limit in self.limits:
            most = planner.cast_to(planner.literal(limit), str(values[i].dataType().catalogString()))
            wrong.append(planner.less(most, planner.first_present(values[i], most)))
        doubtful = planner.alias(planner.any_of(wrong), "doubtful")
        return planner.project([*found[:k], *named, known, doubtful], grouped)

    def continued(self, aggregate: Plan, groups: Plan) -> Plan:
        """What the aggregate gives for groups whose totals are known: the same columns under the same ids."""
        named = items(aggregate.aggregateExpressions())
        replaced = self.planner.mapping(self.values.items())
        return self.planner.project([e.transformUp(replaced) for e in named], groups)


def running_totals(planner: Planner, aggregate: Plan) -> RunningTotals | None:
    """The totals of an aggregate, which is given their columns; None where a function has no totals."""
    grouping = items(aggregate.groupingExpressions())
    keys = [g for g in grouping if kind_of(g) == "AttributeReference"]
    if any(is_collated(k.dataType()) for k in keys):
        return None
    found = RunningTotals(planner, keys, grouped=bool(grouping))
    named = items(aggregate.aggregateExpressions())
    functions = [e for n in named for e in expressions_in(n) if kind_of(e) == "AggregateExpression"]
    if not functions and not keys:
        return None
    found.rows = found._count(None, planner.none)
    for function in functions:
        value = found.value_of(function)
        if value is None:
            return None
        found.values[function] = value
    _add_columns(planner, found, aggregate, named)
    return found


def _add_columns(planner: Planner, found: RunningTotals, aggregate: Plan, named: list[Expression]) -> None:
    """A column for every total that the query does not show itself."""
    shown = [(n.child(), column_id(n)) for n in named if kind_of(n) == "Alias"]
    added = []
    for i, total in enumerate(found.totals):
        known = [c for e, c in shown if e.semanticEquals(total.aggregate)]
        if not known:
            extra = planner.alias(total.aggregate, f"__st_t{i}")
            found.values[total.aggregate] = found.value(i)
            added.append(extra)
            known = [column_id(extra)]
        found.columns.append(known[0])
    found.plan = planner.logical.Aggregate(
        aggregate.groupingExpressions(),
        planner.seq([*named, *added]),
        aggregate.child(),
        aggregate.hint(),
    )


def _adds_exactly(data_type: Any) -> bool:
    return _is_decimal(data_type) or str(data_type.typeName()) in _INTEGERS


def _is_decimal(data_type: Any) -> bool:
    return str(data_type.typeName()).startswith("decimal")


def _is_float(data_type: Any) -> bool:
    return str(data_type.typeName()) in {"float", "double"}
