"""One refresh, start to end: measure, decide, compute, write, remember."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime

from spark_trickle.catalog import StreamTable
from spark_trickle.errors import TrickleError
from spark_trickle.refresh.attempt import Attempt, Steps
from spark_trickle.refresh.choose import choose_action
from spark_trickle.refresh.circular import check_still_straight
from spark_trickle.refresh.interval import check_agreement, facts_of, measure_interval
from spark_trickle.refresh.pins import Pins
from spark_trickle.refresh.recover import recovered
from spark_trickle.refresh.remember import find, remember, remember_failure
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.runtime import Runtime, lease_on, owner_name, refreshing
from spark_trickle.refresh.skip import reached_meanwhile, skipped
from spark_trickle.refresh.write import carry_out, refuse_silent_full


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
    table = find(name, runtime)
    start = time.monotonic()
    with lease_on(runtime, refreshing(table.id)) as holder:
        if holder is not None:
            return skipped(table, holder, start, runtime)
        table = find(name, runtime)
        if unless_reached and table.data_timestamp and table.data_timestamp >= unless_reached:
            return reached_meanwhile(table, start)
        return _refresh(table, pins, upstream, runtime)


def _refresh(
    table: StreamTable, pins: Pins, upstream: Mapping[str, StreamTable], runtime: Runtime
) -> RefreshResult:
    steps = Steps(runtime)
    runtime.on_step("recover")
    state = recovered(table, runtime)
    table = state.table
    with runtime.catalog.begin() as catalog:
        row = catalog.refreshes.start(table.id, table.sequence + 1, owner_name())
    try:
        with steps.step("measure"):
            prepared = runtime.definitions.of(table)
            check_still_straight(table, prepared.definition, runtime)
            interval = measure_interval(table, prepared.definition, pins, upstream, runtime)
            check_agreement(table, interval)
        with steps.step("decide"):
            decision = choose_action(
                facts_of(table, prepared.definition, interval, state.foreign_write, runtime)
            )
            refuse_silent_full(table, decision)
        attempt = Attempt(table, prepared, interval, steps, runtime)
        decision, written = carry_out(attempt, decision)
    except BaseException as error:
        raise remember_failure(table, row.id, error, steps, runtime) from _cause(error)
    runtime.on_step("remember")
    result = remember(attempt, decision, written, row.id, pins.at)
    runtime.on_step("done")
    return result


def _cause(error: BaseException) -> BaseException | None:
    return None if isinstance(error, TrickleError) else error
