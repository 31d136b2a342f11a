"""Sources, and groups inside a query that are kept: to the query above they are sources too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from spark_trickle.algebra.relations import OLD, Version
from spark_trickle.catalyst.inner import Inner
from spark_trickle.catalyst.leaves import AtHand, Reader, Shape
from spark_trickle.catalyst.listing import Values, Within
from spark_trickle.catalyst.plan import Plan, Planner
from spark_trickle.names import WEIGHT, quote
from spark_trickle.refresh.kept_groups import Continued
from spark_trickle.storage.columns import Column
from spark_trickle.storage.direct import as_leaf, keys_of, relation
from spark_trickle.storage.tables import DeltaTables


@dataclass(frozen=True)
class InnerReader:
    """Reads groups that are kept from memory, and everything else where it lies."""

    sources: Reader
    planner: Planner
    tables: DeltaTables
    groups: Mapping[str, tuple[Inner, Continued]]
    most: int
    """So many rows are held by the driver."""

    def rows(self, source: str, version: Version, columns: Sequence[str]) -> DataFrame:
        if source not in self.groups:
            return self.sources.rows(source, version, columns)
        return self._frame(source, self._at(source, version)).select(*map(quote, columns))

    def table(self, source: str, version: Version, within: Within) -> Plan | None:
        return None if source in self.groups else self.sources.table(source, version, within)

    def lookup(
        self, source: str, version: Version, shape: Shape, keys: Mapping[str, Values]
    ) -> AtHand | None:
        if source not in self.groups:
            return self.sources.lookup(source, version, shape, keys)
        rows = self._at(source, version)
        for name, values in keys.items():
            wanted = keys_of(values)
            if wanted is None:
                return None
            rows = rows.take(pa.array(wanted.places_in(Column(rows.column(name)))))
        return self._leaf(source, rows, shape)

    def whole(self, source: str, version: Version, shape: Shape) -> AtHand | None:
        if source not in self.groups:
            return self.sources.whole(source, version, shape)
        return self._leaf(source, self._at(source, version), shape)

    def small_change(self, source: str, shape: Shape) -> AtHand | None:
        if source not in self.groups:
            return self.sources.small_change(source, shape)
        return self._leaf(source, self._change(source), shape)

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        if source not in self.groups:
            return self.sources.changes(source, columns)
        return self._frame(source, self._change(source)).select(*map(quote, [*columns, WEIGHT]))

    def prunes_pages(self, source: str, version: Version, column: str, values: Sequence[int]) -> bool:
        return source not in self.groups and self.sources.prunes_pages(source, version, column, values)

    def instant(self, version: Version) -> datetime:
        return self.sources.instant(version)

    def _at(self, source: str, version: Version) -> pa.Table:
        _, found = self.groups[source]
        return found.old if version is OLD else found.new

    def _change(self, source: str) -> pa.Table:
        _, found = self.groups[source]
        if found.change is not None:
            return found.change
        return found.old.slice(0, 0).append_column(WEIGHT, pa.array([], pa.int64()))

    def _schema(self, source: str) -> StructType:
        inner, _ = self.groups[source]
        kinds = zip(inner.scan.columns, inner.schema.fields, strict=False)
        return StructType([StructField(column.name, field.dataType) for column, field in kinds])

    def _leaf(self, source: str, rows: pa.Table, shape: Shape) -> AtHand | None:
        if rows.num_rows > self.most:
            return None
        return as_leaf(self.tables, self._schema(source), rows, shape)

    def _frame(self, source: str, rows: pa.Table) -> DataFrame:
        schema = self._schema(source)
        if WEIGHT in rows.column_names:
            schema = StructType([*schema.fields, StructField(WEIGHT, LongType(), nullable=False)])
        return self.planner.frame(relation(self.tables, rows, schema))
