"""A stream table and everything it is made from, refreshed in order at one set of base versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spark_trickle.catalog import StreamTable
from spark_trickle.errors import RefreshError, StateError, TrickleError
from spark_trickle.names import shown
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.graph import read_graph
from spark_trickle.refresh.interval import Pins, pin_bases
from spark_trickle.refresh.remember import record_failure
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.run import refresh_table
from spark_trickle.refresh.runtime import Runtime


def _stays(table: StreamTable) -> bool:
    return table.status == "SUSPENDED"


def refresh_with_upstream(name: str, runtime: Runtime) -> list[RefreshResult]:
    """Refresh what the stream table reads, upstream first, then the table itself: the last result is its own.

    All read the same version of every base table, so the answer is the query's answer at one instant.
    """
    graph = read_graph(runtime.catalog)
    tables = graph.tables
    order = [*graph.dependencies.upstream(name), name]
    needed = [row for row in graph.rows if row.stream_table_id in {tables[n].id for n in order}]
    try:
        pins = pin_bases(needed, runtime)
    except TrickleError as error:
        record_failure(tables[name], error, runtime)
        raise
    results: list[RefreshResult] = []
    for table in order:
        if table != name and tables[table].status == "SUSPENDED":
            continue
        try:
            now = read_graph(runtime.catalog)
            result = refresh_table(table, settled(pins, now.upstream(table)), now.tables, runtime)
        except TrickleError as error:
            if table == name:
                raise
            raise RefreshError(
                f"`{shown(name)}` was not refreshed because `{shown(table)}`, which it reads, failed: {error.message}",
                hint=error.hint,
                code=error.code,
            ) from error
        if result.action is Action.SKIP and table != name:
            raise StateError(
                f"`{shown(name)}` was not refreshed: `{shown(table)}`, which it reads, is skipped because {result.reason}.",
                hint="Try again when that refresh has ended.",
                code="UPSTREAM_BUSY",
            )
        results.append(result)
    return results


def settled(
    pins: Pins, upstream: Iterable[StreamTable], fixed: Callable[[StreamTable], bool] = _stays
) -> Pins:
    """The pinned versions, made to agree with what the stream tables above have read.

    Never back: one of them may have taken in a newer version meanwhile. And a table that is not going to be
    refreshed, because it is suspended, decides for all that is read beside it.
    """
    bases = dict(pins.bases)
    for table in sorted(upstream, key=fixed):
        for name, version in (table.frontier.bases if table.frontier else {}).items():
            pinned = bases.get(name)
            if pinned and pinned.table_id == version.table_id:
                bases[name] = version if fixed(table) else max(pinned, version, key=lambda v: v.version)
    return Pins(bases, pins.at)
