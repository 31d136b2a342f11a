"""What a killed process left behind: the table's own log tells what was committed."""

from __future__ import annotations

from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.spark_errors import refresh_error
from spark_trickle.names import shown
from spark_trickle.refresh.described import keep_described
from spark_trickle.refresh.remember import record_failure
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.storage.commits import Stamp, commits_after


@dataclass(frozen=True, slots=True)
class Found:
    """What the Delta table itself tells: refreshes the catalog does not know, and what somebody else did."""

    table_id: str = ""
    committed: tuple[tuple[int, Stamp], ...] = ()
    foreign_write: str = ""


@dataclass(frozen=True, slots=True)
class TableState:
    """A stream table as the catalog has it after recovery, and what somebody else did to its rows."""

    table: StreamTable
    foreign_write: str = ""


def look(table: StreamTable, runtime: Runtime) -> Found:
    """Read the log of the stream table since the version the catalog knows. Changes nothing."""
    if not table.location or not runtime.tables.exists(table.location):
        return Found(foreign_write="" if table.frontier is None else "the table itself was dropped")
    latest = runtime.tables.latest(table.location)
    if table.table_id and latest.table_id != table.table_id:
        return Found(foreign_write="the table itself was replaced by another one")
    known = -1 if table.table_version is None else table.table_version
    committed: list[tuple[int, Stamp]] = []
    foreign = "the table itself was replaced by an older one" if latest.version < known else ""
    for commit in commits_after(runtime.tables, table.location, known, latest.version, latest.table_id):
        stamp = commit.stamp
        if stamp and stamp.stream_table_id == table.id and stamp.sequence > table.sequence:
            committed.append((commit.version, stamp))
            foreign = ""
        elif commit.changes_data:
            what = f"{commit.operation} at version {commit.version}"
            foreign = f"somebody else wrote to the table itself ({what})"
    return Found(latest.table_id, tuple(committed), foreign)


def recover(table: StreamTable, runtime: Runtime) -> TableState:
    """Bring the catalog up to what the Delta table says. To be called while holding the lease."""
    found = look(table, runtime)
    for version, stamp in found.committed:
        table = _adopt(table, stamp, version, found.table_id, runtime)
    _close_unfinished(table, runtime, found.committed[-1][1] if found.committed else None)
    return TableState(table, found.foreign_write)


def _adopt(table: StreamTable, stamp: Stamp, version: int, table_id: str, runtime: Runtime) -> StreamTable:
    """A refresh whose commit is in the table but not in the catalog."""
    with runtime.catalog.begin() as catalog:
        return catalog.stream_tables.update(
            table.id,
            frontier=stamp.frontier,
            table_version=version,
            table_id=table_id,
            sequence=stamp.sequence,
            fingerprint=stamp.fingerprint,
            needs_reinit=False,
            reinit_reason="",
            status="ACTIVE" if table.status != "SUSPENDED" else table.status,
        )


def _close_unfinished(table: StreamTable, runtime: Runtime, committed: Stamp | None) -> None:
    """History rows that say RUNNING although nobody runs: we hold the lease."""
    with runtime.catalog.begin() as catalog:
        for refresh in catalog.refreshes.running(table.id):
            if committed is not None and refresh.sequence == committed.sequence:
                catalog.refreshes.finish(
                    refresh.id,
                    status="COMPLETED",
                    action=committed.action,
                    reason=f"{committed.reason} (the process ended after its commit)",
                    rows_inserted=committed.rows_inserted,
                    rows_deleted=committed.rows_deleted,
                    version=table.table_version,
                    frontier=committed.frontier,
                )
            else:
                catalog.refreshes.finish(
                    refresh.id,
                    status="FAILED",
                    error="The process ended before its commit; nothing was changed.",
                    error_code="PROCESS_ENDED",
                )


def recovered(table: StreamTable, runtime: Runtime) -> TableState:
    """As `recover`; the table also tells how it is defined. What Spark says against it is a failed refresh."""
    try:
        state = recover(table, runtime)
        keep_described(state.table, runtime)
    except (PySparkException, Py4JError) as error:
        failure = refresh_error(shown(table.name), error)
        record_failure(table, failure, runtime)
        raise failure from error
    return state
