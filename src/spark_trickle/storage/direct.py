"""Few rows of a version, read by the driver from the files and held by it: no Spark job.

Reading a column of a million rows takes milliseconds, a Spark job takes ten times that before it has read anything.
Where the driver cannot promise to read what Spark would read, or would have to read too much, it says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql.types import DataType, DecimalType, LongType, StringType, StructField, StructType

from spark_trickle.catalyst.java import scala_object
from spark_trickle.catalyst.listing import Values, ranges_of_values
from spark_trickle.catalyst.plan import Plan, kind_of
from spark_trickle.storage.files import DataFile
from spark_trickle.storage.parquet import (
    FILE,
    POSITION,
    Field,
    Keys,
    Reading,
    Source,
    TooMany,
    Unreadable,
    read_files,
)
from spark_trickle.storage.tables import PHYSICAL, DeltaTables, Snapshot

_ARROW = {
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
_WHOLE = {"bigint": pa.int64(), "int": pa.int32(), "smallint": pa.int16(), "tinyint": pa.int8()}
Path = tuple[str, ...]
"""A column, or one inside a struct, by names."""


def arrow_type(data_type: DataType) -> pa.DataType | None:
    """The type in which files and Spark share values; None where they may not."""
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, StringType):
        return pa.string() if data_type.simpleString() == "string" else None
    return _ARROW.get(data_type.typeName())


def look_up(
    tables: DeltaTables,
    snapshot: Snapshot,
    columns: Mapping[str, Path],
    keys: Mapping[str, Values],
    most: int,
    *,
    places: bool = False,
) -> Plan | None:
    """Some columns of the rows that have one of the values in each column of `keys`; None: ask Spark.

    With `places`, the last two columns tell where each row lies.
    """
    wanted = {name: found for name, values in keys.items() if (found := _keys(values)) is not None}
    if not wanted:
        return None
    within = {
        columns[n][0]: ranges_of_values(v) for n, v in keys.items() if n in wanted and len(columns[n]) == 1
    }
    files = snapshot.files_within(within)
    return _read(tables, snapshot, files, columns, Terms(wanted, most, tables.most_scanned, places))


def read_all(tables: DeltaTables, snapshot: Snapshot, columns: Mapping[str, Path], most: int) -> Plan | None:
    """Some columns of all rows, if they are few, with their places; None: ask Spark."""
    return _read(tables, snapshot, None, columns, Terms({}, most, most, places=True))


def read_whole(tables: DeltaTables, snapshot: Snapshot, columns: Sequence[str], most: int) -> Plan | None:
    """Some columns of all rows of a small table, read once; None: ask Spark."""

    def read() -> Plan | None:
        terms = Terms({}, most, most)
        return _read(tables, snapshot, None, {c: (c,) for c in columns}, terms)

    return tables.remember_whole(snapshot, tuple(columns), read)


@dataclass(frozen=True, slots=True)
class Terms:
    """Which rows, how many of them at most, out of how many at most, and whether with their places."""

    keys: Mapping[str, Keys]
    most: int
    most_scanned: int
    places: bool = False


def _read(
    tables: DeltaTables,
    snapshot: Snapshot,
    files: Sequence[DataFile] | None,
    columns: Mapping[str, Path],
    terms: Terms,
) -> Plan | None:
    chosen = list(snapshot.by_content.values()) if files is None else files
    counts = [file.written_rows for file in chosen]
    if None in counts or sum(count or 0 for count in counts) > terms.most_scanned:
        return None
    described = [_described(snapshot, name, path) for name, path in columns.items()]
    fields = [pair for pair in described if pair is not None]
    if len(fields) < len(described) or not _is_local(snapshot.place):
        return None
    reading = Reading([field for field, _ in fields], terms.keys, terms.most, terms.places)
    try:
        rows = read_files([_source(tables, snapshot, file, terms.places) for file in chosen], reading)
    except (Unreadable, TooMany):
        return None
    own = [StructField(field.name, kind) for field, kind in fields]
    where = [StructField(FILE, StringType()), StructField(POSITION, LongType())] if terms.places else []
    return local_relation(tables, rows, StructType(own + where))


def _is_local(address: str) -> bool:
    return _local(address) is not None


def local_relation(tables: DeltaTables, rows: pa.Table, schema: StructType) -> Plan | None:
    """Rows of this process as a relation of the driver."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        # In one piece: Spark stops reading at an empty one.
        writer.write_table(rows.combine_chunks())
    jvm = tables.jvm
    channel = jvm.java.nio.channels.Channels.newChannel(
        jvm.java.io.ByteArrayInputStream(stream.getvalue().to_pybytes())
    )
    converters = scala_object(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters")
    wanted = jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
    frame = converters.toDataFrame(
        converters.getBatchesFromStream(channel), wanted, tables.spark._jsparkSession, "UTC", True, False
    )
    plan = frame.queryExecution().analyzed()
    return plan if kind_of(plan) == "LocalRelation" else None


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


def _source(tables: DeltaTables, snapshot: Snapshot, file: DataFile, places: bool) -> Source:
    root = snapshot.place
    path = _local(file.path if urlsplit(file.path).scheme else f"{root}/{file.path}")
    if path is None:
        raise Unreadable(file.path)
    address = tables.address(snapshot, file) if places else ""
    return Source(path, address, file.partition, partial(tables.hidden_rows, snapshot, file))


def _local(address: str) -> str | None:
    """The path of a local file; None for one that lies elsewhere."""
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme in {"", "file"} and not parts.netloc else None


def _keys(values: Values) -> Keys | None:
    if values.type == "string":
        return Keys(pa.array(values.known, pa.string()), values.with_null)
    if values.type == "date":
        return Keys(pa.array(values.known, pa.int32()).cast(pa.date32()), values.with_null)
    kind = _WHOLE.get(values.type)
    return None if kind is None else Keys(pa.array(values.known, kind), values.with_null)
