"""The dependency graph as the catalog has it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from spark_trickle.catalog import Catalog, Dependency, StreamTable
from spark_trickle.graph.dependencies import Dependencies
from spark_trickle.graph.units import Unit, in_order, units_of


@dataclass(frozen=True, slots=True)
class Graph:
    """Who reads what, the stream tables by name, and the rows it was made from."""

    dependencies: Dependencies
    atomic: Set[str]
    """Names of those whose diamond is refreshed as one."""
    tables: Mapping[str, StreamTable]
    rows: tuple[Dependency, ...]

    def upstream(self, name: str) -> list[StreamTable]:
        """The stream tables that a stream table is made from, each after those it reads."""
        return [self.tables[above] for above in self.dependencies.upstream(name)]

    @property
    def units(self) -> list[Unit]:
        """The cycles, and the diamonds of which a member is to be atomic."""
        return units_of(self.dependencies, self.atomic)


def read_graph(catalog: Catalog) -> Graph:
    """All of it, at one moment."""
    with catalog.begin(write=False) as now:
        tables = {table.id: table for table in now.stream_tables.all()}
        rows = now.dependencies.all()
    atomic = {table.name for table in tables.values() if table.diamond_consistency == "atomic"}
    reads: dict[str, list[str]] = {table.name: [] for table in tables.values()}
    for row in rows:
        reads[tables[row.stream_table_id].name].append(row.source_name)
    return Graph(Dependencies(reads), atomic, {table.name: table for table in tables.values()}, tuple(rows))


def read_order(catalog: Catalog, name: str) -> tuple[Graph, list[Unit]]:
    """A stream table, all it is made from and what is refreshed with one of them, in order.

    The graph has the tables and rows of these only: what others are like takes longer to read than to ask who reads what.
    """
    with catalog.begin(write=False) as now:
        outlines = now.stream_tables.outlines()
        names, ids = {o.id: o.name for o in outlines}, {o.name: o.id for o in outlines}
        reads: dict[str, list[str]] = {found: [] for found in ids}
        for owner, source in now.dependencies.edges():
            reads[names[owner]].append(source)
        dependencies = Dependencies(reads)
        atomic = {o.name for o in outlines if o.diamond_consistency == "atomic"}
        order = in_order(dependencies, [name], units_of(dependencies, atomic))
        own = [ids[member] for unit in order for member in unit.members]
        tables = {table.name: table for table in now.stream_tables.some(own)}
        rows = tuple(now.dependencies.of_some(own))
    return Graph(dependencies, atomic, tables, rows), order
