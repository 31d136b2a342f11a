"""Stream tables that are refreshed together or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from spark_trickle.catalog import StreamTable
from spark_trickle.errors import StateError, TrickleError
from spark_trickle.graph.units import Unit
from spark_trickle.names import shown
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.cycle import refresh_cycle
from spark_trickle.refresh.graph import read_graph
from spark_trickle.refresh.pins import Pins, is_suspended, settled
from spark_trickle.refresh.restore import restore_table
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.run import refresh_table
from spark_trickle.refresh.runtime import Runtime, lease_on, refreshing_together, who


class UnitFailed(Exception):  # noqa: N818 - carries the error that the caller tells about
    """A member could not be refreshed; the others are what they were before."""

    def __init__(self, name: str, error: TrickleError) -> None:
        super().__init__(error.message)
        self.name = name
        self.error = error


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which terms a run of refreshes works."""

    pins: Pins
    fixed: Callable[[StreamTable], bool] = is_suspended
    """Tables that are not going to be refreshed, whoever reads them."""
    unless_reached: datetime | None = None


def refresh_unit(unit: Unit, terms: Terms, runtime: Runtime) -> list[RefreshResult]:
    """All members, sources first. When one fails, those refreshed before it are taken back to what they were."""
    if len(unit.steps()) == 1:
        return _refresh_members(unit, terms, runtime)
    tables = read_graph(runtime.catalog).tables
    with lease_on(runtime, refreshing_together(tables[name].id for name in unit.members)) as holder:
        if holder is not None:
            raise UnitFailed(
                unit.members[0], _busy(unit.members[0], f"it is being refreshed by {who(holder)}")
            )
        return _refresh_members(unit, terms, runtime)


def _refresh_members(unit: Unit, terms: Terms, runtime: Runtime) -> list[RefreshResult]:
    before = read_graph(runtime.catalog).tables if len(unit.members) > 1 else {}
    results: list[RefreshResult] = []
    done: list[str] = []
    for step in unit.steps():
        try:
            results += _refresh_step(step, terms, runtime)
            if results[-1].action is Action.SKIP and len(unit.members) > 1:
                raise _busy(step[0], results[-1].reason)
        except TrickleError as error:
            reason = f"`{shown(step[0])}`, which belongs to the same diamond, was not refreshed"
            for name in reversed(done):
                restore_table(before[name], reason, runtime)
            raise UnitFailed(step[0], error) from error
        done += step
    return results


def _refresh_step(step: tuple[str, ...], terms: Terms, runtime: Runtime) -> list[RefreshResult]:
    graph = read_graph(runtime.catalog)
    above = [table for table in graph.upstream(step[0]) if table.name not in step]
    pins = settled(terms.pins, above, terms.fixed)
    if len(step) > 1:
        return refresh_cycle(step, pins, graph.tables, runtime, terms.unless_reached)
    return [refresh_table(step[0], pins, graph.tables, runtime, terms.unless_reached)]


def _busy(name: str, reason: str) -> StateError:
    return StateError(
        f"`{shown(name)}` is skipped because {reason}.",
        hint="Try again when that refresh has ended.",
        code="UPSTREAM_BUSY",
    )
