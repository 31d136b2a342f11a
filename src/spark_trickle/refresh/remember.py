"""What the catalog keeps of a refresh, done or failed."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime

from spark_trickle.catalog import Dependency, StreamTable
from spark_trickle.catalyst.spark_errors import refresh_error
from spark_trickle.errors import DefinitionError, RefreshError, TrickleError
from spark_trickle.frontier import Frontier
from spark_trickle.names import shown
from spark_trickle.refresh.attempt import Attempt, Steps
from spark_trickle.refresh.choose import Decision
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.runtime import Runtime, owner_name
from spark_trickle.storage.apply import Written


def find(name: str, runtime: Runtime) -> StreamTable:
    """The catalog's row of a stream table."""
    with runtime.catalog.begin(write=False) as catalog:
        table = catalog.stream_tables.get(name)
    if table is None:
        raise RefreshError(f"There is no stream table `{shown(name)}` any more.", code="UNKNOWN_STREAM_TABLE")
    return table


def remember(
    attempt: Attempt,
    decision: Decision,
    written: Written | None,
    refresh_id: int,
    at: datetime,
    iterations: int = 0,
) -> RefreshResult:
    """Record what was done: the table's new frontier, what it reads, and a row of its history. Tell it, too."""
    table, prepared, interval, runtime = attempt.table, attempt.prepared, attempt.interval, attempt.runtime
    progress: dict[str, object] = {}
    if written is not None:
        latest = runtime.tables.latest(find(table.name, runtime).location)
        progress = {
            "table_version": written.version,
            "sequence": table.sequence + 1,
            "table_id": latest.table_id,
        }
    with runtime.catalog.begin() as catalog:
        updated = catalog.stream_tables.update(
            table.id,
            frontier=interval.new,
            fingerprint=prepared.definition.fingerprint,
            status="SUSPENDED" if table.status == "SUSPENDED" else "ACTIVE",
            data_timestamp=max(at, table.data_timestamp or at),
            consecutive_errors=0,
            last_error="",
            failed_at=None,
            needs_reinit=False,
            reinit_reason="",
            **progress,
        )
        if (updated.query, updated.definition_kind) == (table.query, table.definition_kind):
            others = catalog.stream_tables.names_among(prepared.definition.sources)
            sources = dependencies_of(table.id, prepared, interval.new, others)
            if catalog.dependencies.of(table.id) != sorted(sources, key=lambda row: row.source_name):
                catalog.dependencies.replace(table.id, sources)
        catalog.refreshes.finish(
            refresh_id,
            status="COMPLETED",
            action=decision.action.value,
            reason=decision.reason,
            rows_inserted=written.rows_inserted if written else 0,
            rows_deleted=written.rows_deleted if written else 0,
            rows_changed=attempt.steps.changed_rows,
            version=updated.table_version,
            frontier=interval.new,
            durations=dict(attempt.steps.seconds),
            iterations=iterations,
            predicted_seconds=decision.predicted,
            rows_estimated=interval.estimated_rows,
        )
    return RefreshResult(
        shown(table.name),
        decision.action,
        decision.reason,
        written.rows_inserted if written else 0,
        written.rows_deleted if written else 0,
        updated.table_version,
        updated.frontier,
        attempt.steps.elapsed,
        dict(attempt.steps.seconds),
    )


def dependencies_of(
    stream_table_id: str, prepared: Prepared, frontier: Frontier, stream_tables: Container[str]
) -> list[Dependency]:
    """The catalog rows for what a definition reads, given the names of all stream tables."""
    return [
        Dependency(
            stream_table_id,
            source.name,
            "stream_table" if source.name in stream_tables else "delta",
            frontier.inputs[source.name].table_id if source.name in frontier.inputs else "",
            source.location,
            tuple((c.name, c.type) for c in prepared.definition.columns_of(source.name)),
        )
        for source in prepared.definition.sources.values()
    ]


def remember_failure(
    table: StreamTable, refresh_id: int, error: BaseException, steps: Steps, runtime: Runtime
) -> BaseException:
    """Record why, and give the error to raise. The table and its frontier are as they were."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        translated: BaseException = error
        message, code = "interrupted", "INTERRUPTED"
    else:
        known = error if isinstance(error, TrickleError) else refresh_error(shown(table.name), error)
        translated, message, code = known, known.message, known.code
    broken = isinstance(translated, DefinitionError) or code == "NO_FIXPOINT"
    with runtime.catalog.begin() as catalog:
        catalog.refreshes.finish(
            refresh_id, status="FAILED", error=message, error_code=code, durations=dict(steps.seconds)
        )
        status = "ERROR" if broken and table.status != "SUSPENDED" else table.status
        catalog.stream_tables.update(
            table.id,
            consecutive_errors=table.consecutive_errors + 1,
            last_error=message,
            failed_at=runtime.clock(),
            status=status,
        )
    return translated


def record_failure(table: StreamTable, error: TrickleError, runtime: Runtime) -> None:
    """A refresh that failed before it could begin."""
    with runtime.catalog.begin() as catalog:
        row = catalog.refreshes.start(table.id, table.sequence + 1, owner_name())
    remember_failure(table, row.id, error, Steps(runtime), runtime)
