"""Stream tables that are refreshed together or not at all: cycles, and diamonds that are to be atomic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import networkx as nx

from spark_trickle.graph.dependencies import Dependencies
from spark_trickle.graph.diamonds import diamond_groups


@dataclass(frozen=True, slots=True)
class Unit:
    """Members in an order in which sources come first."""

    members: tuple[str, ...]
    cycles: tuple[frozenset[str], ...] = ()

    def steps(self) -> list[tuple[str, ...]]:
        """One member after the other; those of a cycle at once."""
        found: list[tuple[str, ...]] = []
        for name in self.members:
            cycle = next((cycle for cycle in self.cycles if name in cycle), frozenset({name}))
            step = tuple(member for member in self.members if member in cycle)
            if step not in found:
                found.append(step)
        return found


def units_of(graph: Dependencies, atomic: Set[str]) -> list[Unit]:
    """Every cycle, and every diamond with a member in `atomic`; those that share a table are one.

    What lies on a path from one member to another is a member too: it cannot be refreshed before or after.
    """
    cycles = graph.cycles()
    diamonds = [frozenset(g.members) for g in diamond_groups(graph)] if atomic else []
    groups = [*cycles, *(d for d in diamonds if d & atomic)]
    if not groups:
        return []
    merged: list[frozenset[str]] = []
    while groups != merged:
        merged = groups
        groups = _merged(graph, merged)
    order = graph.order()
    return [
        Unit(tuple(name for name in order if name in group), tuple(c for c in cycles if c <= group))
        for group in groups
    ]


def in_order(graph: Dependencies, names: Iterable[str], units: Sequence[Unit]) -> list[Unit]:
    """Some stream tables, all they are made from, and whatever is refreshed with one of them, as units in order."""
    home = {name: unit for unit in units for name in unit.members}
    needed: dict[str, Unit] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed[name] = home.get(name) or Unit((name,))
        waiting += [*graph.upstream(name), *needed[name].members]
    contracted = _contracted(graph, {name: unit.members for name, unit in needed.items()})
    by_members = {unit.members: unit for unit in needed.values()}
    return [by_members[members] for members in nx.lexicographical_topological_sort(contracted)]


def _merged(graph: Dependencies, groups: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Groups that share a table, or that read each other, are one, with all that lies between."""
    sharing: nx.Graph[str] = nx.Graph()
    for group in groups:
        nx.add_path(sharing, sorted(group))
        sharing.add_nodes_from(group)
    joined = [frozenset(part) for part in nx.connected_components(sharing)]
    home = {name: tuple(sorted(group)) for group in joined for name in group}
    contracted = _contracted(graph, {name: home.get(name, (name,)) for name in graph.order()})
    circles = (part for part in nx.strongly_connected_components(contracted) if len(part) > 1)
    grown = [frozenset(name for node in part for name in node) for part in circles]
    rest = [group for group in joined if not any(group <= other for other in grown)]
    return sorted([*grown, *rest], key=min)


def _contracted(graph: Dependencies, home: Mapping[str, tuple[str, ...]]) -> nx.DiGraph[tuple[str, ...]]:
    """The graph with some tables in the place of each: an edge wherever one of them reads one of the others."""
    contracted: nx.DiGraph[tuple[str, ...]] = nx.DiGraph()
    for name, group in home.items():
        contracted.add_node(group)
        sources = (home[source] for source in graph.sources(name) if source in home)
        contracted.add_edges_from((source, group) for source in sources if source != group)
    return contracted
