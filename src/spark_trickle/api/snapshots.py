"""Several stream tables as of one instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_trickle.catalog import StreamTable
from spark_trickle.errors import DefinitionError, StateError
from spark_trickle.frontier import SourceVersion
from spark_trickle.graph.vectors import common_points
from spark_trickle.names import PREFIX, quote, shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_trickle.refresh.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Stream tables that agree on every source they share, directly or not."""

    tables: Mapping[str, DataFrame]
    versions: Mapping[str, int]
    """The version of each Delta table."""
    sources: Mapping[str, int]
    """The version of each base table that they are made from."""

    def __getitem__(self, name: str) -> DataFrame:
        return self.tables[name]


def take_snapshot(tables: Sequence[StreamTable], runtime: Runtime, views: bool) -> Snapshot:
    """The frames of a snapshot; with `views` also temporary views named `snapshot_` and the table."""
    from spark_trickle.refresh.vector import points_of
    from spark_trickle.storage.tables import VersionUnavailable

    if not tables:
        raise DefinitionError(
            "A snapshot needs the name of at least one stream table.",
            hint='snapshot(["a", "b"])',
            code="INVALID_OPTION",
        )
    chosen = common_points({table.name: points_of(table, runtime.catalog) for table in tables})
    frames: dict[str, DataFrame] = {}
    for table in tables:
        wanted = SourceVersion(table.table_id, chosen[table.name].version)
        try:
            frame = runtime.tables.rows(runtime.tables.snapshot(table.location, wanted))
        except VersionUnavailable as gone:
            raise StateError(
                f"Version {wanted.version} of `{shown(table.name)}`, which goes with the others, is gone: {gone}.",
                hint="Refresh the table at the end of the graph, then take the snapshot again.",
                code="NO_COMMON_VERSION",
            ) from None
        visible = frame.select(*[quote(c) for c in frame.columns if c != PREFIX])
        frames[shown(table.name)] = visible
        if views:
            visible.createOrReplaceTempView(quote(f"snapshot_{table.name.rpartition('.')[2]}"))
    sources = {
        shown(name): version.version
        for point in chosen.values()
        for name, version in sorted(point.frontier.bases.items())
    }
    return Snapshot(frames, {shown(name): p.version for name, p in chosen.items()}, sources)
