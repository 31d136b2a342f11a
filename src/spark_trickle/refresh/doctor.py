"""What is wrong, or soon will be, and what to do about it; and a catalog rebuilt from the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.catalog import Dependency, StreamTable
from spark_trickle.catalyst.spark_errors import sentence_of
from spark_trickle.errors import TrickleError
from spark_trickle.frontier import Frontier
from spark_trickle.names import shown
from spark_trickle.refresh.graph import Graph, read_graph
from spark_trickle.refresh.recover import look
from spark_trickle.refresh.remember import dependencies_of
from spark_trickle.refresh.retention import risks
from spark_trickle.refresh.runtime import Runtime, is_dead, refreshing, who
from spark_trickle.storage.describe import described_tables, last_stamped


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that somebody should know."""

    severity: Literal["error", "warning"]
    subject: str
    what: str
    hint: str


def examine(runtime: Runtime) -> list[Finding]:
    """Look at every stream table, its sources and the catalog. Changes nothing."""
    graph = read_graph(runtime.catalog)
    found: list[Finding] = []
    for table in graph.tables.values():
        try:
            found += _of_table(table, runtime)
        except (PySparkException, Py4JError) as error:
            what = f"It cannot be read: {sentence_of(error)}"
            found.append(Finding("error", shown(table.name), what, "Look into its folder `_delta_log`."))
    found += _of_sources(graph, runtime)
    for risk in risks(graph, runtime.clock(), runtime):
        hint = f"trickle refresh {shown(risk.name)}"
        found.append(Finding("warning", shown(risk.name), risk.message, hint))
    found += _of_processes(graph, runtime)
    found += _unknown(graph, runtime)
    return found


def rebuild(runtime: Runtime) -> list[str]:
    """Enter every table that says it is a stream table and is unknown to the catalog; their names, sources first."""
    known = {table.id for table in read_graph(runtime.catalog).tables.values()}
    found = {}
    for name, location, definition in described_tables(runtime.spark, runtime.tables):
        if definition["id"] not in known and definition["name"] == str(name):
            found[str(name)] = _as_described(location, definition, runtime)
    names = found.keys() | read_graph(runtime.catalog).tables.keys()
    sources = {table.name: _sources_of(table, names, runtime) for table in found.values()}
    with runtime.catalog.begin() as catalog:
        for table in found.values():
            catalog.stream_tables.add(table)
        for table in found.values():
            catalog.dependencies.replace(table.id, sources[table.name])
    order = read_graph(runtime.catalog).dependencies.order()
    return sorted(found, key=order.index)


def _as_described(location: str, definition: Mapping[str, Any], runtime: Runtime) -> StreamTable:
    """The catalog's row of a stream table, from what the table says of itself and its newest commit of ours."""
    fields = {**definition, "created_at": datetime.fromisoformat(definition["created_at"])}
    commit = last_stamped(runtime.tables, location)
    stamp = commit.stamp if commit else None
    return StreamTable(
        location=location,
        status="ACTIVE",
        fingerprint=stamp.fingerprint if stamp else "",
        frontier=stamp.frontier if stamp else None,
        table_version=commit.version if commit and stamp else None,
        table_id=runtime.tables.latest(location).table_id,
        sequence=stamp.sequence if stamp else 0,
        needs_reinit=stamp is None,
        reinit_reason="" if stamp else "its frontier was lost with the catalog",
        updated_at=runtime.clock(),
        **fields,
    )


def _sources_of(table: StreamTable, names: Set[str], runtime: Runtime) -> list[Dependency]:
    """What it reads; a definition that means nothing any more is told by its next refresh."""
    try:
        prepared = runtime.definitions.of(table)
    except TrickleError:
        return []
    return dependencies_of(table.id, prepared, table.frontier or Frontier(), names)


# What can be wrong


def _of_table(table: StreamTable, runtime: Runtime) -> Iterator[Finding]:
    name = shown(table.name)
    if table.status == "SUSPENDED":
        why = f": {table.last_error}" if table.last_error else ""
        yield Finding("warning", name, f"It is suspended{why}", f"trickle resume {name}")
    elif table.last_error:
        what = f"Its last refresh failed: {table.last_error}"
        yield Finding("error", name, what, f"Mend the cause, then: trickle refresh {name}")
    foreign = look(table, runtime).foreign_write
    if foreign:
        what = f"The next refresh rebuilds it, because {foreign}."
        yield Finding("warning", name, what, "Let nobody else write to stream tables.")
    if not table.location or not runtime.tables.exists(table.location):
        return
    if runtime.tables.setting(table.location, "delta.enableChangeDataFeed") != "true":
        what = "Its change data feed is off, so what reads it is refreshed more slowly."
        hint = f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        yield Finding("warning", name, what, hint)


def _of_sources(graph: Graph, runtime: Runtime) -> Iterator[Finding]:
    places = {(row.source_name, row.location) for row in graph.rows if row.source_kind == "delta"}
    for source, location in sorted(places):
        try:
            runtime.tables.latest(location)
        except TrickleError as error:
            yield Finding("error", shown(source), error.message, error.hint or "")
        except (PySparkException, Py4JError) as error:
            what = f"It cannot be read: {sentence_of(error)}"
            yield Finding("error", shown(source), what, "Look into its folder `_delta_log`.")


def _of_processes(graph: Graph, runtime: Runtime) -> Iterator[Finding]:
    names = {refreshing(table.id): shown(table.name) for table in graph.tables.values()}
    with runtime.catalog.begin(write=False) as catalog:
        held = {lease.name: lease for lease in catalog.leases.held()}
        running = {t.id: catalog.refreshes.running(t.id) for t in graph.tables.values()}
    for lease in held.values():
        if is_dead(lease.owner):
            what = f"A process that has ended still holds its lease ({who(lease.owner)})."
            yield Finding(
                "warning", names.get(lease.name, lease.name), what, "The next refresh takes it over."
            )
    for identity, rows in running.items():
        if rows and refreshing(identity) not in held:
            what = "A refresh was begun and never ended: its process is gone."
            yield Finding("warning", names[refreshing(identity)], what, "The next refresh recovers.")


def _unknown(graph: Graph, runtime: Runtime) -> Iterator[Finding]:
    known = {table.id for table in graph.tables.values()}
    for name, _, definition in described_tables(runtime.spark, runtime.tables):
        if definition["name"] != str(name):
            continue  # a copy, or renamed: its rows are nobody's business
        if definition["id"] not in known:
            what = "It says that it is a stream table, and the catalog does not know it."
            yield Finding("error", shown(str(name)), what, "trickle doctor --rebuild")
