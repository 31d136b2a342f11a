"""A small change → files written by the driver itself: no Spark job.

The files are what Spark would have written: Parquet with the table's own types, with the statistics by which Delta
skips files. Tables of which more is asked than that are left to Spark: see `can_write`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_trickle.catalyst.few import Few, arrow_type
from spark_trickle.names import PREFIX
from spark_trickle.storage.files import local_folder
from spark_trickle.storage.layout import Layout
from spark_trickle.storage.tables import DeltaTables, Snapshot

_FEED_FOLDER = "_change_data"
_PLAIN = ("delta.enable", "delta.checkpoint", "delta.feature.", "delta.logRetention", "delta.deletedFile")
_WRITER = {"org.apache.spark.version": "4.2.0"}
"""Whoever reads the files must know that their days and instants are counted as Spark counts them today."""
_LONGEST = 32
"""Longer text has no place among the statistics."""


def can_write(snapshot: Snapshot, layout: Layout) -> bool:
    """The table asks for nothing that only Spark's own writer does: partitions, constraints, other column names."""
    if local_folder(snapshot.place) is None or snapshot.partitioned_by:
        return False
    asked = [name for name in snapshot.configuration if name.startswith("delta.")]
    if not all(name.startswith(_PLAIN) for name in asked):
        return False
    if any(set(f.metadata or {}) - {"comment"} or not f.nullable for f in snapshot.schema.fields):
        return False
    return all(arrow_type(f.dataType) is not None for f in layout.flat.fields)


def write_files(
    tables: DeltaTables, snapshot: Snapshot, layout: Layout, few: Few, *, feed: bool
) -> list[Any]:
    """The actions that add the new rows, and with `feed` the rows of the change feed."""
    weights = np.array(few.weights, dtype=np.int64)
    rows = _packed(few.change.drop_columns([few.change.column_names[-1]]), layout)
    folder = Path(local_folder(snapshot.place) or "")
    actions = []
    added = rows.take(pa.array(np.repeat(np.arange(len(weights)), np.maximum(weights, 0))))
    if added.num_rows:
        name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        actions.append(
            {"add": written_file(folder, name, added) | {"dataChange": True, "stats": statistics(added)}}
        )
    if feed:
        removed = rows.take(pa.array(np.repeat(np.arange(len(weights)), np.maximum(-weights, 0))))
        kinds = pa.array(["delete"] * removed.num_rows + ["insert"] * added.num_rows, pa.string())
        changes = pa.concat_tables([removed, added]).append_column("_change_type", kinds)
        name = f"{_FEED_FOLDER}/cdc-00000-{uuid.uuid4()}.c000.snappy.parquet"
        actions.append({"cdc": written_file(folder, name, changes) | {"dataChange": False}})
    read = tables.jvm.org.apache.spark.sql.delta.actions.Action.fromJson
    return [read(json.dumps(action)) for action in actions]


def _packed(rows: pa.Table, layout: Layout) -> pa.Table:
    """Flat columns in the stored form, in the table's exact types."""
    kinds = [arrow_type(f.dataType) for f in layout.flat.fields]
    columns = [column.cast(kind) for column, kind in zip(rows.columns, kinds, strict=True)]
    shown = len(layout.visible.fields)
    names = [f.name for f in layout.visible.fields]
    packed = columns[:shown]
    if layout.hidden.fields:
        inner = [column.combine_chunks() for column in columns[shown:]]
        packed.append(pa.StructArray.from_arrays(inner, [f.name for f in layout.hidden.fields]))
        names.append(PREFIX)
    return pa.table(packed, names=names)


def written_file(folder: Path, name: str, rows: pa.Table) -> dict[str, Any]:
    """A file as an action of the log names it. It tells its writer: Spark then knows how its days are counted."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(
        path,
        rows.schema.remove_metadata(),
        compression="snappy",
        store_decimal_as_integer=True,
        store_schema=False,
    ) as file:
        file.write_table(rows.replace_schema_metadata(None))
        file.add_key_value_metadata(_WRITER)
    found = path.stat()
    return {
        "path": name,
        "partitionValues": {},
        "size": found.st_size,
        "modificationTime": int(found.st_mtime * 1000),
    }


def statistics(rows: pa.Table) -> str:
    """What Delta keeps of a file: least, greatest and missing values by column, as JSON. Pure."""
    least, greatest, missing = _ends(rows.column_names, rows.columns)
    return (
        f'{{"numRecords":{rows.num_rows},"minValues":{least},"maxValues":{greatest},'
        f'"nullCount":{missing},"tightBounds":true}}'
    )


def _ends(names: Sequence[str], columns: Sequence[Any]) -> tuple[str, str, str]:
    least, greatest, missing = list[str](), list[str](), list[str]()
    for name, column in zip(names, columns, strict=True):
        key = json.dumps(name)
        if pa.types.is_struct(column.type):
            inner = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            parts = _ends([f.name for f in inner.type], inner.flatten())
            for every, part in zip((least, greatest, missing), parts, strict=True):
                every.append(f"{key}:{part}")
            continue
        missing.append(f"{key}:{column.null_count}")
        ends = _ends_of(column)
        if ends is not None:
            least.append(f"{key}:{ends[0]}")
            greatest.append(f"{key}:{ends[1]}")
    return tuple(f"{{{','.join(every)}}}" for every in (least, greatest, missing))  # type: ignore[return-value]


def _ends_of(column: Any) -> tuple[str, str] | None:
    """The least and the greatest value as JSON has them; None where they are not kept, or not exact."""
    kind = column.type
    if column.null_count == len(column):
        return None
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        ends = pc.min_max(column)
        return str(ends["min"].as_py()), str(ends["max"].as_py())
    if pa.types.is_date32(kind):
        try:
            ends = pc.min_max(column).as_py()
        except (OverflowError, ValueError):  # beyond the years that Python knows
            return None
        return json.dumps(ends["min"].isoformat()), json.dumps(ends["max"].isoformat())
    if pa.types.is_string(kind):
        # By bytes, as Spark compares text.
        texts = sorted((t for t in column.to_pylist() if t is not None), key=lambda text: text.encode())
        short = max(len(texts[0]), len(texts[-1])) <= _LONGEST
        return (json.dumps(texts[0]), json.dumps(texts[-1])) if short else None
    return None
