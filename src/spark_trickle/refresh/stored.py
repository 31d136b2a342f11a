"""The stored rows of a stream table: found by keys, and compared with what they are now."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_trickle.catalyst.few import Few, arrow_type, difference, netted
from spark_trickle.catalyst.held import arrow_rows
from spark_trickle.catalyst.holder import Difference, Holder
from spark_trickle.catalyst.plan import Plan, Planner, output
from spark_trickle.names import WEIGHT, quote
from spark_trickle.storage.direct import local_relation, located, with_places
from spark_trickle.storage.layout import Layout, sql_type
from spark_trickle.storage.removals import PLACE
from spark_trickle.storage.tables import DeltaTables, Snapshot

Change = Difference | Few
"""What is to change in a table, with Spark or in the memory of the driver."""


@dataclass(frozen=True)
class Located:
    """Rows of a table with their places, and the same in the memory of the driver, if they are there."""

    plan: Plan
    rows: pa.Table | None = None


@dataclass(frozen=True)
class StoredRows:
    """Works with the rows of one table, whichever version of it."""

    planner: Planner
    tables: DeltaTables
    layout: Layout
    holder: Holder
    most: int
    """So many rows are held by the driver."""

    def against(self, new: DataFrame, old: DataFrame) -> Difference | None:
        """The netted change from rows of the table to others, by Spark."""
        removed = old.toDF(*self.layout.names).selectExpr("*", f"-1L AS {WEIGHT}")
        added = self.exact(new).selectExpr("*", f"1L AS {WEIGHT}")
        return self._netted_by_spark(added.unionAll(removed))

    def exact(self, frame: DataFrame) -> DataFrame:
        """Columns in the types the table stores."""
        fields = self.layout.flat.fields
        spark = frame.sparkSession
        return frame.toDF(*[f"c{i}" for i in range(len(fields))]).selectExpr(
            *[f"CAST(c{i} AS {sql_type(spark, f.dataType)}) AS {quote(f.name)}" for i, f in enumerate(fields)]
        )

    def flat(self, snapshot: Snapshot) -> DataFrame:
        """Its rows, hidden columns beside the others."""
        return self.tables.rows(snapshot).selectExpr(*self.layout.unpack())

    def touched(self, stored: Snapshot, columns: Sequence[int], key_set: Plan) -> Located:
        """The table's rows whose columns, by place, equal the first ones of the key set; each with its place."""
        if not columns:
            return self.located(stored)
        rows = self._found(stored, columns, key_set)
        plan = None if rows is None else self._as_relation(rows)
        if plan is not None:
            exact = len(columns) == 1
            return Located(plan, rows) if exact else Located(self._with_keys(plan, columns, key_set))
        names = [f.name for f in self.layout.visible.fields]
        named = {i: names[c] for i, c in enumerate(columns) if c < len(names)}
        within = {name: self.holder.ranges(key_set, i) for i, name in named.items()}
        by_page = self.holder.by_page(key_set, named, stored.prunes_pages)
        frame = self.tables.rows(stored, within=within).selectExpr(*self.layout.unpack(), *PLACE)
        return Located(self._with_keys(self.planner.analyzed(frame), columns, key_set, by_page))

    def located(self, stored: Snapshot) -> Located:
        """All rows of the table, each with its place."""
        rows = located(self.tables, stored, self.layout.paths, None, self.most)
        plan = None if rows is None else self._as_relation(rows)
        if plan is not None:
            return Located(plan, rows)
        frame = self.tables.rows(stored).selectExpr(*self.layout.unpack(), *PLACE)
        return Located(self.planner.analyzed(frame))

    def _as_relation(self, rows: pa.Table) -> Plan | None:
        return local_relation(self.tables, rows, with_places(self.layout.flat.fields))

    def _with_keys(
        self, plan: Plan, columns: Sequence[int], key_set: Plan, by_page: Set[int] = frozenset()
    ) -> Plan:
        own = output(plan)
        return self.holder.semi_join(plan, [(i, own[c]) for i, c in enumerate(columns)], key_set, by_page)

    def _found(self, stored: Snapshot, columns: Sequence[int], key_set: Plan) -> pa.Table | None:
        """The same rows and perhaps others, found by the driver in the files, if it can."""
        paths, most, names = self.layout.paths, self.most, self.layout.names
        asked = {names[c]: self.holder.values(key_set, i) for i, c in enumerate(columns)}
        known = {name: values for name, values in asked.items() if values is not None}
        return located(self.tables, stored, paths, known, most)

    def compared(self, new: DataFrame | None, old: Located) -> Change | None:
        """The netted change from rows of the table to what they are now."""
        if self._is_plain:
            after = None if new is None else self.holder.on_driver(new)
            before = old.rows
            if before is None and (new is None or after is not None):
                held_rows = self.holder.on_driver(old.plan)
                before = None if held_rows is None else arrow_rows(self.planner, held_rows)
            if before is not None and (new is None or after is not None):
                now = None if after is None else arrow_rows(self.planner, after)
                return difference(now, before, len(PLACE))
        return self.holder.difference(new, self.planner.frame(old.plan), len(PLACE))

    @property
    def _is_plain(self) -> bool:
        """Rows of the table can be compared by the driver."""
        return all(arrow_type(f.dataType) is not None for f in self.layout.flat.fields)

    def netted(self, change: DataFrame) -> Change | None:
        """A change of the table, weight last, with the weights of identical rows summed; None when nothing is left."""
        if self._is_plain:
            rows = self.holder.on_driver(change)
            if rows is not None:
                names = self.layout.names
                found = netted(arrow_rows(self.planner, rows).rename_columns([*names, WEIGHT]), names)
                return Few(found) if found.num_rows else None
        return self._netted_by_spark(change)

    def _netted_by_spark(self, change: DataFrame) -> Difference | None:
        plan = self.holder.netted(change)
        return None if plan is None else Difference(self.planner.frame(plan))
