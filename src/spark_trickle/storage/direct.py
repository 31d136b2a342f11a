"""Few rows of a version, read by the driver from the files and held by it: no Spark job.

Reading a column of a million rows takes milliseconds, a Spark job takes ten times that before it has read anything.
Where the driver cannot promise to read what Spark would read, or would have to read too much, it says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from spark_trickle.algebra.comparisons import Comparison
from spark_trickle.catalyst.few import arrow_type
from spark_trickle.catalyst.guard import check_time
from spark_trickle.catalyst.java import scala_object
from spark_trickle.catalyst.later import later
from spark_trickle.catalyst.leaves import AtHand, Shape
from spark_trickle.catalyst.listing import Values, ranges_of_values
from spark_trickle.catalyst.plan import Plan, kind_of
from spark_trickle.names import WEIGHT
from spark_trickle.storage.files import DataFile, local_folder, local_path
from spark_trickle.storage.parquet import (
    FILE,
    NOTHING_KEPT,
    POSITION,
    Field,
    Keys,
    Positions,
    Reading,
    Source,
    TooMany,
    Unreadable,
    read_files,
)
from spark_trickle.storage.tables import PHYSICAL, DeltaTables, Snapshot

_WHOLE = {"bigint": pa.int64(), "int": pa.int32(), "smallint": pa.int16(), "tinyint": pa.int8()}
_LARGEST = 48 * 2**20
"""Spark makes no relation of the driver of more than that."""
Path = tuple[str, ...]
"""A column, or one inside a struct, by names."""


def look_up(
    tables: DeltaTables, snapshot: Snapshot, shape: Shape, keys: Mapping[str, Values], most: int
) -> AtHand | None:
    """The rows that have one of the values in each column of `keys`; None: ask Spark."""
    wanted = {name: found for name, values in keys.items() if (found := keys_of(values)) is not None}
    within = {name: ranges_of_values(keys[name]) for name in wanted}
    fields = _used(snapshot, shape)
    if not wanted or fields is None:
        return None
    terms = Terms(wanted, most, tables.most_scanned, only=shape.only)
    rows = _read(tables, snapshot, snapshot.files_within(within), fields, terms)
    return None if rows is None else as_leaf(tables, snapshot.schema, rows, shape)


def can_look_up(tables: DeltaTables, snapshot: Snapshot) -> bool:
    """The driver may read the files of this table itself."""
    return bool(tables.most_scanned) and local_folder(snapshot.place) is not None


def read_whole(tables: DeltaTables, snapshot: Snapshot, shape: Shape, most: int) -> AtHand | None:
    """All rows of a small table, read once; None: ask Spark."""

    def read() -> AtHand | None:
        fields = _used(snapshot, shape)
        terms = Terms({}, most, most, only=shape.only)
        rows = None if fields is None else _read(tables, snapshot, None, fields, terms)
        return None if rows is None else as_leaf(tables, snapshot.schema, rows, shape)

    found: AtHand | None = tables.remember_whole(snapshot, shape, read)
    return found


def located(
    tables: DeltaTables,
    snapshot: Snapshot,
    columns: Mapping[str, Path],
    keys: Mapping[str, Values] | None,
    most: int,
) -> pa.Table | None:
    """Rows of a stream table with their places, those that have one of the values in each column of `keys`, or all.

    None: ask Spark.
    """
    wanted = {name: found for name, values in (keys or {}).items() if (found := keys_of(values)) is not None}
    fields = described_columns(snapshot, columns)
    if fields is None or (keys is not None and not wanted):
        return None
    within = {columns[n][0]: ranges_of_values(keys[n]) for n in wanted if keys and len(columns[n]) == 1}
    files = snapshot.files_within(within) if within else None
    terms = Terms(wanted, most, tables.most_scanned if wanted else most, places=True)
    return _read(tables, snapshot, files, [field for field, _ in fields], terms)


def with_places(fields: Sequence[StructField]) -> StructType:
    """The schema of located rows."""
    return StructType([*fields, StructField(FILE, StringType()), StructField(POSITION, LongType())])


@dataclass(frozen=True, slots=True)
class Terms:
    """Which rows, how many of them at most, out of how many at most, whether with their places, and which may miss."""

    keys: Mapping[str, Keys]
    most: int
    most_scanned: int
    places: bool = False
    only: tuple[Comparison, ...] = ()


def _read(
    tables: DeltaTables,
    snapshot: Snapshot,
    files: Sequence[DataFile] | None,
    fields: Sequence[Field],
    terms: Terms,
) -> pa.Table | None:
    check_time()
    chosen = list(snapshot.by_content.values()) if files is None else files
    counts = [file.written_rows for file in chosen]
    if None in counts or sum(count or 0 for count in counts) > terms.most_scanned:
        return None
    if not can_look_up(tables, snapshot):
        return None
    kept = tables.columns if terms.keys else NOTHING_KEPT
    reading = Reading(fields, terms.keys, terms.most, terms.places, terms.only, kept)
    try:
        hidden = tables.hidden_rows(snapshot, chosen)
        return read_files([_source(tables, snapshot, file, hidden, terms.places) for file in chosen], reading)
    except (Unreadable, TooMany):
        return None


def as_leaf(tables: DeltaTables, schema: StructType, rows: pa.Table, shape: Shape) -> AtHand | None:
    """Rows of the used columns, and perhaps a weight, as a relation; with all columns of the leaf if those have types."""
    kinds = {f.name: f.dataType for f in schema.fields}
    types = {name: arrow_type(kinds[name]) if name in kinds else None for name in shape.columns}
    complete = all(kind is not None for kind in types.values())
    names = [name for name in shape.columns if complete or name in shape.used]
    columns = [
        rows.column(name) if name in shape.used else pa.nulls(rows.num_rows, types[name]) for name in names
    ]
    fields = [StructField(name, kinds[name]) for name in names]
    if WEIGHT in rows.column_names:
        columns.append(rows.column(WEIGHT))
        fields.append(StructField(WEIGHT, LongType(), nullable=False))
    table = pa.table(columns, names=[field.name for field in fields]) if columns else None
    plan = None if table is None else local_relation(tables, table, StructType(fields))
    return None if plan is None else AtHand(plan, rows.num_rows, complete)


def local_relation(tables: DeltaTables, rows: pa.Table, schema: StructType) -> Plan | None:
    """Rows of this process as a relation of the driver; None where they are too large for one."""
    if rows.nbytes > _LARGEST:
        return None
    plan = relation(tables, rows, schema)
    return plan if kind_of(plan) == "LocalRelation" else None


def relation(tables: DeltaTables, rows: pa.Table, schema: StructType) -> Plan:
    """Rows of this process as a leaf of a plan: of the driver, or spread if they are large."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        # In one piece: Spark stops reading at an empty one.
        writer.write_table(rows.combine_chunks())
    jvm = tables.jvm
    channel = jvm.java.nio.channels.Channels.newChannel(
        jvm.java.io.ByteArrayInputStream(stream.getvalue().to_pybytes())
    )
    converters = later(scala_object(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters"))
    wanted = jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
    frame = converters.toDataFrame(
        converters.getBatchesFromStream(channel), wanted, tables.spark._jsparkSession, "UTC", True, False
    )
    return later(frame).queryExecution().analyzed()


def _used(snapshot: Snapshot, shape: Shape) -> list[Field] | None:
    """The used columns as the files have them; None where one cannot be read here or has another type there."""
    found = described_columns(snapshot, {name: (name,) for name in shape.columns if name in shape.used})
    if found is None or any(shape.used[f.name] != kind.simpleString() for f, kind in found):
        return None
    if not found:  # rows without columns could not be counted
        described = (_described(snapshot, name, (name,)) for name in shape.columns)
        found = [pair for pair in described if pair is not None][:1]
        return [field for field, _ in found] or None
    return [field for field, _ in found]


def described_columns(snapshot: Snapshot, columns: Mapping[str, Path]) -> list[tuple[Field, DataType]] | None:
    """Columns as the files have them; None where one cannot be read here."""
    if snapshot.setting("delta.columnMapping.mode") == "id":
        return None  # columns are told by numbers in the files, not by names
    described = [_described(snapshot, name, path) for name, path in columns.items()]
    found = [pair for pair in described if pair is not None]
    return found if len(found) == len(described) else None


def _described(snapshot: Snapshot, name: str, path: Path) -> tuple[Field, DataType] | None:
    """A column as the files have it; None where it cannot be read here."""
    inner: Any = snapshot.schema
    written = []
    for part in path:
        found = inner[part] if isinstance(inner, StructType) and part in inner.names else None
        if found is None:
            return None
        written.append((found.metadata or {}).get(PHYSICAL, part))
        inner = found.dataType
    kind = arrow_type(inner)
    if kind is None:
        return None
    return Field(name, tuple(written), kind, path[0] in snapshot.partitioned_by), inner


def _source(
    tables: DeltaTables, snapshot: Snapshot, file: DataFile, hidden: Mapping[str, Positions], places: bool
) -> Source:
    address = tables.address(snapshot, file) if places else ""
    return Source(path_of(snapshot, file.path), address, file.partition, hidden.get(file.vector))


def path_of(snapshot: Snapshot, path: str) -> str:
    """Where a file lies that the log names by its path, relative to the table or not."""
    found = local_path(snapshot.place, path)
    if found is None:
        raise Unreadable(path)
    return found


def keys_of(values: Values) -> Keys | None:
    """What is looked for, the same object for the same values; None for a type by which nothing is looked for."""
    if "keys" not in values.found:
        values.found["keys"] = _keys(values)
    found: Keys | None = values.found["keys"]
    return found


def _keys(values: Values) -> Keys | None:
    if values.type == "string":
        return Keys(pa.array(values.known, pa.string()), values.with_null)
    kind = _WHOLE.get(values.type)
    return None if kind is None else Keys(pa.array(values.known, kind), values.with_null)


def values_in(data_type: str, column: pa.ChunkedArray) -> Values | None:
    """The values of a column, to look for rows that have them; None for a type by which nothing is looked for."""
    if data_type not in _WHOLE and data_type != "string":
        return None
    known = {value for value in column.to_pylist() if value is not None}
    return Values(data_type, sorted(known), bool(column.null_count))
