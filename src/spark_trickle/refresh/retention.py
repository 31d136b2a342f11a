"""Which versions of their sources stream tables still need, and which of them may soon be gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.errors import TrickleError
from spark_trickle.names import shown
from spark_trickle.refresh.graph import Graph
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.storage.retention import retention_of

_SOON = 4
"""A version is at risk in the last quarter of the time for which it is kept."""


@dataclass(frozen=True, slots=True)
class Risk:
    """A stream table that must be refreshed before a time, else it is rebuilt from scratch."""

    name: str
    source: str
    version: int
    until: datetime

    @property
    def message(self) -> str:
        when = f"{self.until:%Y-%m-%d %H:%M} UTC"
        return (
            f"It continues from version {self.version} of `{shown(self.source)}`, "
            f"which VACUUM or log clean-up may remove from {when} on; refresh it before, or it is rebuilt."
        )


def risks(graph: Graph, now: datetime, runtime: Runtime) -> Iterator[Risk]:
    """Every version that is needed and at risk; a source that cannot be looked at is somebody else's concern."""
    for row in graph.rows:
        table = next(t for t in graph.tables.values() if t.id == row.stream_table_id)
        read = table.frontier.inputs.get(row.source_name) if table.frontier else None
        if read is None:
            continue
        try:
            kept = retention_of(runtime.tables, row.location, read.version)
        except (TrickleError, PySparkException, Py4JError):
            continue
        if kept is not None and now > kept.until - kept.of / _SOON:
            yield Risk(table.name, row.source_name, read.version, kept.until)
