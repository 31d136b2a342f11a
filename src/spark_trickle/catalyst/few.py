"""Few rows in the driver's own memory: netted, compared and found again without asking the JVM. Pure.

Two rows are the same when they are stored alike (see `identity`): numbers of the kinds FLOAT and DOUBLE by their bits,
NaN being one value. Only types whose values Arrow and Spark share are handled here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, DecimalType, StringType

from spark_trickle.names import WEIGHT

_TYPES = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "boolean": pa.bool_(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Few:
    """A netted change of a table, weight last; and where the rows to remove lie, if that is known."""

    change: pa.Table
    places: pa.Table | None = None

    @property
    def added(self) -> int:
        return sum(w for w in self.weights if w > 0)

    @property
    def removed(self) -> int:
        return -sum(w for w in self.weights if w < 0)

    @property
    def weights(self) -> list[int]:
        found: list[int] = self.change.column(self.change.num_columns - 1).to_pylist()
        return found


def arrow_type(data_type: DataType) -> pa.DataType | None:
    """The type in which Arrow and Spark share values; None where they may not."""
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, StringType):
        return pa.string() if data_type.simpleString() == "string" else None
    return _TYPES.get(data_type.typeName())


def netted(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Some columns of a change, the weights of identical rows summed, zeros dropped; weight last."""
    if not columns:
        total = pc.sum(rows.column(WEIGHT)).as_py() or 0
        return pa.table({WEIGHT: pa.array([total] if total else [], pa.int64())})
    names = [f"c{i}" for i in range(len(columns))]
    flat = _coded(rows.select(columns), names).append_column(WEIGHT, rows.column(WEIGHT))
    summed = flat.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    kept = summed.filter(pc.not_equal(summed.column(f"{WEIGHT}_sum"), 0))
    own = [_decoded(kept.column(n), rows.schema.field(c).type) for n, c in zip(names, columns, strict=True)]
    return pa.table([*own, kept.column(f"{WEIGHT}_sum")], names=[*columns, WEIGHT])


def difference(new: pa.Table | None, old: pa.Table, beside: int) -> Few | None:
    """The netted change from the old rows to the new ones; None when they are the same.

    The last `beside` columns of the old rows tell their places.
    """
    width = old.num_columns - beside
    before = old.select(range(width))
    after = before.slice(0, 0) if new is None else new.rename_columns(before.column_names)
    both = pa.concat_tables([after.cast(before.schema), before])
    weights = np.where(np.arange(both.num_rows) < after.num_rows, 1, -1)
    alike = _alike(both)
    total = alike.summed(weights)
    changed = total != 0
    if not changed.any():
        return None
    change = both.take(pa.array(alike.rows[alike.starts[changed]]))
    change = change.append_column(WEIGHT, pa.array(total[changed], pa.int64()))
    if not beside:
        return Few(change)
    gone = alike.first(alike.rows >= after.num_rows, np.maximum(-total, 0)) - after.num_rows
    return Few(change, old.select(range(width, old.num_columns)).take(pa.array(gone)))


def places_of(removed: pa.Table, weights: Sequence[int], stored: pa.Table, beside: int) -> pa.Table | None:
    """The places of rows to remove, as many for each as its weight says; None unless all are found.

    `stored` are rows of the table among which they are, with their places in the last `beside` columns.
    """
    width = stored.num_columns - beside
    rows = stored.select(range(width))
    both = pa.concat_tables([removed.rename_columns(rows.column_names).cast(rows.schema), rows])
    alike = _alike(both)
    need = alike.summed(np.concatenate((np.array(weights, np.int64), np.zeros(rows.num_rows, np.int64))))
    found = alike.first(alike.rows >= removed.num_rows, need)
    if found.size < need.sum():
        return None
    return stored.select(range(width, stored.num_columns)).take(pa.array(found - removed.num_rows))


@dataclass(frozen=True)
class _Alike:
    """The numbers of rows, identical ones one after the other and in order."""

    rows: Numbers
    group: Numbers
    """To which of the groups of identical rows each belongs."""
    starts: Numbers
    """Where each group begins."""

    def summed(self, values: Numbers) -> Numbers:
        """A value of every row, added up by group."""
        total = np.concatenate(([0], np.cumsum(values[self.rows])))
        found: Numbers = total[np.append(self.starts[1:], self.rows.size)] - total[self.starts]
        return found

    def first(self, among: np.ndarray[Any, np.dtype[np.bool_]], many: Numbers) -> Numbers:
        """Of some of the rows the first ones of every group, so many of each."""
        before = np.concatenate(([0], np.cumsum(among)))[:-1]
        rank = before - before[self.starts][self.group]
        return self.rows[among & (rank < many[self.group])]


def _alike(rows: pa.Table) -> _Alike:
    names = [f"c{i}" for i in range(rows.num_columns)]
    flat = _coded(rows, names).append_column("row", pa.array(np.arange(rows.num_rows)))
    lists = flat.group_by(names, use_threads=False).aggregate([("row", "list")]).column("row_list")
    sizes = pc.list_value_length(lists).to_numpy().astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
    numbers = pc.list_flatten(lists).to_numpy().astype(np.int64)
    return _Alike(numbers, np.repeat(np.arange(sizes.size), sizes), starts[: sizes.size])


def _coded(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Numbers of the kind of FLOAT as the whole numbers that their bits are."""
    return pa.table([_bits(column) for column in rows.columns], names=list(names))


def _bits(column: pa.ChunkedArray) -> Any:
    if not pa.types.is_floating(column.type):
        return column
    whole = column.combine_chunks()
    one = pc.if_else(pc.is_nan(whole), pa.scalar(float("nan"), whole.type), whole)
    return one.view(pa.int64() if one.type == pa.float64() else pa.int32())


def _decoded(column: pa.ChunkedArray, kind: pa.DataType) -> Any:
    return column.combine_chunks().view(kind) if pa.types.is_floating(kind) else column
