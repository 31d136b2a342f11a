"""A change → one Delta commit that carries the rows, the change feed, the frontier and a transaction number.

Rows to remove are found by one scan, marked by deletion vectors, and committed through Delta's own optimistic
transaction: a concurrent writer or a second refresher is noticed, a repeated refresh is a no-op.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import delta.exceptions as conflicts
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows
from pyspark.sql.types import DataType

from spark_trickle.catalyst import held
from spark_trickle.catalyst.holder import Difference
from spark_trickle.catalyst.identity import encode, needs_encoding
from spark_trickle.catalyst.java import scala_seq
from spark_trickle.catalyst.listing import one_of
from spark_trickle.catalyst.plan import WEIGHT, Plan, Planner, items, kind_of, output
from spark_trickle.errors import IntegrityError, RefreshError
from spark_trickle.names import quote
from spark_trickle.storage.commits import Stamp
from spark_trickle.storage.layout import Layout
from spark_trickle.storage.tables import DeltaTables, Snapshot

PLACE = ("_metadata.file_path AS __st_file", "_metadata.row_index AS __st_position")
"""Where a row of a table lies, as two columns."""
_DRIVER_POSITIONS = 2_000
_ONE_FILE_ROWS = 100_000
_CANDIDATES = 20_000

CONFLICTS = (
    conflicts.ConcurrentAppendException,
    conflicts.ConcurrentDeleteReadException,
    conflicts.ConcurrentDeleteDeleteException,
    conflicts.ConcurrentTransactionException,
    conflicts.ConcurrentWriteException,
    conflicts.MetadataChangedException,
    conflicts.ProtocolChangedException,
    conflicts.DeltaConcurrentModificationException,
)


@dataclass(frozen=True, slots=True)
class Written:
    """What a commit did."""

    version: int
    rows_inserted: int
    rows_deleted: int


def transaction_of(stream_table_id: str) -> str:
    """The name under which a stream table's refreshes are numbered in its Delta log."""
    return f"spark-trickle:{stream_table_id}"


def overwrite(tables: DeltaTables, location: str, layout: Layout, rows: DataFrame, stamp: Stamp) -> Written:
    """Replace the whole content, and the schema if it changed, in one commit."""
    before = tables.latest_snapshot(location)
    packed = layout.pack(rows)
    if tables.rows(before).dtypes == packed.dtypes:
        return _replace_files(tables, before, packed, stamp)
    mapping = "delta.columnMapping.mode"
    if mapping in layout.properties and before.setting(mapping) != layout.properties[mapping]:
        mode = layout.properties[mapping]
        tables.spark.sql(f"ALTER TABLE delta.{quote(location)} SET TBLPROPERTIES ('{mapping}' = '{mode}')")
    try:
        (
            packed.write.format("delta")
            .mode("overwrite")
            .option("overwriteSchema", "true")
            .option("userMetadata", stamp.to_json())
            .option("txnAppId", transaction_of(stamp.stream_table_id))
            .option("txnVersion", stamp.sequence)
            .save(location)
        )
    except CONFLICTS as error:
        raise _conflict(location) from error
    after = tables.latest_snapshot(location)
    return Written(after.version, after.row_count, before.row_count)


def _replace_files(tables: DeltaTables, before: Snapshot, packed: DataFrame, stamp: Stamp) -> Written:
    """Every file out, new ones in."""
    transaction = _begin(tables, before, stamp)
    added = items(transaction.writeFiles(packed._jdf))
    inserted = sum(int(file.numLogicalRecords().get()) for file in added)
    stamp = replace(stamp, rows_inserted=inserted, rows_deleted=before.row_count)
    now = int(time.time() * 1000)
    removed = [file.removeWithTimestamp(now, True) for file in before.by_content.values()]
    version = _commit(tables, transaction, before, [*removed, *added], stamp)
    return Written(version, inserted, before.row_count)


def add_change(
    tables: DeltaTables, snapshot: Snapshot, layout: Layout, difference: Difference, stamp: Stamp
) -> Written:
    """Add a netted change to the table: +w inserts w copies of a row, −w removes exactly w of its copies.

    `snapshot` is the version the change was computed against; a commit since then is a conflict.
    """
    change = difference.rows
    inserted, deleted = _totals(change)
    stamp = replace(stamp, rows_inserted=inserted, rows_deleted=deleted)
    transaction = _begin(tables, snapshot, stamp)
    actions = _removals(tables, snapshot, layout, difference, deleted) if deleted else []
    feed = snapshot.setting("delta.enableChangeDataFeed") == "true"
    actions += _additions(transaction, layout, change, inserted + deleted, feed=feed)
    version = _commit(tables, transaction, snapshot, actions, stamp)
    return Written(version, inserted, deleted)


def _begin(tables: DeltaTables, snapshot: Snapshot, stamp: Stamp) -> Any:
    """A transaction that notices every other writer, and a refresh that was committed already."""
    transaction = snapshot.log.startTransaction(tables.none, tables.jvm.scala.Option.apply(snapshot.state))
    transaction.readWholeTable()
    if _last_number(snapshot, transaction, transaction_of(stamp.stream_table_id)) >= stamp.sequence:
        raise RefreshError(
            "Another process has refreshed this table in the meantime.",
            hint="Refresh again; its result is already in the table.",
            code="ALREADY_REFRESHED",
        )
    return transaction


def _last_number(snapshot: Snapshot, transaction: Any, application: str) -> int:
    """The number of the newest refresh in the log: from the checksum, which spares a Spark job, where it has it."""
    checksum = snapshot.state.checksumOpt()
    if checksum.isDefined() and checksum.get().setTransactions().isDefined():
        known = {str(t.appId()): int(t.version()) for t in items(checksum.get().setTransactions().get())}
        return known.get(application, -1)
    return int(transaction.txnVersion(application))


def _commit(
    tables: DeltaTables, transaction: Any, snapshot: Snapshot, actions: list[Any], stamp: Stamp
) -> int:
    numbered = _transaction_action(tables, transaction_of(stamp.stream_table_id), stamp.sequence)
    try:
        return int(transaction.commit(scala_seq(tables.jvm, [*actions, numbered]), _operation(tables, stamp)))
    except CONFLICTS as error:
        raise _conflict(str(snapshot.log.dataPath().toString())) from error


def _totals(change: DataFrame) -> tuple[int, int]:
    """Rows added and removed. A small change is held by the driver and counted there, without a job."""
    weight = F.col(WEIGHT)
    if kind_of(change._jdf.queryExecution().analyzed()) == "LocalRelation":
        weights = [row[0] for row in change.select(weight).collect()]
        return sum(w for w in weights if w > 0), -sum(w for w in weights if w < 0)
    zero = F.lit(0)
    totals = change.agg(F.sum(F.greatest(weight, zero)), F.sum(F.greatest(-weight, zero)))
    added, removed = totals.collect()[0]
    return int(added or 0), int(removed or 0)


# Removing rows


def _removals(
    tables: DeltaTables, snapshot: Snapshot, layout: Layout, difference: Difference, expected: int
) -> list[Any]:
    places = difference.removed or _places_at_hand(tables, snapshot, layout, difference.rows, expected)
    if places is not None:
        found = Planner(tables.spark).frame(places).collect()
        _check_found(len(found), expected)
        return _mark(tables, snapshot, found)
    hits = _hits(tables, snapshot, layout, difference.rows, small=expected <= _ONE_FILE_ROWS)
    if expected <= _DRIVER_POSITIONS:
        return _mark_on_driver(tables, snapshot, hits, expected)
    return _mark_distributed(tables, snapshot, hits, expected)


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
    rows = tables.in_session(change.sparkSession).rows(snapshot)
    stored = planner.analyzed(rows.selectExpr(*layout.unpack(), *PLACE))
    columns = output(stored)[: len(types)]
    listed = [one_of(planner, column, values, i) for i, column in enumerate(columns)]
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


def _mark_on_driver(tables: DeltaTables, snapshot: Snapshot, hits: DataFrame, expected: int) -> list[Any]:
    taken: dict[int, int] = defaultdict(int)
    places = []
    for number, need, file, position in hits.collect():
        if taken[number] < need:
            taken[number] += 1
            places.append((file, position))
    _check_found(len(places), expected)
    return _mark(tables, snapshot, places)


def _mark(tables: DeltaTables, snapshot: Snapshot, places: Iterable[tuple[str, int]]) -> list[Any]:
    """Deletion vectors for rows by file and position."""
    positions: dict[str, list[int]] = defaultdict(list)
    for file, position in places:
        positions[file].append(position)
    files = _files_by_url(tables, snapshot)
    actions: list[Any] = []
    for url, rows in positions.items():
        actions += _with_rows_removed(tables, snapshot, files[url], rows)
    return actions


def _with_rows_removed(tables: DeltaTables, snapshot: Snapshot, file: Any, rows: list[int]) -> list[Any]:
    delta = tables.jvm.org.apache.spark.sql.delta
    bitmap = delta.deletionvectors.RoaringBitmapArray()
    for row in rows:
        bitmap.add(row)
    if file.deletionVector() is not None:
        store = delta.storage.dv.HadoopFileSystemDVStore(snapshot.log.newDeltaHadoopConf())
        stored = delta.deletionvectors.StoredBitmap.create(file.deletionVector(), snapshot.log.dataPath())
        bitmap.merge(stored.load(store))
    form = getattr(getattr(delta.deletionvectors, "RoaringBitmapArrayFormat$"), "MODULE$").Portable()
    descriptor = delta.actions.DeletionVectorDescriptor
    vector = descriptor.inlineInLog(bitmap.serializeAsByteArray(form), bitmap.cardinality())
    return _replaced(file, vector, int(bitmap.cardinality()))


def _replaced(file: Any, vector: Any, cardinality: int) -> list[Any]:
    physical = file.numPhysicalRecords()
    if physical.isDefined() and int(physical.get()) == cardinality:
        return [file.removeWithTimestamp(int(time.time() * 1000), True)]
    pair = file.removeRows(vector, True, True)
    return [pair._1(), pair._2()]


def _mark_distributed(tables: DeltaTables, snapshot: Snapshot, hits: DataFrame, expected: int) -> list[Any]:
    """The same for many rows: positions never pass through the driver."""
    order = Window.partitionBy("id").orderBy("file", "position")
    chosen = hits.withColumn("n", F.row_number().over(order)).where(F.col("n") <= F.col("need")).persist()
    try:
        _check_found(chosen.count(), expected)
        files = _files_by_url(tables, snapshot)
        vectors = [
            (url, str(file.deletionVector().serializeToBase64()))
            for url, file in files.items()
            if file.deletionVector() is not None
        ]
        known = tables.spark.createDataFrame(vectors, "file string, deletionVectorId string")
        rows = chosen.join(F.broadcast(known), "file", "left").select(
            F.col("file").alias("filePath"), "deletionVectorId", F.col("position").alias("rowIndexCol")
        )
        generator = tables.jvm.org.apache.spark.sql.delta.commands.DeletionVectorBitmapGenerator
        results = generator.buildDeletionVectors(tables.spark._jsparkSession, rows._jdf, snapshot.log, 0)
        actions: list[Any] = []
        for result in items(results):
            vector = result.deletionVector()
            actions += _replaced(files[str(result.filePath())], vector, int(vector.cardinality()))
        return actions
    finally:
        chosen.unpersist()


def _check_found(found: int, expected: int) -> None:
    if found != expected:
        raise IntegrityError(
            f"{expected} rows are to be removed, but the table holds only {found} of them.",
            hint="Run `trickle verify NAME --repair`; the next refresh rebuilds the table otherwise.",
        )


def _files_by_url(tables: DeltaTables, snapshot: Snapshot) -> dict[str, Any]:
    operations = tables.jvm.org.apache.spark.sql.delta.util.DeltaFileOperations
    paths = tables.jvm.org.apache.spark.paths.SparkPath
    root = str(snapshot.log.dataPath().toString())
    return {
        str(paths.fromPath(operations.absolutePath(root, file.path())).urlEncoded()): file
        for file in items(snapshot.files)
    }


# Adding rows


def _additions(transaction: Any, layout: Layout, change: DataFrame, rows: int, *, feed: bool) -> list[Any]:
    """New rows as table data and as change rows, removed rows as change rows, in one job.

    Somebody may have switched the table's change feed off; then change rows would become table data.
    """
    kind = "_change_type"
    copies = f"CAST(abs({WEIGHT}) AS INT)"
    added = f"flatten(array_repeat(array(CAST(NULL AS STRING), 'insert'), {copies}))"
    removed = f"array_repeat('delete', {copies})"
    frame = layout.pack(change, f"explode(if({WEIGHT} > 0, {added}, {removed})) AS {kind}")
    if not feed:
        frame = frame.where(f"{kind} IS NULL").drop(kind)
    if rows <= _ONE_FILE_ROWS:
        frame = frame.coalesce(1)
    return items(transaction.writeFiles(frame._jdf))


def _transaction_action(tables: DeltaTables, application: str, sequence: int) -> Any:
    actions = tables.jvm.org.apache.spark.sql.delta.actions
    now = tables.jvm.scala.Option.apply(int(time.time() * 1000))
    return actions.SetTransaction(application, sequence, now)


def _operation(tables: DeltaTables, stamp: Stamp) -> Any:
    none = tables.none
    mode = tables.jvm.org.apache.spark.sql.SaveMode.Overwrite
    metadata = tables.jvm.scala.Option.apply(stamp.to_json())
    write = tables.jvm.org.apache.spark.sql.delta.DeltaOperations.Write
    return write(mode, none, none, metadata, none, none, none, none, none)


def _conflict(location: str) -> RefreshError:
    return RefreshError(
        f"Somebody else wrote to the table at `{location}` during the refresh.",
        hint="Nothing was changed; refresh again.",
        code="CONCURRENT_WRITE",
    )
