"""Few rows in the driver's own memory: netted, compared and found again without asking the JVM. Pure.

Two rows are the same when they are stored alike (see `identity`): numbers of the kinds FLOAT and DOUBLE by their bits,
NaN being one value. Only types whose values Arrow and Spark share are handled here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    weights = [1] * after.num_rows + [-1] * before.num_rows
    grouped = _grouped(both, weights)
    sums: list[int] = grouped.column("weight_sum").to_pylist()
    members: list[list[int]] = grouped.column("row_list").to_pylist()
    changed = [(total, rows) for total, rows in zip(sums, members, strict=True) if total]
    if not changed:
        return None
    change = both.take([rows[0] for _, rows in changed])
    change = change.append_column(WEIGHT, pa.array([total for total, _ in changed], pa.int64()))
    if not beside:
        return Few(change)
    gone = [
        row - after.num_rows
        for total, rows in changed
        if total < 0
        for row in [r for r in rows if r >= after.num_rows][:-total]
    ]
    return Few(change, old.select(range(width, old.num_columns)).take(pa.array(gone, pa.int64())))


def places_of(removed: pa.Table, weights: Sequence[int], stored: pa.Table, beside: int) -> pa.Table | None:
    """The places of rows to remove, as many for each as its weight says; None unless all are found.

    `stored` are rows of the table among which they are, with their places in the last `beside` columns.
    """
    width = stored.num_columns - beside
    rows = stored.select(range(width))
    both = pa.concat_tables([removed.rename_columns(rows.column_names).cast(rows.schema), rows])
    grouped = _grouped(both, [0] * both.num_rows)
    gone: list[int] = []
    for members in grouped.column("row_list").to_pylist():
        need = sum(weights[row] for row in members if row < removed.num_rows)
        have = [row - removed.num_rows for row in members if row >= removed.num_rows]
        if len(have) < need:
            return None
        gone += have[:need]
    return stored.select(range(width, stored.num_columns)).take(pa.array(gone, pa.int64()))


def _grouped(rows: pa.Table, weights: Sequence[int]) -> pa.Table:
    """Identical rows together: the sum of their weights, and their numbers."""
    names = [f"c{i}" for i in range(rows.num_columns)]
    flat = _coded(rows, names)
    flat = flat.append_column("weight", pa.array(weights, pa.int64()))
    flat = flat.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    return flat.group_by(names, use_threads=False).aggregate([("weight", "sum"), ("row", "list")])


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
