"""Stream tables that are refreshed together or not at all: cycles, and diamonds that are to be atomic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
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
    merged: list[frozenset[str]] = []
    for group in [*cycles, *(d for d in diamonds if d & atomic)]:
        grown = _with_paths(graph, group)
        while touching := [other for other in merged if other & grown]:
            merged = [other for other in merged if other not in touching]
            grown = _with_paths(graph, grown.union(*touching))
        merged.append(grown)
    order = graph.order()
    return [
        Unit(tuple(name for name in order if name in group), tuple(c for c in cycles if c <= group))
        for group in merged
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
    contracted: nx.DiGraph[tuple[str, ...]] = nx.DiGraph()
    for name, unit in needed.items():
        contracted.add_node(unit.members)
        for source in graph.sources(name):
            if source in needed and needed[source] != unit:
                contracted.add_edge(needed[source].members, unit.members)
    by_members = {unit.members: unit for unit in needed.values()}
    return [by_members[members] for members in nx.lexicographical_topological_sort(contracted)]


def _with_paths(graph: Dependencies, group: frozenset[str]) -> frozenset[str]:
    """The group and the stream tables between its members."""
    above = set().union(*(graph.ancestors(name) for name in group))
    below = set().union(*(graph.downstream(name) for name in group))
    return group | (above & below)
