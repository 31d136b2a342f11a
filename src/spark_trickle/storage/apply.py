"""A change → one Delta commit that carries the rows, the change feed, the frontier and a transaction number.

Rows to remove are found by one scan, marked by deletion vectors, and committed through Delta's own optimistic
transaction: a concurrent writer or a second refresher is noticed, a repeated refresh is a no-op.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import delta.exceptions as conflicts
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from spark_trickle.catalyst.few import Few
from spark_trickle.catalyst.holder import Difference
from spark_trickle.catalyst.java import scala_seq
from spark_trickle.catalyst.plan import items, kind_of
from spark_trickle.errors import RefreshError
from spark_trickle.names import WEIGHT, quote
from spark_trickle.storage.commits import Stamp
from spark_trickle.storage.layout import Layout
from spark_trickle.storage.removals import few_removals, handed_over, removals
from spark_trickle.storage.small_write import can_write, write_files
from spark_trickle.storage.tables import DeltaTables, Snapshot

_ONE_FILE_ROWS = 100_000
_FEED = "delta.enableChangeDataFeed"

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
    removed = [file.removeWithTimestamp(now, True) for file in items(before.files)]
    version = _commit(tables, transaction, before, [*removed, *added], stamp)
    return Written(version, inserted, before.row_count)


def add_change(
    tables: DeltaTables, snapshot: Snapshot, layout: Layout, difference: Difference | Few, stamp: Stamp
) -> Written:
    """Add a netted change to the table: +w inserts w copies of a row, −w removes exactly w of its copies.

    `snapshot` is the version the change was computed against; a commit since then is a conflict.
    """
    if isinstance(difference, Few):
        if tables.most_scanned and can_write(snapshot, layout):
            return _add_few(tables, snapshot, layout, difference, stamp)
        difference = handed_over(tables, layout, difference)
    change = difference.rows
    inserted, deleted = _totals(change)
    stamp = replace(stamp, rows_inserted=inserted, rows_deleted=deleted)
    transaction = _begin(tables, snapshot, stamp)
    actions = removals(tables, snapshot, layout, difference, deleted) if deleted else []
    feed = snapshot.setting(_FEED) == "true"
    actions += _additions(transaction, layout, change, inserted + deleted, feed=feed)
    version = _commit(tables, transaction, snapshot, actions, stamp)
    return Written(version, inserted, deleted)


def _add_few(tables: DeltaTables, snapshot: Snapshot, layout: Layout, few: Few, stamp: Stamp) -> Written:
    """The same without a Spark job."""
    inserted, deleted = few.added, few.removed
    stamp = replace(stamp, rows_inserted=inserted, rows_deleted=deleted)
    transaction = _begin(tables, snapshot, stamp)
    actions = few_removals(tables, snapshot, layout, few, deleted) if deleted else []
    actions += write_files(tables, snapshot, layout, few, feed=snapshot.setting(_FEED) == "true")
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
