"""The decision the next refresh would take, without taking it."""

from __future__ import annotations

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.definition import Definition
from spark_trickle.refresh.choose import Decision, choose_action
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.interval import facts_of, measure_interval
from spark_trickle.refresh.pins import pin_bases
from spark_trickle.refresh.recover import look
from spark_trickle.refresh.runtime import Runtime


def sizes_of(definition: Definition, runtime: Runtime) -> dict[str, int]:
    """Bytes of every source as it is now."""
    places = {name: source.location for name, source in definition.sources.items()}
    return {name: runtime.tables.latest_snapshot(place).size_in_bytes for name, place in places.items()}


def decide(table: StreamTable, prepared: Prepared, runtime: Runtime) -> Decision:
    """The same pure decision over the same facts; sources that are stream tables count as they are now."""
    with runtime.catalog.begin(write=False) as catalog:
        pins = pin_bases(catalog.dependencies.of(table.id), runtime)
        tables = {t.name: t for t in catalog.stream_tables.all()}
    interval = measure_interval(table, prepared.definition, pins, tables, runtime)
    found = look(table, runtime)
    foreign = "" if found.committed else found.foreign_write
    return choose_action(facts_of(table, prepared.definition, interval, foreign, runtime))
