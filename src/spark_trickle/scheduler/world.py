"""What a tick looks at: the catalog's rows once, the newest version of every base table once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.catalog import Dependency, StreamTable
from spark_trickle.catalyst.spark_errors import refresh_error
from spark_trickle.errors import TrickleError
from spark_trickle.frontier import SourceVersion
from spark_trickle.graph.units import Unit
from spark_trickle.names import shown
from spark_trickle.refresh.graph import read_graph
from spark_trickle.refresh.runtime import Runtime, is_dead, refreshing, refreshing_together
from spark_trickle.scheduler.due import TableState
from spark_trickle.scheduler.schedules import OnChange, parse_schedule


@dataclass(frozen=True)
class World:
    """The stream tables, sources first, and the base tables below them, as seen at one moment."""

    now: datetime
    states: list[TableState]
    tables: Mapping[str, StreamTable]
    bases: Mapping[str, Set[str]]
    newest: Mapping[str, SourceVersion]
    locations: Mapping[str, str]
    """Where the base tables lie."""
    problems: Mapping[str, TrickleError]
    """Base tables whose newest version cannot be told."""
    units: Mapping[tuple[str, ...], Unit]
    """What is refreshed together, by its members."""

    def problem_of(self, names: Iterable[str]) -> TrickleError | None:
        below = (base for name in names for base in self.bases[name])
        return next((self.problems[base] for base in below if base in self.problems), None)


def look_around(runtime: Runtime, busy: Set[str]) -> World:
    """`busy`: tables that this process is at work on."""
    now = runtime.clock()
    graph = read_graph(runtime.catalog)
    tables, order = graph.tables, graph.dependencies.order()
    with runtime.catalog.begin(write=False) as catalog:
        leased = {lease.name for lease in catalog.leases.held() if not is_dead(lease.owner)}
    reads = {name: graph.dependencies.sources(name) for name in order}
    bases: dict[str, set[str]] = {}
    for name in order:
        bases[name] = set(graph.dependencies.bases(name))
    newest, problems = _newest(graph.rows, runtime)
    units = {unit.members: unit for unit in graph.units}
    together = {m for m in units if refreshing_together(tables[name].id for name in m) in leased}
    busy = {*busy, *(name for members in together for name in members)}
    states = []
    for name in order:
        table = tables[name]
        schedule = parse_schedule(table.schedule)
        states.append(
            TableState(
                name,
                schedule,
                tuple(source for source in reads[name] if source in tables),
                active=table.status in {"ACTIVE", "INITIALIZING", "ERROR"}
                and table.definition_kind != "dataframe",
                reached=table.data_timestamp,
                busy=name in busy or refreshing(table.id) in leased,
                changed=isinstance(schedule, OnChange) and _changed(table, bases[name], newest),
                failures=table.consecutive_errors,
                failed_at=table.failed_at,
            )
        )
    locations = {row.source_name: row.location for row in graph.rows}
    return World(now, states, tables, bases, newest, locations, problems, units)


def _newest(
    rows: Iterable[Dependency], runtime: Runtime
) -> tuple[dict[str, SourceVersion], dict[str, TrickleError]]:
    """The newest version of every base table: a log listing each, shared by all who read it."""
    newest: dict[str, SourceVersion] = {}
    problems: dict[str, TrickleError] = {}
    for name, location in sorted({(r.source_name, r.location) for r in rows if r.source_kind == "delta"}):
        try:
            newest[name] = runtime.tables.latest(location)
        except TrickleError as error:
            problems[name] = error
        except (PySparkException, Py4JError) as error:
            problems[name] = refresh_error(shown(name), error)
    return newest, problems


def _changed(table: StreamTable, bases: Set[str], newest: Mapping[str, SourceVersion]) -> bool:
    if table.frontier is None:
        return True
    return any(newest[base] != table.frontier.bases.get(base) for base in bases if base in newest)
