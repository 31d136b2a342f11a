"""A stream table and everything it is made from, refreshed in order at one set of base versions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from spark_trickle.catalog import StreamTable
from spark_trickle.errors import RefreshError, StateError, TrickleError
from spark_trickle.graph.units import Unit
from spark_trickle.names import shown
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.graph import Graph, read_order
from spark_trickle.refresh.idle import Idle, look_at, nothing_to_do, record_idle
from spark_trickle.refresh.pins import is_suspended, pin_bases
from spark_trickle.refresh.remember import record_failure
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.refresh.units import Terms, UnitFailed, refresh_unit


def refresh_with_upstream(name: str, runtime: Runtime) -> RefreshResult:
    """Refresh what the stream table reads, upstream first, then the table itself, whose result is given.

    All read the same version of every base table, so the answer is the query's answer at one instant. What is
    refreshed together with one of them is refreshed, too.
    """
    start = time.monotonic()
    graph, order = read_order(runtime.catalog, name)
    tables = graph.tables
    try:
        terms = Terms(pin_bases(graph.rows, runtime))
    except TrickleError as error:
        record_failure(tables[name], error, runtime)
        raise
    idle = _idle(order, graph, terms, runtime)
    if idle is not None:
        return replace(idle[-1].result, seconds=time.monotonic() - start)
    own: RefreshResult | None = None
    for unit in order:
        suspended = [n for n in unit.members if is_suspended(tables[n])]
        if suspended and len(unit.members) == 1 and name not in unit.members:
            continue
        if suspended and name not in suspended:
            raise _suspended(tables[name], suspended[0])
        try:
            results = refresh_unit(unit, terms, runtime)
        except UnitFailed as failed:
            if failed.name == name:
                raise failed.error from failed.error.__cause__
            raise _not_refreshed(name, failed, unit) from failed.error
        for result in results:
            if result.name == shown(name):
                own = result
            elif result.action is Action.SKIP:
                raise StateError(
                    f"`{shown(name)}` was not refreshed: `{result.name}`, which it reads, is skipped because {result.reason}.",
                    hint="Try again when that refresh has ended.",
                    code="UPSTREAM_BUSY",
                )
    assert own is not None  # noqa: S101 - the table is in its own order
    return own


def _idle(order: Sequence[Unit], graph: Graph, terms: Terms, runtime: Runtime) -> list[Idle] | None:
    """All of them, recorded, if none has anything to do. Those that are refreshed together are not asked."""
    names = [name for unit in order for name in unit.members]
    if len(names) > len(order):
        return None
    idle = nothing_to_do(names, look_at(graph.tables, runtime), terms.pins)
    return idle if idle and len(record_idle(idle, runtime)) == len(idle) else None


def _not_refreshed(name: str, failed: UnitFailed, unit: Unit) -> TrickleError:
    bond = "belongs to the same group" if name in unit.members else "it reads"
    return RefreshError(
        f"`{shown(name)}` was not refreshed because `{shown(failed.name)}`, which {bond}, failed: {failed.error.message}",
        hint=failed.error.hint,
        code=failed.error.code,
    )


def _suspended(table: StreamTable, other: str) -> StateError:
    return StateError(
        f"`{shown(table.name)}` was not refreshed: `{shown(other)}`, which is refreshed together with it or with what it reads, is suspended.",
        hint=f"Resume it: trickle.resume('{shown(other)}').",
        code="SUSPENDED",
    )
