"""Take a stream table back to what it was: a new version that holds the old rows and carries the old frontier."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.holder import Difference
from spark_trickle.errors import TrickleError
from spark_trickle.frontier import SourceVersion
from spark_trickle.names import WEIGHT
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.compute import layout_of
from spark_trickle.refresh.recover import recover
from spark_trickle.refresh.remember import find
from spark_trickle.refresh.runtime import Runtime, lease_on, owner_name, refreshing
from spark_trickle.storage.apply import Written, add_change
from spark_trickle.storage.changes import changes_between
from spark_trickle.storage.commits import Stamp
from spark_trickle.storage.locks import write_lock
from spark_trickle.storage.tables import VersionUnavailable


def restore_table(before: StreamTable, reason: str, runtime: Runtime) -> None:
    """Nothing is done if somebody else is refreshing the table, or if it is there already."""
    if before.frontier is None or before.table_version is None:
        return
    with lease_on(runtime, refreshing(before.id)) as holder:
        if holder is not None:
            return
        table = recover(find(before.name, runtime), runtime).table
        if (table.id, table.table_id) != (before.id, before.table_id):
            return
        if (table.table_version, table.frontier) == (before.table_version, before.frontier):
            return
        with runtime.catalog.begin() as catalog:
            row = catalog.refreshes.start(table.id, table.sequence + 1, owner_name())
        try:
            written = _write_back(table, before, reason, runtime)
        except (TrickleError, VersionUnavailable, PySparkException, Py4JError) as error:
            # The member stays ahead of the others: right for what it has read, and not mixed with them by anybody.
            with runtime.catalog.begin() as catalog:
                catalog.refreshes.finish(row.id, status="FAILED", error=str(error), error_code="NOT_RESTORED")
            return
        progress: dict[str, object] = {"table_version": before.table_version}
        if written is not None:
            progress = {"table_version": written.version, "sequence": table.sequence + 1}
        with runtime.catalog.begin() as catalog:
            kept = ("frontier", "fingerprint", "needs_reinit", "reinit_reason", "data_timestamp")
            catalog.stream_tables.update(
                table.id, **{name: getattr(before, name) for name in kept}, **progress
            )
            catalog.refreshes.finish(
                row.id,
                status="COMPLETED",
                action=Action.RESTORE.value,
                reason=reason,
                rows_inserted=written.rows_inserted if written else 0,
                rows_deleted=written.rows_deleted if written else 0,
                version=written.version if written else before.table_version,
                frontier=before.frontier,
            )


def _write_back(table: StreamTable, before: StreamTable, reason: str, runtime: Runtime) -> Written | None:
    """The rows of the older version in place of those of the newest; None when no commit lies between."""
    if before.frontier is None or before.table_version is None or table.table_version == before.table_version:
        return None
    prepared = runtime.definitions.of(table)
    layout = layout_of(prepared.definition)
    tables = runtime.tables.in_session(prepared.planner.spark)
    newest = tables.latest_snapshot(table.location)
    wanted = tables.snapshot(table.location, SourceVersion(table.table_id, before.table_version))
    change = changes_between(tables, newest, wanted, layout.schema.fieldNames())
    if change is None:
        return None
    flat = change.selectExpr(*layout.unpack(), WEIGHT).persist()
    try:
        with write_lock(runtime.locks, table.id):
            stamp = Stamp(
                stream_table_id=table.id,
                sequence=table.sequence + 1,
                action=Action.RESTORE.value,
                reason=reason,
                # Rows that were to be rebuilt have no fingerprint: they still are, whoever reads this commit.
                fingerprint="" if before.needs_reinit else before.fingerprint,
                frontier=before.frontier,
            )
            return add_change(tables, newest, layout, Difference(flat), stamp)
    finally:
        flat.unpersist()
