"""The dependency graph as the catalog has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_trickle.catalog import Catalog, Dependency, StreamTable
from spark_trickle.graph.dependencies import Dependencies


@dataclass(frozen=True, slots=True)
class Graph:
    """The stream tables by name, who reads what, and the rows it was made from."""

    dependencies: Dependencies
    tables: Mapping[str, StreamTable]
    rows: tuple[Dependency, ...]

    def upstream(self, name: str) -> list[StreamTable]:
        """The stream tables that a stream table is made from, each after those it reads."""
        return [self.tables[above] for above in self.dependencies.upstream(name)]


def read_graph(catalog: Catalog) -> Graph:
    """All of it, at one moment."""
    with catalog.begin(write=False) as now:
        tables = {table.id: table for table in now.stream_tables.all()}
        rows = now.dependencies.all()
    reads: dict[str, list[str]] = {table.name: [] for table in tables.values()}
    for row in rows:
        reads[tables[row.stream_table_id].name].append(row.source_name)
    return Graph(Dependencies(reads), {table.name: table for table in tables.values()}, tuple(rows))
