"""One refresh, start to end: measure, decide, compute, write, remember."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.catalog import Dependency, StreamTable
from spark_trickle.catalyst.spark_errors import condition_of, is_data_error, refresh_error, sentence_of
from spark_trickle.errors import DefinitionError, IntegrityError, RefreshError, TrickleError
from spark_trickle.frontier import Frontier
from spark_trickle.names import parse_name, shown
from spark_trickle.refresh.choose import Action, Decision, choose_action
from spark_trickle.refresh.compute import Computation, Moment, layout_of
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.interval import Interval, Pins, check_agreement, facts_of, measure_interval
from spark_trickle.refresh.recover import recover
from spark_trickle.refresh.recursion import NotConverged
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.runtime import Runtime, lease_on, owner_name
from spark_trickle.storage.apply import Written, add_change, overwrite
from spark_trickle.storage.commits import Stamp
from spark_trickle.storage.locks import write_lock
from spark_trickle.storage.warehouse import create_table

_GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "DELTA_FILE_NOT_FOUND", "DELTA_CHANGE_DATA_FILE_NOT_FOUND")


class _Steps:
    """Names and times the steps of one refresh."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.seconds: dict[str, float] = {}
        self.changed_rows = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._runtime.on_step(name)
        start = time.monotonic()
        try:
            yield
        finally:
            spent = self.seconds.get(name, 0.0) + time.monotonic() - start
            self.seconds[name] = round(spent, 4)


def refresh_table(
    name: str,
    pins: Pins,
    upstream: Mapping[str, StreamTable],
    runtime: Runtime,
    unless_reached: datetime | None = None,
) -> RefreshResult:
    """Refresh one stream table to the pinned versions, alone: whoever else tries meanwhile is told so.

    Nothing is done if somebody has meanwhile brought it to the data timestamp `unless_reached`.
    """
    table = _find(name, runtime)
    start = time.monotonic()
    with lease_on(runtime, table.id) as holder:
        if holder is not None:
            reason = f"it is being refreshed by {holder.rsplit(':', 2)[0]}"
            with runtime.catalog.begin() as catalog:
                row = catalog.refreshes.start(table.id, table.sequence, owner_name())
                catalog.refreshes.finish(row.id, status="SKIPPED", action="SKIP", reason=reason)
            seconds = time.monotonic() - start
            return RefreshResult(
                shown(name), Action.SKIP, reason, 0, 0, table.table_version, table.frontier, seconds
            )
        table = _find(name, runtime)
        if unless_reached and table.data_timestamp and table.data_timestamp >= unless_reached:
            reason = "another process has refreshed it meanwhile"
            seconds = time.monotonic() - start
            return RefreshResult(
                shown(name), Action.NO_DATA, reason, 0, 0, table.table_version, table.frontier, seconds
            )
        return _refresh(table, pins, upstream, runtime)


def _refresh(
    table: StreamTable, pins: Pins, upstream: Mapping[str, StreamTable], runtime: Runtime
) -> RefreshResult:
    start = time.monotonic()
    runtime.on_step("recover")
    state = recover(table, runtime)
    table = state.table
    with runtime.catalog.begin() as catalog:
        row = catalog.refreshes.start(table.id, table.sequence + 1, owner_name())
    steps = _Steps(runtime)
    try:
        with steps.step("measure"):
            prepared = runtime.definitions.of(table)
            interval = measure_interval(table, prepared.definition, pins, upstream, runtime)
            check_agreement(table, interval)
        with steps.step("decide"):
            decision = choose_action(
                facts_of(table, prepared.definition, interval, state.foreign_write, runtime)
            )
            _refuse_silent_full(table, decision)
        decision, written = _write(table, prepared, interval, decision, steps, runtime)
    except BaseException as error:
        raise _remember_failure(table, row.id, error, steps, runtime) from _cause(error)
    runtime.on_step("remember")
    remembered = _remember(table, prepared, interval, decision, written, row.id, steps, runtime, pins.at)
    runtime.on_step("done")
    return RefreshResult(
        shown(table.name),
        decision.action,
        decision.reason,
        written.rows_inserted if written else 0,
        written.rows_deleted if written else 0,
        remembered.table_version,
        remembered.frontier,
        time.monotonic() - start,
        dict(steps.seconds),
    )


# Compute and write


def _write(
    table: StreamTable,
    prepared: Prepared,
    interval: Interval,
    decision: Decision,
    steps: _Steps,
    runtime: Runtime,
) -> tuple[Decision, Written | None]:
    """Carry out the decision; where it turns out impossible, the next safer one, with the reason."""
    if decision.action is Action.NO_DATA:
        return decision, None
    if decision.action is Action.DIFFERENTIAL:
        try:
            return _write_differentially(table, prepared, interval, decision, steps, runtime)
        except IntegrityError as error:
            decision = Decision(Action.REINITIALIZE, error.message)
        except NotConverged as error:
            decision = Decision(Action.FULL, f"{error}; {decision.reason}")
        except (PySparkException, Py4JError) as error:
            decision = _safer(decision, error)
    if decision.action is Action.FULL and table.frontier is not None and _has_dependents(table, runtime):
        return decision, _write_change(table, prepared, interval, decision, steps, runtime)
    return decision, _write_all(table, prepared, interval, decision, steps, runtime)


def _write_differentially(
    table: StreamTable,
    prepared: Prepared,
    interval: Interval,
    decision: Decision,
    steps: _Steps,
    runtime: Runtime,
) -> tuple[Decision, Written | None]:
    """The change in its short form; where rows that never met fail it, in the form that evaluates none of them."""
    try:
        return decision, _write_change(table, prepared, interval, decision, steps, runtime)
    except (PySparkException, Py4JError) as error:
        if not is_data_error(error):
            raise
        why = (
            f"{decision.reason}; {condition_of(error)} on rows that may never have met, so without such pairs"
        )
    decision = Decision(Action.DIFFERENTIAL, why)
    return decision, _write_change(table, prepared, interval, decision, steps, runtime, careful=True)


def _safer(decision: Decision, error: BaseException) -> Decision:
    """What to do when a differential evaluation fails: the full query may well succeed."""
    condition = condition_of(error)
    if condition.startswith(_GONE):
        return Decision(Action.REINITIALIZE, f"files of the version read last are gone: {sentence_of(error)}")
    if is_data_error(error):
        why = f"{condition} on rows that the query itself may never meet; {decision.reason}"
        return Decision(Action.FULL, why)
    raise error


def _write_change(
    table: StreamTable,
    prepared: Prepared,
    interval: Interval,
    decision: Decision,
    steps: _Steps,
    runtime: Runtime,
    *,
    careful: bool = False,
) -> Written | None:
    stored = runtime.tables.latest_snapshot(table.location)
    old, new = _ends(prepared, interval, runtime)
    with Computation(prepared, runtime.tables, old, new, runtime.settings.local_change_rows) as computation:
        with steps.step("compute"):
            full = decision.action is Action.FULL
            change = computation.difference(stored) if full else computation.change(stored, careful=careful)
            steps.changed_rows = computation.changed_rows
        if change is None:
            return None
        with steps.step("write"), write_lock(runtime.locks, table.id):
            stamp = _stamp(table, prepared, interval, decision)
            written = add_change(runtime.tables, stored, layout_of(prepared.definition), change, stamp)
            runtime.on_step("committed")
            return written


def _write_all(
    table: StreamTable,
    prepared: Prepared,
    interval: Interval,
    decision: Decision,
    steps: _Steps,
    runtime: Runtime,
) -> Written:
    if not runtime.tables.exists(table.location):
        layout = layout_of(prepared.definition)
        location = create_table(runtime.spark, parse_name(table.name), layout)
        with runtime.catalog.begin() as catalog:
            table = catalog.stream_tables.update(table.id, location=location, table_version=None)
    _, new = _ends(prepared, interval, runtime)
    with Computation(
        prepared, runtime.tables, Moment(), new, runtime.settings.local_change_rows
    ) as computation:
        with steps.step("compute"):
            rows = computation.query()
        with steps.step("write"), write_lock(runtime.locks, table.id):
            stamp = _stamp(table, prepared, interval, decision)
            written = overwrite(runtime.tables, table.location, layout_of(prepared.definition), rows, stamp)
            runtime.on_step("committed")
            return written


def _ends(prepared: Prepared, interval: Interval, runtime: Runtime) -> tuple[Moment, Moment]:
    """Both ends of the interval for every source; an unchanged source is one snapshot twice."""
    sources = prepared.definition.sources
    new = {n: runtime.tables.snapshot(sources[n].location, v) for n, v in interval.new.inputs.items()}
    before = interval.old.data_timestamp if interval.old else None
    return (
        Moment({**new, **interval.old_snapshots}, before),
        Moment({**new, **interval.new_snapshots}, interval.new.data_timestamp),
    )


def _stamp(table: StreamTable, prepared: Prepared, interval: Interval, decision: Decision) -> Stamp:
    return Stamp(
        stream_table_id=table.id,
        sequence=table.sequence + 1,
        action=decision.action.value,
        reason=decision.reason,
        fingerprint=prepared.definition.fingerprint,
        frontier=interval.new,
    )


# Remember


def _remember(
    table: StreamTable,
    prepared: Prepared,
    interval: Interval,
    decision: Decision,
    written: Written | None,
    refresh_id: int,
    steps: _Steps,
    runtime: Runtime,
    at: datetime,
) -> StreamTable:
    progress: dict[str, object] = {}
    if written is not None:
        latest = runtime.tables.latest(_find(table.name, runtime).location)
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
        catalog.dependencies.replace(table.id, dependencies_of(table.id, prepared, interval.new, runtime))
        catalog.refreshes.finish(
            refresh_id,
            status="COMPLETED",
            action=decision.action.value,
            reason=decision.reason,
            rows_inserted=written.rows_inserted if written else 0,
            rows_deleted=written.rows_deleted if written else 0,
            rows_changed=steps.changed_rows,
            version=updated.table_version,
            frontier=interval.new,
            durations=dict(steps.seconds),
        )
    return updated


def dependencies_of(
    stream_table_id: str, prepared: Prepared, frontier: Frontier, runtime: Runtime
) -> list[Dependency]:
    """The catalog rows for what a definition reads."""
    with runtime.catalog.begin(write=False) as catalog:
        known = {t.name for t in catalog.stream_tables.all()}
    return [
        Dependency(
            stream_table_id,
            source.name,
            "stream_table" if source.name in known else "delta",
            frontier.inputs[source.name].table_id if source.name in frontier.inputs else "",
            source.location,
            tuple((c.name, c.type) for c in prepared.definition.columns_of(source.name)),
        )
        for source in prepared.definition.sources.values()
    ]


def _remember_failure(
    table: StreamTable, refresh_id: int, error: BaseException, steps: _Steps, runtime: Runtime
) -> BaseException:
    """Record why, and give the error to raise. The table and its frontier are as they were."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        translated: BaseException = error
        message, code = "interrupted", "INTERRUPTED"
    else:
        known = error if isinstance(error, TrickleError) else refresh_error(shown(table.name), error)
        translated, message, code = known, known.message, known.code
    broken = isinstance(translated, DefinitionError)
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
    _remember_failure(table, row.id, error, _Steps(runtime), runtime)


def _cause(error: BaseException) -> BaseException | None:
    return None if isinstance(error, TrickleError) else error


def _refuse_silent_full(table: StreamTable, decision: Decision) -> None:
    if table.refresh_mode == "DIFFERENTIAL" and decision.action is Action.FULL and table.frontier is not None:
        raise RefreshError(
            f"`{shown(table.name)}` cannot be refreshed differentially: {decision.reason}.",
            hint="Set refresh_mode to AUTO or FULL to allow recomputing.",
            code="NOT_DIFFERENTIAL",
        )


def _has_dependents(table: StreamTable, runtime: Runtime) -> bool:
    with runtime.catalog.begin(write=False) as catalog:
        return bool(catalog.dependencies.dependents_of(table.name))


def _find(name: str, runtime: Runtime) -> StreamTable:
    with runtime.catalog.begin(write=False) as catalog:
        table = catalog.stream_tables.get(name)
    if table is None:
        raise RefreshError(f"There is no stream table `{shown(name)}` any more.", code="UNKNOWN_STREAM_TABLE")
    return table
