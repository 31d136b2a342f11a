"""Getting ready: what the next refresh of a stream table begins with is brought to hand while nobody waits for it."""

from __future__ import annotations

from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.catalog import StreamTable
from spark_trickle.errors import TrickleError
from spark_trickle.frontier import Frontier
from spark_trickle.refresh.compute import Computation
from spark_trickle.refresh.ends import Moment
from spark_trickle.refresh.runtime import Runtime, lease_on, refreshing
from spark_trickle.storage.tables import VersionUnavailable


def get_ready(table: StreamTable, runtime: Runtime) -> None:
    """Evaluate the groups inside the query that its refreshes continue, as of what the table has read.

    Nothing but time depends on it, so what goes wrong is left to the refresh, which will tell.
    """
    if table.frontier is None or table.refresh_mode == "FULL" or table.needs_reinit:
        return
    with (
        suppress(TrickleError, PySparkException, Py4JError, VersionUnavailable),
        lease_on(runtime, refreshing(table.id)) as holder,
    ):
        if holder is None:
            _begin(table, table.frontier, runtime)


def _begin(table: StreamTable, frontier: Frontier, runtime: Runtime) -> None:
    prepared = runtime.definitions.of(table)
    sources = prepared.definition.sources
    if not prepared.inner or sources.keys() != frontier.inputs.keys():
        return
    snapshots = {n: runtime.tables.snapshot(sources[n].location, v) for n, v in frontier.inputs.items()}
    now = Moment(snapshots, frontier.data_timestamp)
    with Computation(prepared, runtime.tables, now, now, runtime.settings, runtime.groups) as computation:
        computation.get_ready()
