"""Getting ready: what the next refresh of a stream table begins with is brought to hand while nobody waits for it."""

from __future__ import annotations

from contextlib import suppress

from spark_trickle.catalog import StreamTable
from spark_trickle.frontier import Frontier
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.compute import Computation
from spark_trickle.refresh.ends import Moment
from spark_trickle.refresh.runtime import Runtime, lease_on, refreshing


def get_ready(table: StreamTable, runtime: Runtime) -> None:
    """Evaluate the groups inside the query that its refreshes continue, as of what the table has read.

    Nothing but time depends on it, so whatever goes wrong is left to the refresh, which will tell.
    """
    if table.frontier is None or table.refresh_mode == "FULL" or table.needs_reinit:
        return
    with suppress(Exception):
        if _is_worth_it(table, table.frontier, runtime):
            _begin(table, table.frontier, runtime)


def _is_worth_it(table: StreamTable, frontier: Frontier, runtime: Runtime) -> bool:
    """Unless it is recomputed again and again."""
    prepared = runtime.definitions.of(table)
    if not prepared.inner or prepared.definition.sources.keys() != frontier.inputs.keys():
        return False
    with runtime.catalog.begin(write=False) as catalog:
        last = catalog.refreshes.measured(table.id, 2)
    return len(last) < 2 or any(row.action == Action.DIFFERENTIAL for row in last)


def _begin(table: StreamTable, frontier: Frontier, runtime: Runtime) -> None:
    prepared = runtime.definitions.of(table)
    places = {name: source.location for name, source in prepared.definition.sources.items()}
    snapshots = {n: runtime.tables.snapshot(places[n], v) for n, v in frontier.inputs.items()}
    now = Moment(snapshots, frontier.data_timestamp)
    with Computation(prepared, runtime.tables, now, now, runtime.settings, runtime.groups) as computation:
        if computation.is_ready:
            return
        with lease_on(runtime, refreshing(table.id)) as holder:
            if holder is None:
                computation.get_ready()
