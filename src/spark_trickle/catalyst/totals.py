"""Running totals: an aggregate continued from its stored state and the change of its input.

Every aggregate function is a value computed from totals: counts and sums that add up, extremes, parities. The
totals are aggregates too, so a full refresh computes them with the query itself, in columns of their own. A
refresh evaluates the same aggregates over the added and over the removed rows, merges them with the stored
ones, and computes the values from what comes out, with Spark's own expressions.
"""

from __future__ import annotations

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
)

_EXACT_DOUBLE = 2**53
WIDE = "decimal(20,0)"
"""Holds every integer, and its negative."""
_MOST_SCALE = 6
_SPREAD = 1000
"""The mean square may be so many times the variance; Spark's own then has more than twelve digits."""
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
    doubts: list[Expression] = field(default_factory=list)
    """Conditions over totals under which values computed from them are not exact."""
    values: dict[Expression, Expression] = field(default_factory=dict)
    rows: int = 0
    """The total that counts all rows of a group."""
    grouped: bool = True
    """A group without rows is none; without GROUP BY there is one row always, `GROUP BY 'constant'` has one or none."""
    plan: Plan = None
    """The aggregate with its totals."""

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
        counted, where = _filtered(self.planner, counted, where)
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
            case "VariancePop" | "VarianceSamp" | "StddevPop" | "StddevSamp":
                return self._moment(function, where)
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
        planner = self.planner
        argument, where = _filtered(planner, function.child(), where)
        count = self._count(argument, where)
        sums = planner.expressions.aggregate.Sum
        if is_decimal(argument.dataType()):
            total = self._total(sums(argument), Merge.ADD, where, count)
        else:  # Spark adds integers in DOUBLE, which is exact up to 2^53
            wide = planner.cast_to(argument, WIDE)
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

    def _moment(self, function: Expression, where: Any) -> Expression | None:
        """Spark's own last step of VAR and STDDEV, over n·Σ(x − mean)² = n·Σx² − (Σx)², which is exact here.

        Spark adds rounded values in any order. Where the spread is small beside the values, or none, it has fewer
        digits than we compare, so such groups are left to it.
        """
        planner, argument = self.planner, function.child()
        if kind_of(argument) == "Cast":  # Spark's own, to DOUBLE
            argument = argument.child()
        if not _adds_exactly(argument.dataType()):
            return None
        scale = int(argument.dataType().scale()) if is_decimal(argument.dataType()) else 0
        if scale > _MOST_SCALE:
            return None
        argument, where = _filtered(planner, argument, where)
        aggregates, fitted = planner.expressions.aggregate, planner.try_cast_to
        short = fitted(argument, f"decimal(13,{scale})")
        count = self._count(argument, where)
        counted = self._total(aggregates.Count(planner.seq([short])), Merge.ADD, where)
        total = self._total(aggregates.Sum(short), Merge.ADD, where, count)
        squares = self._total(aggregates.Sum(planner.times(short, short)), Merge.ADD, where, count)
        n, added = self._attribute(count), fitted(self._attribute(total), f"decimal(18,{scale})")
        squared = fitted(self._attribute(squares), f"decimal(26,{2 * scale})")
        scaled = planner.times(fitted(n, "decimal(10,0)"), squared)
        spread = planner.plus(scaled, planner.negated(planner.times(added, added)))
        rows, of_all, of_mean, none, share = (
            planner.cast_to(value, "double")
            for value in (n, scaled, spread, planner.literal(0), planner.literal(_SPREAD))
        )
        several, small = planner.less(planner.literal(1), n), planner.times(of_mean, share)
        self.doubts += [
            planner.unequal(n, self._attribute(counted)),
            planner.both(planner.less(planner.literal(0), n), planner.is_null(spread)),
            planner.both(several, planner.less(small, of_all)),
        ]
        moment = planner.either(self._is_zero(count), none, planner.divided(of_mean, rows))
        size, _, second = items(function.aggBufferAttributes())
        return function.evaluateExpression().transformUp(planner.mapping([(size, rows), (second, moment)]))

    def _attribute(self, number: int) -> Attribute:
        return self.totals[number].attribute

    def _is_zero(self, number: int) -> Expression:
        return self.planner.equal(self._attribute(number), self.planner.literal(0))


def is_plain(argument: Expression) -> bool:
    """Computing it cannot fail, so nobody minds if it is computed for rows that a FILTER drops.

    Aggregates of one argument share its value, and Spark computes what is shared before it looks at their filters.
    """
    return kind_of(argument) in {"AttributeReference", "Literal"}


def _filtered(planner: Planner, argument: Expression, where: Any) -> tuple[Expression, Any]:
    """A filtered argument as one that is NULL elsewhere, and no filter; a plain one as it is."""
    if not where.isDefined() or is_plain(argument):
        return argument, where
    return planner.only_if(where.get(), argument), planner.none


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
    return is_decimal(data_type) or str(data_type.typeName()) in _INTEGERS


def is_decimal(data_type: Any) -> bool:
    return str(data_type.typeName()).startswith("decimal")


def _is_float(data_type: Any) -> bool:
    return str(data_type.typeName()) in {"float", "double"}
