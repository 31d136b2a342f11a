"""Diamonds: stream tables that reach a common source along several paths, and meet again."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from spark_trickle.graph.dependencies import Dependencies


@dataclass(frozen=True, slots=True)
class DiamondGroup:
    """Stream tables that must not be mixed: `ends` read several of the others, all made from `sources`."""

    members: tuple[str, ...]
    ends: tuple[str, ...]
    sources: tuple[str, ...]


def diamond_groups(graph: Dependencies) -> list[DiamondGroup]:
    """Every diamond; those that share a stream table are one group."""
    groups: list[tuple[set[str], set[str], set[str]]] = []
    for end in graph.order():
        found = _diamond(graph, end)
        if found is None:
            continue
        members, sources = found
        merged = (members, {end}, sources)
        for group in [g for g in groups if g[0] & members]:
            groups.remove(group)
            merged = (merged[0] | group[0], merged[1] | group[1], merged[2] | group[2])
        groups.append(merged)
    order = graph.order()
    return [
        DiamondGroup(tuple(t for t in order if t in members), tuple(sorted(ends)), tuple(sorted(sources)))
        for members, ends, sources in groups
    ]


def _diamond(graph: Dependencies, end: str) -> tuple[set[str], set[str]] | None:
    """The stream tables on the paths that part and meet again in `end`, and where they part."""
    reach = {source: {source, *graph.ancestors(source)} for source in graph.sources(end)}
    shared = set[str]().union(*(one & other for one, other in itertools.combinations(reach.values(), 2)))
    if not shared:
        return None
    between = {
        table
        for table in {end, *graph.ancestors(end)}
        if graph.is_stream_table(table) and (table in shared or graph.ancestors(table) & shared)
    }
    parting = {s for s in shared if not any(s in graph.ancestors(other) for other in shared)}
    return between, parting
