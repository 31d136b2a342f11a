"""The dependency graph over tables and stream tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import networkx as nx


class Dependencies:
    """Edges run from a source to the stream table that reads it."""

    def __init__(self, reads: Mapping[str, Iterable[str]]) -> None:
        self._graph: nx.DiGraph[str] = nx.DiGraph()
        self._stream_tables = frozenset(reads)
        for table, sources in reads.items():
            self._graph.add_node(table)
            self._graph.add_edges_from((source, table) for source in sources)

    def reading(self, name: str, sources: Iterable[str]) -> Dependencies:
        """The graph if a stream table read these instead of what it reads."""
        others = {table: self.sources(table) for table in self._stream_tables}
        return Dependencies({**others, name: list(sources)})

    def upstream(self, name: str) -> list[str]:
        """The stream tables a stream table is made from, directly or not, each after those it reads."""
        return _in_order(self._graph.subgraph(nx.ancestors(self._graph, name) & self._stream_tables))

    def bases(self, name: str) -> list[str]:
        """The base tables below a stream table."""
        return sorted(nx.ancestors(self._graph, name) - self._stream_tables)

    def sources(self, name: str) -> list[str]:
        """What a stream table reads directly."""
        return sorted(self._graph.predecessors(name)) if name in self._graph else []

    def ancestors(self, name: str) -> set[str]:
        """Everything a table is made from, base tables and stream tables."""
        return set(nx.ancestors(self._graph, name)) if name in self._graph else set()

    def is_stream_table(self, name: str) -> bool:
        return name in self._stream_tables

    def dependents(self, name: str) -> list[str]:
        """The stream tables that read this table directly."""
        return sorted(self._graph.successors(name)) if name in self._graph else []

    def downstream(self, name: str) -> list[str]:
        """Every stream table that would notice a change, each after those it reads."""
        below = nx.descendants(self._graph, name) if name in self._graph else set()
        return [table for table in self._order if table in below]

    def order(self) -> list[str]:
        """Every stream table, each after those it reads."""
        return [table for table in self._order if table in self._stream_tables]

    def cycles(self) -> list[frozenset[str]]:
        """The largest groups of stream tables that read each other in a circle."""
        found = [frozenset(group) for group in nx.strongly_connected_components(self._graph)]
        return sorted((group for group in found if len(group) > 1), key=min)

    def path_of_cycle(self) -> list[str]:
        """The tables of a circle in the order in which they are read, the first one again at the end; or nothing."""
        try:
            cycle = nx.find_cycle(self._graph)
        except nx.NetworkXNoCycle:
            return []
        return [cycle[0][0], *(edge[1] for edge in cycle)]

    @cached_property
    def _order(self) -> list[str]:
        return _in_order(self._graph)


def _in_order(graph: nx.DiGraph[str]) -> list[str]:
    """Sources first; tables that read each other in a circle stand side by side."""
    condensed = nx.condensation(graph)
    members = {node: sorted(condensed.nodes[node]["members"]) for node in condensed}
    order = nx.lexicographical_topological_sort(condensed, key=lambda node: members[node][0])
    return [table for node in order for table in members[node]]
