"""The decision the next refresh would take, without taking it."""

from __future__ import annotations

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.definition import Definition
from spark_trickle.names import shown
from spark_trickle.refresh.choose import Decision, choose_action
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.graph import Graph
from spark_trickle.refresh.interval import facts_of, measure_interval
from spark_trickle.refresh.pins import pin_bases
from spark_trickle.refresh.recover import look
from spark_trickle.refresh.runtime import Runtime


def sizes_of(definition: Definition, runtime: Runtime) -> dict[str, int]:
    """Bytes of every source as it is now."""
    places = {name: source.location for name, source in definition.sources.items()}
    return {name: runtime.tables.latest_snapshot(place).size_in_bytes for name, place in places.items()}


def together(name: str, graph: Graph) -> tuple[str, ...]:
    """What is refreshed with a stream table, and why, in a sentence; nothing if it is refreshed alone."""
    unit = next((unit for unit in graph.units if name in unit.members), None)
    if unit is None:
        return ()
    others = ", ".join(f"`{shown(other)}`" for other in unit.members if other != name)
    if any(name in cycle for cycle in unit.cycles):
        return (f"it is refreshed together with {others}: they are evaluated until nothing is new",)
    return (f"it is refreshed together with {others}: if one fails, none is changed",)


def kept_groups(prepared: Prepared, runtime: Runtime) -> tuple[str, ...]:
    """Which groups inside the query would be kept from one refresh to the next, a sentence for each."""
    places = {name: source.location for name, source in prepared.definition.sources.items()}
    snapshots = {name: runtime.tables.latest_snapshot(place) for name, place in places.items()}
    worth = [inner for inner in prepared.inner if runtime.groups.is_worth_keeping(inner, snapshots)]
    return tuple(
        f"the groups of `{inner.groups.operator.label}` are kept in memory between refreshes of one process"
        for inner in worth
    )


def decide(table: StreamTable, prepared: Prepared, runtime: Runtime) -> Decision:
    """The same pure decision over the same facts; sources that are stream tables count as they are now."""
    with runtime.catalog.begin(write=False) as catalog:
        pins = pin_bases(catalog.dependencies.of(table.id), runtime)
        tables = {t.name: t for t in catalog.stream_tables.all()}
    interval = measure_interval(table, prepared.definition, pins, tables, runtime)
    found = look(table, runtime)
    foreign = "" if found.committed else found.foreign_write
    return choose_action(facts_of(table, prepared.definition, interval, foreign, runtime))
