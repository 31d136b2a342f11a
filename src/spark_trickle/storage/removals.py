"""Rows to remove from a table: where they lie, and the deletion vectors that mark them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows
from pyspark.sql.types import DataType, LongType, StructField, StructType

from spark_trickle.catalyst import held
from spark_trickle.catalyst.few import Few, places_of
from spark_trickle.catalyst.holder import Difference
from spark_trickle.catalyst.identity import encode, needs_encoding
from spark_trickle.catalyst.java import scala_longs
from spark_trickle.catalyst.listing import can_go_by_page, one_of, ranges_of, whole_numbers
from spark_trickle.catalyst.plan import Plan, Planner, items, output
from spark_trickle.errors import IntegrityError
from spark_trickle.names import WEIGHT
from spark_trickle.storage.direct import local_relation, located, relation, values_in, with_places
from spark_trickle.storage.files import DataFile
from spark_trickle.storage.layout import Layout
from spark_trickle.storage.tables import DeltaTables, Snapshot

PLACE = ("_metadata.file_path AS __st_file", "_metadata.row_index AS __st_position")
"""Where a row of a table lies, as two columns."""
_DRIVER_POSITIONS = 2_000
_BROADCAST_ROWS = 100_000
_CANDIDATES = 20_000
"""So many rows that may be meant are collected from a job at the most;"""
_LOOKED_UP = 4
"""of those that the driver finds in the files, so many times those that are meant."""
_INLINE_BYTES = 4096
"""A larger deletion vector has a file of its own: the log is read whenever the table is."""


def removals(
    tables: DeltaTables, snapshot: Snapshot, layout: Layout, difference: Difference, expected: int
) -> list[Any]:
    """The actions that remove so many rows, exactly those of negative weight."""
    places = difference.removed or _places_at_hand(tables, snapshot, layout, difference.rows, expected)
    if places is not None:
        _check_found(held.count(places), expected)
        found = Planner(tables.spark).frame(places)
        if expected <= _DRIVER_POSITIONS:
            return _mark(tables, snapshot, found.collect())
        return _mark_distributed(tables, snapshot, found.toDF("file", "position"))
    hits = _hits(tables, snapshot, layout, difference.rows, small=expected <= _BROADCAST_ROWS)
    if expected <= _DRIVER_POSITIONS:
        return _mark(tables, snapshot, _chosen_on_driver(hits, expected))
    chosen = _chosen(hits).persist()
    try:
        _check_found(chosen.count(), expected)
        return _mark_distributed(tables, snapshot, chosen)
    finally:
        chosen.unpersist()


def few_removals(
    tables: DeltaTables, snapshot: Snapshot, layout: Layout, few: Few, expected: int
) -> list[Any]:
    """The same for a change in the driver's memory."""
    places = few.places if few.places is not None else _places_of(tables, snapshot, layout, few)
    if places is None:
        difference = handed_over(tables, layout, few)
        return removals(tables, snapshot, layout, difference, expected)
    _check_found(places.num_rows, expected)
    return _mark(tables, snapshot, zip(*(column.to_pylist() for column in places.columns), strict=True))


def _places_of(tables: DeltaTables, snapshot: Snapshot, layout: Layout, few: Few) -> pa.Table | None:
    """Where the rows to remove lie, found by their own values; None: ask Spark."""
    weights = few.weights
    chosen = [row for row, weight in enumerate(weights) if weight < 0]
    removed = few.change.drop_columns([few.change.column_names[-1]]).take(chosen)
    keys = {
        f.name: values
        for f, column in zip(layout.flat.fields, removed.columns, strict=True)
        if (values := values_in(f.dataType.simpleString(), column)) is not None
    }
    most = max(_CANDIDATES, _LOOKED_UP * few.removed)
    stored = located(tables, snapshot, layout.paths, keys, most) if keys else None
    if stored is None:
        return None
    return places_of(removed, [-weights[row] for row in chosen], stored, len(PLACE))


def handed_over(tables: DeltaTables, layout: Layout, few: Few) -> Difference:
    """A change in the driver's memory as one of Spark's."""
    planner = Planner(tables.spark)
    schema = StructType([*layout.flat.fields, StructField(WEIGHT, LongType())])
    places = None if few.places is None else local_relation(tables, few.places, with_places([]))
    return Difference(planner.frame(relation(tables, few.change, schema)), places)


def _places_at_hand(
    tables: DeltaTables, snapshot: Snapshot, layout: Layout, change: DataFrame, expected: int
) -> Plan | None:
    """The places of few removed rows, by one scan of what may equal them; None where that does not tell.

    A row that occurs several times, here or there, is left to the general way.
    """
    planner = Planner(change.sparkSession)
    if not held.is_held(planner.analyzed(change)):
        return None
    types = [f.dataType for f in layout.flat.fields]
    removed = change.where(f"{WEIGHT} < 0").drop(WEIGHT).toDF(*_places("r", types))
    values = held.hold(planner, removed)
    if values is None or held.count(values) != expected:
        return None
    names = {i: f.name for i, f in enumerate(layout.visible.fields)}
    numbers = {i: whole_numbers(planner, values, i) for i in names}
    within = {name: ranges_of(numbers[i]) for i, name in names.items()}
    by_page = {i for i, n in numbers.items() if can_go_by_page(n) and snapshot.prunes_pages(names[i], n)}
    rows = tables.in_session(change.sparkSession).rows(snapshot, within=within)
    stored = planner.analyzed(rows.selectExpr(*layout.unpack(), *PLACE))
    columns = output(stored)[: len(types)]
    listed = [one_of(planner, column, values, i, by_page=i in by_page) for i, column in enumerate(columns)]
    conditions = [condition for condition in listed if condition is not None]
    if not conditions:
        return None
    candidates = planner.frame(planner.filter(planner.all_of(conditions), stored))
    coded = _encoded(candidates.toDF(*_places("r", types), "file", "position"), "r", types)
    found = held.hold(planner, coded.select(*_places("r", types), "file", "position"), _CANDIDATES)
    if found is None:
        return None
    have = output(found)
    return held.partners(
        planner,
        held.hold(planner, _encoded(planner.frame(values), "r", types)),
        held.columns_of(planner, found, have[: len(types)]),
        held.columns_of(planner, found, have[len(types) :]),
    )


def _hits(
    tables: DeltaTables, snapshot: Snapshot, layout: Layout, change: DataFrame, *, small: bool
) -> DataFrame:
    """Where copies of the removed rows lie: row to remove, how many of it, file, position."""
    types = [f.dataType for f in layout.flat.fields]
    removed = change.where(f"{WEIGHT} < 0").selectExpr(
        "*", "monotonically_increasing_id() AS __st_id", f"-{WEIGHT} AS __st_need"
    )
    wanted = _encoded(removed.drop(WEIGHT).toDF(*_places("r", types), "id", "need"), "r", types)
    # Each row once: two that are the same would both be found at the same place.
    wanted = wanted.groupBy(*_places("r", types)).agg(F.min("id").alias("id"), F.sum("need").alias("need"))
    stored = tables.rows(snapshot).selectExpr(*layout.unpack(), *PLACE)
    located = _encoded(stored.toDF(*_places("s", types), "file", "position"), "s", types)
    pairs = zip(_places("s", types), _places("r", types), strict=True)
    same = F.expr(" AND ".join(f"{have} <=> {want}" for have, want in pairs))
    return located.join(F.broadcast(wanted) if small else wanted, same).select(
        "id", "need", "file", "position"
    )


def _places(prefix: str, types: list[DataType]) -> list[str]:
    return [f"{prefix}{i}" for i in range(len(types))]


def _encoded(frame: DataFrame, prefix: str, types: list[DataType]) -> DataFrame:
    """The frame with its columns by place in a form in which equality is identity."""
    for name, data_type in zip(_places(prefix, types), types, strict=True):
        if needs_encoding(data_type):
            frame = frame.withColumn(name, encode(F.col(name), data_type))
    return frame


def _chosen_on_driver(hits: DataFrame, expected: int) -> list[tuple[str, int]]:
    """As many places of every row as copies of it are to be removed."""
    taken: dict[int, int] = defaultdict(int)
    places = []
    for number, need, file, position in hits.collect():
        if taken[number] < need:
            taken[number] += 1
            places.append((file, position))
    _check_found(len(places), expected)
    return places


def _mark(tables: DeltaTables, snapshot: Snapshot, places: Iterable[tuple[str, int]]) -> list[Any]:
    """Deletion vectors for rows by file and position."""
    positions: dict[str, list[int]] = defaultdict(list)
    for file, position in places:
        positions[file].append(position)
    files = _files_at(tables, snapshot, positions)
    marked = [(files[url], _bitmap(tables, snapshot, files[url], rows)) for url, rows in positions.items()]
    vectors = _vectors(tables, snapshot, [bitmap for _, bitmap in marked])
    actions: list[Any] = []
    for (file, bitmap), vector in zip(marked, vectors, strict=True):
        actions += _replaced(file, vector, int(bitmap.cardinality()))
    return actions


def _bitmap(tables: DeltaTables, snapshot: Snapshot, file: Any, rows: list[int]) -> Any:
    """The rows to remove from a file and those that are hidden already."""
    bitmap = tables.jvm.org.apache.spark.sql.delta.deletionvectors.RoaringBitmapArray()
    bitmap.addAll(scala_longs(tables.spark, rows))
    if file.deletionVector() is not None:
        bitmap.merge(tables.vectors.stored(snapshot.log, snapshot.place, file.deletionVector()))
    return bitmap


def _vectors(tables: DeltaTables, snapshot: Snapshot, bitmaps: list[Any]) -> list[Any]:
    """As part of the log while all are small, else in one file."""
    delta = tables.jvm.org.apache.spark.sql.delta
    form = getattr(getattr(delta.deletionvectors, "RoaringBitmapArrayFormat$"), "MODULE$").Portable()
    descriptor = delta.actions.DeletionVectorDescriptor
    written = [bitmap.serializeAsByteArray(form) for bitmap in bitmaps]
    if all(len(data) <= _INLINE_BYTES for data in written):
        return [descriptor.inlineInLog(d, b.cardinality()) for d, b in zip(written, bitmaps, strict=True)]
    return tables.vectors.written(snapshot.log, snapshot.place, written, [b.cardinality() for b in bitmaps])


def _replaced(file: Any, vector: Any, cardinality: int) -> list[Any]:
    physical = file.numPhysicalRecords()
    if physical.isDefined() and int(physical.get()) == cardinality:
        return [file.removeWithTimestamp(int(time.time() * 1000), True)]
    pair = file.removeRows(vector, True, True)
    return [pair._1(), pair._2()]


def _chosen(hits: DataFrame) -> DataFrame:
    """The same for many rows: positions never pass through the driver."""
    order = Window.partitionBy("id").orderBy("file", "position")
    return hits.withColumn("n", F.row_number().over(order)).where("n <= need").select("file", "position")


def _mark_distributed(tables: DeltaTables, snapshot: Snapshot, places: DataFrame) -> list[Any]:
    """Deletion vectors for many rows."""
    files = _by_url(tables, snapshot, snapshot.by_content.values())
    vectors = [
        (url, str(file.deletionVector().serializeToBase64()))
        for url, file in files.items()
        if file.deletionVector() is not None
    ]
    known = tables.spark.createDataFrame(vectors, "file string, deletionVectorId string")
    rows = places.join(F.broadcast(known), "file", "left").select(
        F.col("file").alias("filePath"), "deletionVectorId", F.col("position").alias("rowIndexCol")
    )
    generator = tables.jvm.org.apache.spark.sql.delta.commands.DeletionVectorBitmapGenerator
    results = generator.buildDeletionVectors(tables.spark._jsparkSession, rows._jdf, snapshot.log, 0)
    actions: list[Any] = []
    for result in items(results):
        vector = result.deletionVector()
        actions += _replaced(files[str(result.filePath())], vector, int(vector.cardinality()))
    return actions


def _check_found(found: int, expected: int) -> None:
    if found != expected:
        raise IntegrityError(
            f"{expected} rows are to be removed, but the table holds only {found} of them.",
            hint="Run `trickle verify NAME --repair`; the next refresh rebuilds the table otherwise.",
        )


def _by_url(tables: DeltaTables, snapshot: Snapshot, files: Iterable[DataFile]) -> dict[str, Any]:
    """Files of a version by their addresses."""
    return {tables.address(snapshot, file): snapshot.action(file) for file in files}


def _files_at(tables: DeltaTables, snapshot: Snapshot, urls: Collection[str]) -> dict[str, Any]:
    """The files of a version that lie at these addresses, found by their own names if those are written alike."""
    every = snapshot.by_content.values()
    names = {_last_part(url) for url in urls}
    found = _by_url(tables, snapshot, [file for file in every if _last_part(file.path) in names])
    return found if found.keys() >= set(urls) else _by_url(tables, snapshot, every)


def _last_part(path: str) -> str:
    return path.rpartition("/")[2]
