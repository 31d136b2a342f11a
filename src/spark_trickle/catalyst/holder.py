"""What a refresh evaluates once and uses again: few rows on the driver, many kept by the executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_trickle.catalyst import held
from spark_trickle.catalyst.identity import needs_encoding, net
from spark_trickle.catalyst.listing import (
    Ranges,
    Values,
    can_go_by_page,
    one_of,
    ranges_of,
    values_of,
    whole_numbers,
)
from spark_trickle.catalyst.plan import Attribute, Expression, Plan, Planner, output
from spark_trickle.names import WEIGHT, quote


@dataclass(frozen=True)
class Difference:
    """What is to change in a table to become another one."""

    rows: DataFrame
    """Netted, weight last."""
    removed: Plan | None = None
    """What lies beside each row to remove, such as its place, if that is known."""


class Holder:
    """Holds rows for one refresh; `close` lets go of them."""

    def __init__(self, planner: Planner, local_rows: int) -> None:
        self._planner = planner
        self.local_rows = local_rows
        self._kept: list[DataFrame] = []
        self._nulls: dict[tuple[int, int], bool] = {}
        self._numbers: dict[tuple[int, int], Sequence[int]] = {}
        self._values: dict[tuple[int, int], Values | None] = {}
        self._alive: list[Plan] = []

    def close(self) -> None:
        for frame in self._kept:
            frame.unpersist()

    def hold(self, rows: DataFrame | Plan) -> Plan | None:
        """A frame or plan evaluated once: on the driver when small, else kept by the executors. None when empty."""
        local = self.on_driver(rows)
        if local is not None:
            return local if held.count(local) else None
        kept = (rows if isinstance(rows, DataFrame) else self._planner.frame(rows)).persist()
        self._kept.append(kept)
        return self._planner.analyzed(kept)

    def on_driver(self, rows: DataFrame | Plan) -> Plan | None:
        """The rows of a frame or plan if they are few."""
        return held.hold(self._planner, rows, self.local_rows)

    def keys(self, parts: Sequence[Plan]) -> Plan | None:
        """The rows of several plans, each once; None when there are none."""
        planner = self._planner
        found = []
        for part in parts:
            free = held.hold_if_free(planner, part)
            if free is None:
                return self.hold(planner.distinct(planner.union(parts)))
            found.append(free)
        union = held.union(planner, found) if found else None
        return union if union is not None and held.count(union) else None

    def semi_join(
        self,
        plan: Plan,
        on: Sequence[tuple[int, Attribute]],
        key_set: Plan,
        by_page: Set[int] = frozenset(),
    ) -> Plan:
        """The rows whose columns equal the key set's at the given places, NULL being a key like any other.

        For the places in `by_page`, only pages of the files that may hold such rows are read.
        """
        planner = self._planner
        listed = self._listed(on, key_set, by_page)
        conditions = [condition for condition in listed if condition is not None]
        if conditions:
            plan = planner.filter(planner.all_of(conditions), plan)
            if len(on) == 1:
                return plan
        keys = output(key_set)
        fresh = [planner.alias(keys[i], f"__st_k{i}") for i, _ in on]
        # Plain equality is several times faster, and the same where no key is NULL.
        equal = planner.equal_null_safe if self._has_null(key_set, [i for i, _ in on]) else planner.equal
        equalities = [
            equal(column, alias.toAttribute()) for (_, column), alias in zip(on, fresh, strict=True)
        ]
        return planner.join(plan, planner.project(fresh, key_set), "LeftSemi", planner.all_of(equalities))

    def _listed(
        self, on: Sequence[tuple[int, Attribute]], key_set: Plan, by_page: Set[int]
    ) -> list[Expression | None]:
        if not held.is_held(key_set):
            return []
        return [one_of(self._planner, column, key_set, i, by_page=i in by_page) for i, column in on]

    def values(self, key_set: Plan, place: int) -> Values | None:
        """The values of a key column, where the driver holds them and they can be looked for in files."""
        if not held.is_held(key_set):
            return None
        known = (id(key_set), place)
        if known not in self._values:
            self._alive.append(key_set)  # ids are only unique among living objects
            self._values[known] = values_of(self._planner, key_set, place)
        return self._values[known]

    def ranges(self, key_set: Plan, place: int) -> Ranges:
        """Ranges in which all values of a key column lie; none where that is not known."""
        return ranges_of(self._whole_numbers(key_set, place))

    def by_page(
        self, key_set: Plan, columns: Mapping[int, str], prunes: Callable[[str, Sequence[int]], bool]
    ) -> set[int]:
        """The places of a key set whose values lie in few pages; `prunes` tells that of a column's values."""
        numbers = {i: self._whole_numbers(key_set, i) for i in columns}
        return {
            i for i, column in columns.items() if can_go_by_page(numbers[i]) and prunes(column, numbers[i])
        }

    def _whole_numbers(self, key_set: Plan, place: int) -> Sequence[int]:
        if not held.is_held(key_set):
            return ()
        known = (id(key_set), place)
        if known not in self._numbers:
            self._alive.append(key_set)  # ids are only unique among living objects
            self._numbers[known] = whole_numbers(self._planner, key_set, place)
        return self._numbers[known]

    def _has_null(self, key_set: Plan, places: Sequence[int]) -> bool:
        """Some key is NULL there, as far as the driver can tell."""
        if not held.is_held(key_set):
            return True
        for known in ((id(key_set), place) for place in places):
            if known not in self._nulls:
                self._alive.append(key_set)  # ids are only unique among living objects
                values = held.values_at(self._planner, key_set, known[1])
                self._nulls[known] = bool(values.contains(None))
        return any(self._nulls[id(key_set), place] for place in places)

    def netted(self, change: DataFrame) -> Plan | None:
        """A change with the weights of identical rows summed; None when nothing is left."""
        planner = self._planner
        free = held.hold_if_free(planner, planner.analyzed(change))
        if free is not None and self._is_netted(change, free):
            return free if held.count(free) else None
        return self.hold(net(change))

    def _is_netted(self, change: DataFrame, free: Plan) -> bool:
        """No two of its rows are the same. Of some types two values may be the same although stored otherwise."""
        if any(needs_encoding(field.dataType) for field in change.schema.fields):
            return False
        return held.all_differ(held.columns_of(self._planner, free, output(free)[:-1]))

    def difference(self, new: DataFrame | None, old: DataFrame, beside: int = 0) -> Difference | None:
        """The netted change from the old rows to the new ones; None when they are the same.

        The last `beside` columns of the old rows are not compared but given for the rows to remove.
        """
        planner = self._planner
        after = None if new is None else self.on_driver(new)
        before = self.on_driver(old) if new is None or after is not None else None
        if before is not None:
            columns = output(before)
            rows, places = columns[: len(columns) - beside], columns[len(columns) - beside :]
            compared = held.columns_of(planner, before, rows)
            return self._found(after, compared, held.columns_of(planner, before, places) if places else None)
        compared_names = old.columns[: len(old.columns) - beside]
        signed = old.select(*map(quote, compared_names)).selectExpr("*", f"-1L AS {WEIGHT}")
        if new is not None:
            signed = new.selectExpr("*", f"1L AS {WEIGHT}").unionAll(signed)
        plan = self.hold(net(signed))
        return None if plan is None else Difference(planner.frame(plan))

    def _found(self, new: Plan | None, old: Plan, beside: Plan | None) -> Difference | None:
        planner = self._planner
        found = held.difference(planner, new, old)
        change = None if found is None else self.netted(planner.frame(found))
        if change is None:
            return None
        gone = held.only_in(planner, old, new)
        return Difference(
            planner.frame(change), None if beside is None else held.partners(planner, gone, old, beside)
        )
