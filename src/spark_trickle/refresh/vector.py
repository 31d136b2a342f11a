"""Which version of every direct source a refresh reads: all of them must agree on what lies below.

The newest versions, as a rule. Where one source could not be brought along, because it is suspended or has failed,
the others are read at older versions that go with it, as long as they are retained: never a mixture.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def choose_inputs(
    table: StreamTable,
    definition: Definition,
    pins: Pins,
    upstream: Mapping[str, StreamTable],
    runtime: Runtime,
) -> tuple[Frontier, str]:
    """What the refresh will have read, and which base versions do not agree, if there is no way that they do."""
    sources = {name: _filled(upstream[name], table) for name in definition.sources if name in upstream}
    newest = {name: Point(version, frontier) for name, (version, frontier) in sources.items()}
    frontier, disagreement = _joined(definition, pins, newest, upstream)
    if not disagreement:
        return frontier, ""
    older = _older(table, definition, pins, {name: upstream[name] for name in sources}, runtime)
    return (older, "") if older is not None else (frontier, disagreement)


def _filled(source: StreamTable, reader: StreamTable) -> tuple[int, Frontier]:
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
    inputs: dict[str, SourceVersion] = {}
    bases: dict[str, SourceVersion] = {}
    disagreement = ""
    for name in definition.sources:
        point = points.get(name)
        version = SourceVersion(tables[name].table_id, point.version) if point else pins.bases[name]
        inputs[name] = version
        for base, read in (point.frontier.bases if point else {name: version}).items():
            known = bases.setdefault(base, read)
            if known != read:
                disagreement = f"versions {known.version} and {read.version} of `{shown(base)}`"
    return Frontier(inputs, bases), disagreement


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
