"""Few rows out of Parquet files, read by this process: no Spark job, no row that is not asked for. Pure.

Only what Spark would read in exactly the same way is read here. Everything else is `Unreadable`, and left to Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_trickle.algebra.comparisons import Comparison
from spark_trickle.storage.columns import Column, Columns, Place
from spark_trickle.storage.passing import passing

FILE, POSITION = "__st_file", "__st_position"
"""Where a row lies: the address of its file and its number in it."""
_KEPT_FOOTERS = 4096
_FEW = 8
"""One row in so many: looking at single rows is quicker than looking through all of them."""
_WRITER = b"org.apache.spark.version"
_OTHER_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_OLD = (date(1900, 1, 1) - date(1970, 1, 1)).days
_WIDER = {
    pa.int8(): {pa.int16(), pa.int32(), pa.int64()},
    pa.int16(): {pa.int32(), pa.int64()},
    pa.int32(): {pa.int64()},
    pa.timestamp("us"): {pa.timestamp("us", "UTC")},
}
"""What a value may be turned into without changing; Spark writes instants as twelve bytes without a zone."""


Positions = np.ndarray[Any, np.dtype[np.int64]]
"""Numbers of rows in a file."""


NOTHING_KEPT = Columns(0)


class Unreadable(Exception):  # noqa: N818 - a fact to act on, never shown
    """Spark might read this file otherwise."""


class TooMany(Exception):  # noqa: N818 - a fact to act on, never shown
    """There are more rows than asked for."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column to read: its name in the result, its path in the files, its type."""

    name: str
    path: tuple[str, ...]
    type: pa.DataType
    is_partition: bool = False
    """Its value is not in the file but the same for all its rows."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Values of which a column must have one."""

    values: pa.Array
    with_null: bool = False
    found: dict[Place, Positions] = field(default_factory=dict, compare=False, repr=False)
    """Where they were found: two versions of a table share most of their files."""

    @property
    def cost(self) -> tuple[bool, int]:
        """What to look for first: numbers before texts, and of which there are most, since those are rarest in a row."""
        return not pa.types.is_integer(self.values.type), -len(self.values)

    def places_at(self, place: Place, column: Column) -> Positions:
        """The same as `places_in`, looked for once in each place."""
        if place not in self.found:
            self.found[place] = self.places_in(column)
        return self.found[place]

    def places_in(self, column: Column) -> Positions:
        """The numbers of the rows that have one of the values, in order."""
        if pa.types.is_integer(self.values.type):
            found = column.places_of(np.unique(self.values.to_numpy(zero_copy_only=False)))
            if found is not None:
                if not self.with_null or not column.values.null_count:
                    return found
                missing = np.flatnonzero(np.asarray(column.values.is_null()))
                return np.sort(np.concatenate((found, missing)))
        return np.flatnonzero(self.hits(column.values))

    def hits(self, values: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of some values are wanted."""
        hits = pc.is_in(values, value_set=self.values)
        return np.asarray(pc.or_(hits, pc.is_null(values)) if self.with_null else hits)

    def may_meet(self, statistics: Any) -> bool:
        """By the least and the greatest value of a piece of a file."""
        if self.with_null or statistics is None or not statistics.has_min_max or not len(self.values):
            return True
        if not (pa.types.is_integer(self.values.type) or pa.types.is_date32(self.values.type)):
            return True
        ends = pc.min_max(self.values).as_py()
        return bool(ends["min"] <= statistics.max and statistics.min <= ends["max"])


@dataclass(frozen=True, slots=True)
class Source:
    """A file: where it is read from, the address its rows are told by, the rows that are hidden."""

    path: str
    address: str
    partition: Mapping[str, str | None]
    hidden: Positions | None = None
    only: Positions | None = None
    """The only rows to read, if given."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of every file."""

    fields: Sequence[Field]
    keys: Mapping[str, Keys]
    """By names of fields; a row has one of the values in each of these columns."""
    most: int
    places: bool = False
    """With the address and the number of every row."""
    only: Sequence[Comparison] = ()
    """Conditions on fields; rows that fail one are left out."""
    kept: Columns = NOTHING_KEPT
    """What was read before."""

    @property
    def schema(self) -> pa.Schema:
        places = [(FILE, pa.string()), (POSITION, pa.int64())] if self.places else []
        return pa.schema([(f.name, f.type) for f in self.fields] + places)


def read_files(sources: Sequence[Source], reading: Reading) -> pa.Table:
    """The rows of several files; raises Unreadable or TooMany."""
    found = read_each(sources, reading)
    return pa.concat_tables(found) if found else reading.schema.empty_table()


def read_each(sources: Sequence[Source], reading: Reading) -> list[pa.Table]:
    """The rows of several files, file by file; raises Unreadable or TooMany."""
    parts: Iterable[pa.Table]
    if len(sources) > 1:
        parts = _workers().map(lambda source: _read_file(source, reading), sources)
    else:
        parts = (_read_file(source, reading) for source in sources)
    found, rows = [], 0
    for part in parts:
        rows += part.num_rows
        if rows > reading.most:
            raise TooMany
        found.append(part)
    return found


@lru_cache(maxsize=1)
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 2, thread_name_prefix="parquet")


@lru_cache(maxsize=_KEPT_FOOTERS)
def _footer(path: str) -> tuple[pq.FileMetaData, pa.Schema]:
    """A file never changes, so its footer is read once."""
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        return file.metadata, file.schema_arrow


def _read_file(source: Source, reading: Reading) -> pa.Table:
    try:
        footer, schema = _footer(source.path)
    except (OSError, pa.ArrowException) as error:
        raise Unreadable(str(error)) from error
    certain = not _needs_calendar(reading) or _has_one_calendar(footer)
    if not certain:
        reading = _without_days(reading)
    parts = []
    try:
        with pq.ParquetFile(
            source.path, metadata=footer, coerce_int96_timestamp_unit="us", memory_map=True
        ) as file:
            first = 0
            for number in range(footer.num_row_groups):
                piece = _Piece(file, number, first, schema, source)
                parts.append(piece.rows(reading))
                first += footer.row_group(number).num_rows
    except (OSError, pa.ArrowException) as error:
        raise Unreadable(str(error)) from error
    found = pa.concat_tables(parts) if parts else reading.schema.empty_table()
    if not certain:
        _check_recent(found)
    return found


@dataclass(frozen=True, slots=True)
class _Piece:
    """A row group."""

    file: pq.ParquetFile
    number: int
    first: int
    schema: pa.Schema
    source: Source

    def rows(self, reading: Reading) -> pa.Table:
        count = self.file.metadata.row_group(self.number).num_rows
        by_name = {f.name: f for f in reading.fields}
        known: dict[str, Column] = {}
        chosen: Positions | None = self._only(count)
        if not all(self._may_meet(by_name[name], keys) for name, keys in reading.keys.items()):
            return reading.schema.empty_table()
        for name, keys in sorted(reading.keys.items(), key=lambda one: one[1].cost):
            known |= self._columns([by_name[name]], count, reading.kept, searched=chosen is None)
            if chosen is not None and chosen.size * _FEW < count:
                chosen = chosen[keys.hits(known[name].values.take(chosen))]
            else:
                hits = keys.places_at(self._place(by_name[name]), known[name])
                chosen = hits if chosen is None else np.intersect1d(chosen, hits, assume_unique=True)
            if not chosen.size:
                return reading.schema.empty_table()
        chosen = self._shown(np.arange(count) if chosen is None else chosen)
        for comparison in reading.only:
            name = comparison.column
            if chosen.size and name in by_name:
                known |= self._columns([by_name[name]] if name not in known else [], count, reading.kept)
                chosen = chosen[passing(comparison, known[name].values.take(chosen))]
        if chosen.size > reading.most:
            raise TooMany
        if not chosen.size:
            return reading.schema.empty_table()
        known |= self._columns([f for f in reading.fields if f.name not in known], count, reading.kept)
        every = chosen.size == count
        values = [known[f.name].values for f in reading.fields]
        columns = values if every else [column.take(chosen) for column in values]
        if reading.places:
            columns.append(pa.repeat(pa.scalar(self.source.address), chosen.size))
            columns.append(pa.array(chosen + self.first, pa.int64()))
        return pa.table(columns, schema=reading.schema)

    def _only(self, count: int) -> Positions | None:
        only = self.source.only
        if only is None:
            return None
        return only[(only >= self.first) & (only < self.first + count)] - self.first

    def _shown(self, chosen: Positions) -> Positions:
        hidden = self.source.hidden
        if hidden is None or not hidden.size:
            return chosen
        return chosen[~np.isin(chosen + self.first, hidden)]

    def _may_meet(self, field: Field, keys: Keys) -> bool:
        if field.is_partition or len(field.path) > 1 or self.schema.get_field_index(field.path[0]) < 0:
            return True
        group = self.file.metadata.row_group(self.number)
        for place in range(group.num_columns):
            column = group.column(place)
            if column.path_in_schema == field.path[0]:
                return keys.may_meet(column.statistics)
        return True

    def _columns(
        self, fields: Sequence[Field], count: int, kept: Columns, *, searched: bool = False
    ) -> dict[str, Column]:
        places = {f.name: self._place(f) for f in fields}
        stored = [f for f in fields if not f.is_partition and self._has(f)]
        found: dict[str, Column] = {}
        for one in stored:
            known = kept.get(places[one.name], searched=searched)
            if known is not None and known.values.type == one.type:
                found[one.name] = known
        missing = [f for f in stored if f.name not in found]
        if missing:
            read = self.file.read_row_group(
                self.number, columns=[".".join(f.path) for f in missing], use_threads=False
            )
            for one in missing:
                values = _typed(_inside(read.column(one.path[0]), one.path[1:]), one.type)
                found[one.name] = kept.keep(places[one.name], values, searched=searched)
        for one in fields:
            if one.is_partition:
                value = _partition_value(self.source.partition.get(one.path[0]), one.type)
                found[one.name] = Column(pa.chunked_array([pa.repeat(value, count)]))
            elif one.name not in found:
                found[one.name] = Column(pa.chunked_array([pa.nulls(count, one.type)]))
        return found

    def _place(self, field: Field) -> Place:
        return self.source.path, self.number, ".".join(field.path)

    def _has(self, field: Field) -> bool:
        """A file that was written before a column was added does not have it: its values are NULL."""
        place = self.schema.get_field_index(field.path[0])
        if place < 0:
            return False
        inner = self.schema.field(place).type
        for name in field.path[1:]:
            if not pa.types.is_struct(inner) or inner.get_field_index(name) < 0:
                raise Unreadable("a nested column that the file does not have")
            inner = inner.field(name).type
        return True


def _inside(column: pa.ChunkedArray, path: tuple[str, ...]) -> pa.ChunkedArray:
    return pc.struct_field(column, list(path)) if path else column


def _typed(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type == wanted:
        return column
    if wanted not in _WIDER.get(column.type, ()):
        raise Unreadable(f"{column.type} instead of {wanted}")
    return column.cast(wanted)


def _partition_value(text: str | None, wanted: pa.DataType) -> pa.Scalar:
    if text is None or text == "":
        return pa.scalar(None, wanted)
    if pa.types.is_string(wanted):
        return pa.scalar(text, wanted)
    try:
        if pa.types.is_integer(wanted):
            return pa.scalar(int(text), wanted)
        if pa.types.is_date32(wanted):
            return pa.scalar(date.fromisoformat(text), wanted)
    except (ValueError, pa.ArrowException) as error:
        raise Unreadable(str(error)) from error
    raise Unreadable(f"a partition by {wanted}")


def _is_time(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_date32(data_type) or pa.types.is_timestamp(data_type))


def _needs_calendar(reading: Reading) -> bool:
    return any(_is_time(field.type) for field in reading.fields)


def _has_one_calendar(footer: pq.FileMetaData) -> bool:
    """Its days and instants are counted as Spark counts them today."""
    written = footer.metadata or {}
    if any(name in written for name in _OTHER_CALENDAR):
        return False
    version = written.get(_WRITER, b"").split(b".")
    return (
        len(version) > 1 and all(p.isdigit() for p in version[:2]) and tuple(map(int, version[:2])) >= (3, 1)
    )


def _without_days(reading: Reading) -> Reading:
    """What may be asked of a file whose days may be counted otherwise: they cannot be looked for, and leave no row out."""
    days = {field.name for field in reading.fields if _is_time(field.type)}
    if days & reading.keys.keys():
        raise Unreadable("days may be counted otherwise")
    return replace(reading, only=[one for one in reading.only if one.column not in days])


def _check_recent(rows: pa.Table) -> None:
    """Since 1900 all calendars and zones agree."""
    for column in rows.columns:
        if _is_time(column.type) and len(column):
            # As a number: there are days that Python does not know.
            least = pc.min(column.cast(pa.date32()).cast(pa.int32())).as_py()
            if least is not None and least < _OLD:
                raise Unreadable("days may be counted otherwise")
