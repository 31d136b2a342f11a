"""Stream tables with nothing to do, found and recorded many at a time: no lease, no Spark, one transaction.

Most refreshes of a daemon find that no source has changed. For a definition that this process has understood already
the catalog and the names of log files tell as much. Whatever is not plain is left to a refresh of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_trickle.catalog import StreamTable
from spark_trickle.catalyst.plan import Planner
from spark_trickle.errors import TrickleError
from spark_trickle.frontier import SourceVersion
from spark_trickle.names import shown
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.described import is_described
from spark_trickle.refresh.pins import Pins
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.runtime import Runtime, owner_name
from spark_trickle.storage.commits import commits_after

REASON = "no source has changed"


@dataclass(frozen=True, slots=True)
class Idle:
    """A stream table that is what its query gives at a data timestamp, as it is."""

    table: StreamTable
    at: datetime

    @property
    def result(self) -> RefreshResult:
        table = self.table
        return RefreshResult(
            shown(table.name), Action.NO_DATA, REASON, 0, 0, table.table_version, table.frontier, 0.0
        )


@dataclass
class Look:
    """One look at many stream tables; what several of them read is looked at once."""

    tables: Mapping[str, StreamTable]
    runtime: Runtime
    unfinished: Set[str] = frozenset()
    """Ids of those that are being refreshed, or were when a process died: their refresh has to put that right."""
    _places: dict[str, str] = field(default_factory=dict)

    def is_idle(self, table: StreamTable, pins: Pins) -> bool:
        """Nothing has happened to the table or to what it reads, of which nothing is going to change either."""
        known = table.frontier is not None and table.table_version is not None and table.status == "ACTIVE"
        if not known or table.needs_reinit or table.consecutive_errors or table.id in self.unfinished:
            return False
        if not self.runtime.definitions.is_steady(table, self._place_of):
            return False
        inputs = table.frontier.inputs if table.frontier else {}
        same = all(self._now(name, pins) == read for name, read in inputs.items())
        return same and self._is_untouched(table)

    def _place_of(self, planner: Planner, name: str) -> str:
        if name not in self._places:
            self._places[name] = planner.table_location(name)
        return self._places[name]

    def _now(self, name: str, pins: Pins) -> SourceVersion | None:
        source = self.tables.get(name)
        if source is None:
            return pins.bases.get(name)
        if source.status != "ACTIVE" or source.table_version is None:
            return None
        return SourceVersion(source.table_id, source.table_version)

    def _is_untouched(self, table: StreamTable) -> bool:
        """Nobody else has written to it; compaction and the like do not count."""
        tables, known = self.runtime.tables, table.table_version or 0
        latest = tables.latest(table.location)
        if latest.table_id != table.table_id or latest.version < known:
            return False
        commits = commits_after(tables, table.location, known, latest.version, latest.table_id)
        return not any(commit.changes_data or commit.gone for commit in commits)


def look_at(tables: Mapping[str, StreamTable], runtime: Runtime) -> Look:
    """A look at the stream tables of the catalog."""
    with runtime.catalog.begin(write=False) as catalog:
        unfinished = catalog.refreshes.unfinished()
    return Look(tables, runtime, unfinished)


def nothing_to_do(names: Sequence[str], look: Look, pins: Pins) -> list[Idle] | None:
    """Of stream tables that are refreshed one after the other: all of them, if none has anything to do; else None."""
    found = []
    for name in names:
        table = look.tables[name]
        try:
            if not look.is_idle(table, pins) or not is_described(table, look.runtime):
                return None
        except (TrickleError, PySparkException, Py4JError):
            return None  # its own refresh tells what is wrong
        found.append(Idle(table, pins.at))
    return found


def record_idle(idle: Iterable[Idle], runtime: Runtime) -> list[Idle]:
    """Bring them to their data timestamps in the catalog; those that somebody has refreshed meanwhile are left out."""
    with runtime.catalog.begin() as catalog:
        every = {one.table.id: one for one in idle}
        moved = catalog.stream_tables.reach({i: (one.table.sequence, one.at) for i, one in every.items()})
        reached = [one for i, one in every.items() if i in moved]
        catalog.refreshes.add_idle([one.table for one in reached], owner_name(), REASON)
    return reached
