"""Take a stream table back to what it was: a new version that holds the old rows and carries the old frontier."""

from __future__ import annotations

from datetime import datetime

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.plan import WEIGHT
from spark_trickle.errors import TrickleError
from spark_trickle.frontier import SourceVersion
from spark_trickle.graph.vectors import Point
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.compute import layout_of
from spark_trickle.refresh.recover import recover
from spark_trickle.refresh.remember import find
from spark_trickle.refresh.runtime import Runtime, lease_on, owner_name
from spark_trickle.storage.apply import Written, add_change
from spark_trickle.storage.changes import changes_between
from spark_trickle.storage.commits import Stamp
from spark_trickle.storage.locks import write_lock
from spark_trickle.storage.tables import VersionUnavailable


def restore_table(name: str, point: Point, at: datetime | None, reason: str, runtime: Runtime) -> None:
    """Nothing is done if somebody else is refreshing the table, or if it is there already."""
    table = find(name, runtime)
    with lease_on(runtime, table.id) as holder:
        if holder is not None:
            return
        table = recover(find(name, runtime), runtime).table
        if (
            table.table_version is None
            or Point(table.table_version, table.frontier or point.frontier) == point
        ):
            return
        with runtime.catalog.begin() as catalog:
            row = catalog.refreshes.start(table.id, table.sequence + 1, owner_name())
        try:
            written = _write_back(table, point, reason, runtime)
        except (TrickleError, VersionUnavailable, PySparkException) as error:
            # The member stays ahead of the others: right for what it has read, and not mixed with them by anybody.
            with runtime.catalog.begin() as catalog:
                catalog.refreshes.finish(row.id, status="FAILED", error=str(error), error_code="NOT_RESTORED")
            return
        progress: dict[str, object] = {"table_version": point.version}
        if written is not None:
            progress = {"table_version": written.version, "sequence": table.sequence + 1}
        with runtime.catalog.begin() as catalog:
            catalog.stream_tables.update(table.id, frontier=point.frontier, data_timestamp=at, **progress)
            catalog.refreshes.finish(
                row.id,
                status="COMPLETED",
                action=Action.RESTORE.value,
                reason=reason,
                rows_inserted=written.rows_inserted if written else 0,
                rows_deleted=written.rows_deleted if written else 0,
                version=written.version if written else point.version,
                frontier=point.frontier,
            )


def _write_back(table: StreamTable, point: Point, reason: str, runtime: Runtime) -> Written | None:
    """The rows of the older version in place of those of the newest; None when no commit lies between."""
    if table.table_version == point.version:
        return None
    prepared = runtime.definitions.of(table)
    layout = layout_of(prepared.definition)
    tables = runtime.tables.in_session(prepared.planner.spark)
    newest = tables.latest_snapshot(table.location)
    wanted = tables.snapshot(table.location, SourceVersion(table.table_id, point.version))
    change = changes_between(tables, newest, wanted, layout.schema.fieldNames())
    if change is None:
        return None
    flat = change.select(*layout.unpack(), F.col(WEIGHT)).persist()
    try:
        with write_lock(runtime.locks, table.id):
            stamp = Stamp(
                stream_table_id=table.id,
                sequence=table.sequence + 1,
                action=Action.RESTORE.value,
                reason=reason,
                fingerprint=table.fingerprint,
                frontier=point.frontier,
            )
            return add_change(tables, newest, layout, flat, stamp)
    finally:
        flat.unpersist()
