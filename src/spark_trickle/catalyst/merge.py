"""Totals brought up to date: those of the change and the stored ones, merged, and the groups that come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_trickle.catalyst.later import later
from spark_trickle.catalyst.plan import Attribute, Expression, Plan, Planner, items, output
from spark_trickle.catalyst.totals import WIDE, Merge, RunningTotals, Total, is_decimal, is_plain


@dataclass(frozen=True)
class Merger:
    """Merges the totals of one aggregate."""

    planner: Planner
    running: RunningTotals

    def of_change(self, change: Plan, *, repeats: bool = False) -> Plan:
        """The totals of the added and of the removed rows of a change, by group: two columns for each total.

        `repeats`: few rows count as so many that they are better spread.
        """
        planner = self.planner
        arranged = (
            planner.spread(change) if repeats and planner.is_at_hand(change) else planner.gathered(change)
        )
        units, zero = planner.repeated(arranged), planner.literal(0)
        unit = output(units)[-1]
        parts = []
        for i, total in enumerate(self.running.totals):
            added, removed = planner.less(zero, unit), planner.less(unit, zero)
            for name, part in (("added", added), ("removed", removed)):
                parts.append(planner.alias(self._only(total.aggregate, part), f"__st_{name}{i}"))
        keys = [planner.alias(key, f"__st_key{i}") for i, key in enumerate(self.running.keys)]
        return planner.aggregate(planner.seq(self.running.keys), planner.seq([*keys, *parts]), units)

    def _only(self, aggregate: Expression, condition: Expression) -> Expression:
        """The same aggregate over the rows that fulfil one more condition."""
        planner = self.planner
        where = planner.memo(aggregate, "filter", lambda: _condition_of(aggregate))
        both = planner.all_of([condition] if where is None else [where, condition])
        # A function of its own: two that share one also share the columns of their buffers.
        function = later(aggregate).aggregateFunction().clone()
        arguments, plain = planner.memo(aggregate, "arguments", lambda: _arguments_of(aggregate))
        if plain:
            return function.toAggregateExpression(False, planner.some(both))
        inside = [planner.only_if(both, argument) for argument in arguments]
        return function.withNewChildren(planner.seq(inside)).toAggregateExpression()

    def merged(self, stored: Plan, keys: Sequence[int], totals: Sequence[int], change: Plan) -> Plan:
        """One row a group: its keys, its totals, whether the table holds it, and whether totals alone do not tell.

        `stored` are rows of the table, `keys` and `totals` their places; `change` comes from `of_change`.
        """
        planner, k, n = self.planner, len(self.running.keys), len(self.running.totals)
        own, given = output(stored), output(change)
        yes, no = planner.literal_int(1), planner.literal_int(0)
        before = [own[i] for i in totals]
        lacking = self._lacking(before)
        none = [None] * n
        added = [given[k + 2 * i] for i in range(n)]
        removed = [given[k + 2 * i + 1] for i in range(n)]
        less = [
            planner.negated(self._summand(t, r)) if t.merge is Merge.ADD else r
            for t, r in zip(self.running.totals, removed, strict=True)
        ]
        kept = self._branch(0, [own[i] for i in keys], before, none, yes, lacking)
        of_change = [
            self._branch(1, given[:k], added, none, no, no),
            self._branch(2, given[:k], less, removed, no, no),
        ]
        named = [planner.alias(c, f"c{i}") for i, c in enumerate(kept)]
        parts = [planner.project(named, stored), planner.expanded(of_change, change)]
        return self._combined(planner.gathered(planner.union(parts)))

    def _branch(
        self,
        number: int,
        keys: Sequence[Expression],
        values: Sequence[Expression],
        gone: Sequence[Expression | None],
        known: Expression,
        lacking: Expression,
    ) -> list[Expression]:
        """The columns of a row to merge: stored, or of what is added, or of what is removed."""
        planner = self.planner
        columns = list(keys)
        for total, value, lost in zip(self.running.totals, values, gone, strict=True):
            merged = value
            if total.merge is Merge.ADD:
                merged = self._summand(total, value) if number < 2 else value
            elif total.merge is not Merge.PARITY and number == 2:
                merged = planner.null(total.attribute.dataType())
            columns.append(merged)
            if total.merge in {Merge.LEAST, Merge.GREATEST}:
                columns.append(lost if lost is not None else planner.null(total.attribute.dataType()))
        return [*columns, known, lacking]

    def _summand(self, total: Total, value: Expression) -> Expression:
        """In a decimal type: integers have a negative each, and sums of sums their room."""
        own = total.attribute
        exact = self.planner.memo(own, "decimal", lambda: is_decimal(own.dataType()))
        return value if exact else self.planner.cast_to(value, WIDE)

    def _lacking(self, before: Sequence[Expression]) -> Expression:
        """A stored row whose totals do not tell: a sum that went beyond its type."""
        planner = self.planner
        checks = [
            planner.both(
                planner.is_null(before[i]), planner.less(planner.literal(0), before[total.counted_by])
            )
            for i, total in enumerate(self.running.totals)
            if total.counted_by is not None
        ]
        lacks = planner.any_of(checks)
        one, none = planner.literal_int(1), planner.literal_int(0)
        return none if lacks is None else planner.either(lacks, one, none)

    def _combined(self, union: Plan) -> Plan:
        planner, functions = self.planner, self.planner.expressions.aggregate
        columns = iter(output(union))
        keys = [next(columns) for _ in self.running.keys]
        named = [
            planner.alias(c, own.name(), own.exprId()) for c, own in zip(keys, self.running.keys, strict=True)
        ]
        values, gone = [], []
        for i, total in enumerate(self.running.totals):
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
                gone.append((i, planner.alias(extreme(next(columns)).toAggregateExpression(), f"gone{i}")))
        flags = [
            planner.alias(functions.Max(next(columns)).toAggregateExpression(), name)
            for name in ("known", "lacking")
        ]
        parts = [*named, *values, *(d for _, d in gone), *flags]
        grouped = planner.aggregate(planner.seq(keys), planner.seq(parts), union)
        return self._judged(grouped, [(i, d.toAttribute()) for i, d in gone])

    def _judged(self, grouped: Plan, gone: Sequence[tuple[int, Attribute]]) -> Plan:
        """Totals in their own types; `known`: the table holds the group; `doubtful`: totals alone do not tell.

        An extreme is certain if it lies beyond all that was removed, be it a stored one or one that was added.
        """
        planner = self.planner
        found = output(grouped)
        k, n = len(self.running.keys), len(self.running.totals)
        known, lacking = found[-2:]
        values = [
            planner.try_cast(v, t.attribute.dataType())
            for v, t in zip(found[k : k + n], self.running.totals, strict=True)
        ]
        named = [
            planner.alias(v, t.attribute.name(), t.attribute.exprId())
            for v, t in zip(values, self.running.totals, strict=True)
        ]
        zero = planner.literal(0)
        wrong = [planner.equal(lacking, planner.literal_int(1))]
        for i, total in enumerate(self.running.totals):
            if total.counted_by is not None:
                counted = values[total.counted_by]
                wrong.append(planner.both(planner.is_null(values[i]), planner.less(zero, counted)))
            elif total.merge is Merge.ADD:
                wrong += [planner.is_null(values[i]), planner.less(values[i], zero)]
        for i, lost in gone:
            extreme, least = found[k + i], self.running.totals[i].merge is Merge.LEAST
            beyond = planner.less(extreme, lost) if least else planner.less(lost, extreme)
            certain = planner.both(planner.negation(planner.is_null(extreme)), beyond)
            wrong.append(planner.both(planner.negation(planner.is_null(lost)), planner.negation(certain)))
        for i, limit in self.running.limits:
            most = planner.cast_to(planner.literal(limit), str(values[i].dataType().catalogString()))
            wrong.append(planner.less(most, planner.first_present(values[i], most)))
        own = planner.mapping([(t.attribute, v) for t, v in zip(self.running.totals, values, strict=True)])
        wrong += [doubt.transformUp(own) for doubt in self.running.doubts]
        doubtful = planner.alias(planner.any_of(wrong), "doubtful")
        return planner.project([*found[:k], *named, known, doubtful], grouped)


def _condition_of(aggregate: Expression) -> Expression | None:
    where = aggregate.filter()
    return where.get() if where.isDefined() else None


def _arguments_of(aggregate: Expression) -> tuple[list[Expression], bool]:
    """What it is computed from, and whether that is nothing but columns and constants."""
    arguments = items(aggregate.aggregateFunction().children())
    return arguments, all(map(is_plain, arguments))


@dataclass(frozen=True)
class Groups:
    """The result of `Merger.merged`. With `hides`, a group may exist that the table does not hold."""

    planner: Planner
    running: RunningTotals
    merged: Plan
    hides: bool

    def continued(self, aggregate: Plan) -> Plan:
        """What the aggregate gives for the groups whose totals tell: the same columns under the same ids.

        A group without rows is gone.
        """
        conditions = [self.planner.negation(self._unsure)]
        if self.running.grouped:
            none = self.planner.literal(0)
            conditions.append(
                self.planner.less(none, self._columns[len(self.running.keys) + self.running.rows])
            )
        condition = self.planner.all_of(conditions)
        groups = self.planner.filter(condition, self.merged)
        replaced = self.planner.mapping(self.running.values.items())
        named = items(aggregate.aggregateExpressions())
        return self.planner.project([e.transformUp(replaced) for e in named], groups)

    @property
    def again(self) -> Plan:
        """The groups to evaluate again, by their keys."""
        keys = self._columns[: len(self.running.keys)]
        unsure = self.planner.filter(self._unsure, self.merged)
        return self.planner.project([self.planner.alias(k, f"k{i}") for i, k in enumerate(keys)], unsure)

    @property
    def _columns(self) -> list[Attribute]:
        return output(self.merged)

    @property
    def _is_known(self) -> Expression:
        return self.planner.equal(self._columns[-2], self.planner.literal_int(1))

    @property
    def _unsure(self) -> Expression:
        doubtful = self._columns[-1]
        return (
            self.planner.any_of([doubtful, self.planner.negation(self._is_known)]) if self.hides else doubtful
        )
