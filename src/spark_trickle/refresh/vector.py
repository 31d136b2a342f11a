"""Which version of every direct source a refresh reads: all of them must agree on what lies below.

The newest versions, as a rule. Where one source could not be brought along, because it is suspended or has failed,
the others are read at older versions that go with it, as long as they are retained: never a mixture.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from spark_trickle.catalog import Catalog, StreamTable
from spark_trickle.catalyst.definition import Definition
from spark_trickle.errors import RefreshError, StateError
from spark_trickle.frontier import Frontier, SourceVersion
from spark_trickle.graph.vectors import Point, common_points
from spark_trickle.names import shown
from spark_trickle.refresh.pins import Pins
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.storage.tables import VersionUnavailable


def points_of(table: StreamTable, catalog: Catalog) -> list[Point]:
    """What a stream table has been, newest first. Its own row comes first: the history may have been thinned out."""
    found = []
    if table.frontier is not None and table.table_version is not None:
        found.append(Point(table.table_version, table.frontier))
    with catalog.begin(write=False) as now:
        rows = now.refreshes.of(table.id)
    completed = (row for row in rows if row.status == "COMPLETED")
    found += [
        Point(row.version, row.frontier) for row in completed if row.frontier and row.version is not None
    ]
    return found


class Agreement:
    """What several sources have read below them, and whether they agree on it."""

    def __init__(self) -> None:
        self.bases: dict[str, SourceVersion] = {}
        self.through: dict[str, SourceVersion] = {}
        self.problem = ""

    def read(self, name: str, version: SourceVersion, below: Frontier | None) -> None:
        """A source: a base table, or a stream table with its frontier."""
        if below is None:
            self._note(self.bases, {name: version})
        else:
            self._note(self.bases, below.bases)
            self._note(self.through, {**below.through, name: version})

    def _note(self, known: dict[str, SourceVersion], read: Mapping[str, SourceVersion]) -> None:
        for name, version in read.items():
            if known.setdefault(name, version) != version:
                self.problem = f"versions {known[name].version} and {version.version} of `{shown(name)}`"


def pinned(pins: Pins, definition: Definition, upstream: Container[str], runtime: Runtime) -> Pins:
    """With the newest version of sources that nobody has pinned: the query may read others than before."""
    missing = [n for n in definition.sources if n not in upstream and n not in pins.bases]
    newest = {n: runtime.tables.latest(definition.sources[n].location) for n in missing}
    return replace(pins, bases={**pins.bases, **newest})


def choose_inputs(
    table: StreamTable,
    definition: Definition,
    pins: Pins,
    upstream: Mapping[str, StreamTable],
    runtime: Runtime,
) -> tuple[Frontier, str]:
    """What the refresh will have read, and which base versions do not agree, if there is no way that they do."""
    pins = pinned(pins, definition, upstream, runtime)
    sources = {name: filled(upstream[name], table) for name in definition.sources if name in upstream}
    newest = {name: Point(version, frontier) for name, (version, frontier) in sources.items()}
    frontier, disagreement = _joined(definition, pins, newest, upstream)
    if not disagreement:
        return frontier, ""
    older = _older(table, definition, pins, {name: upstream[name] for name in sources}, runtime)
    return (older, "") if older is not None else (frontier, disagreement)


def filled(source: StreamTable, reader: StreamTable) -> tuple[int, Frontier]:
    """Version and frontier of a stream table that another one reads."""
    if source.frontier is None or source.table_version is None:
        raise RefreshError(
            f"`{shown(source.name)}` has not been filled yet, so `{shown(reader.name)}` cannot read it.",
            hint=f"Refresh `{shown(source.name)}` first.",
            code="UPSTREAM_NOT_READY",
        )
    return source.table_version, source.frontier


def _joined(
    definition: Definition, pins: Pins, points: Mapping[str, Point], tables: Mapping[str, StreamTable]
) -> tuple[Frontier, str]:
    """The frontier that reads these points and the pinned base tables, and what does not agree in it."""
    agreement = Agreement()
    inputs: dict[str, SourceVersion] = {}
    for name in definition.sources:
        point = points.get(name)
        inputs[name] = SourceVersion(tables[name].table_id, point.version) if point else pins.bases[name]
        agreement.read(name, inputs[name], point.frontier if point else None)
    return Frontier(inputs, agreement.bases, through=agreement.through), agreement.problem


def _older(
    table: StreamTable,
    definition: Definition,
    pins: Pins,
    sources: Mapping[str, StreamTable],
    runtime: Runtime,
) -> Frontier | None:
    """The newest retained versions that agree and are not older than what the table has read; None without any."""
    try:
        points = common_points({name: points_of(source, runtime.catalog) for name, source in sources.items()})
    except StateError:
        return None
    below = {base: read for point in points.values() for base, read in point.frontier.bases.items()}
    pins = replace(pins, bases={**pins.bases, **{b: v for b, v in below.items() if b in pins.bases}})
    frontier, disagreement = _joined(definition, pins, points, sources)
    if disagreement or _goes_back(table.frontier, frontier):
        return None
    try:
        for name, version in frontier.inputs.items():
            runtime.tables.snapshot(definition.sources[name].location, version)
    except VersionUnavailable:
        return None
    return frontier


def _goes_back(old: Frontier | None, new: Frontier) -> bool:
    read = old.inputs if old else {}
    return any(name in read and version.version < read[name].version for name, version in new.inputs.items())
