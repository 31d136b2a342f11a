"""The two ends of an interval, and how sources are read there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pyspark.sql import DataFrame

from spark_trickle.algebra.relations import NEW, OLD, Version
from spark_trickle.catalyst.leaves import AtHand, Shape
from spark_trickle.catalyst.listing import Values, Within
from spark_trickle.catalyst.plan import Plan
from spark_trickle.config import Settings
from spark_trickle.storage.changes import changes_between
from spark_trickle.storage.direct import look_up, read_whole
from spark_trickle.storage.shared_changes import small_change
from spark_trickle.storage.tables import DeltaTables, Snapshot

_HELD_BYTES = 256 * 2**20
_UNPACKED = 4
"""Rows in memory take up about so many times the room that they have in files."""
_WHOLE_ROWS = 20_000
"""Sources with no more rows are read whole by the driver: of larger ones few rows are looked up sooner, and Spark reads
all of them sooner."""
_LOOKED_UP, _LOOKED_UP_ROWS, _SCANNED = 10, 200_000, 50
"""More rows are looked up in a large source than are held of a change, up to so many times as many, or so many in all: to
the driver, each of them is as much work as so many rows are that Spark reads."""


@dataclass(frozen=True)
class Moment:
    """One end of an interval: a version of every source, and the time if the query asks for it."""

    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    at: datetime | None = None


def rows_to_read(most: int) -> int:
    """How many rows of a source the driver reads at the most, where it reads all."""
    return min(most, _WHOLE_ROWS)


def rows_to_hold(settings: Settings, *ends: Moment) -> int:
    """How many rows of a change the driver holds: fewer where the sources' rows are wide."""
    return min(settings.local_change_rows, rows_that_fit(*ends))


def rows_that_fit(*ends: Moment) -> int:
    """As many rows of the usual width as the driver has room for; fewer where that is not known."""
    every = [snapshot.counted for end in ends for snapshot in end.snapshots.values()]
    size, rows = (sum(counts) for counts in zip(*every, strict=True)) if every else (0, 0)
    return max(1, _HELD_BYTES * rows // (_UNPACKED * size)) if size else _WHOLE_ROWS


class VersionReader:
    """Reads sources at the two ends of an interval, in the session of the definition."""

    def __init__(self, tables: DeltaTables, old: Moment, new: Moment, most: int) -> None:
        """`most`: so many rows are held by the driver."""
        self._tables = tables
        self.most = most
        self._fitting = rows_that_fit(old, new)
        self._ends = {OLD: old, NEW: new}

    def rows(self, source: str, version: Version, columns: Sequence[str]) -> DataFrame:
        return self._tables.rows(self._ends[version].snapshots[source], columns)

    def table(self, source: str, version: Version, within: Within) -> Plan:
        return self._tables.leaf(self._ends[version].snapshots[source], within)

    def lookup(
        self, source: str, version: Version, shape: Shape, keys: Mapping[str, Values]
    ) -> AtHand | None:
        snapshot = self._ends[version].snapshots[source]
        most = min(
            self.most * _LOOKED_UP,
            self.most + snapshot.row_count // _SCANNED,
            max(self.most, min(self._fitting, _LOOKED_UP_ROWS)),
        )
        return look_up(self._tables, snapshot, shape, keys, most)

    def whole(self, source: str, version: Version, shape: Shape) -> AtHand | None:
        return read_whole(self._tables, self._ends[version].snapshots[source], shape, rows_to_read(self.most))

    def small_change(self, source: str, shape: Shape) -> AtHand | None:
        old, new = (self._ends[version].snapshots[source] for version in (OLD, NEW))
        return small_change(self._tables, old, new, shape, self.most)

    def prunes_pages(self, source: str, version: Version, column: str, values: Sequence[int]) -> bool:
        return self._ends[version].snapshots[source].prunes_pages(column, values)

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        old, new = (self._ends[version].snapshots[source] for version in (OLD, NEW))
        return changes_between(self._tables, old, new, columns)

    def instant(self, version: Version) -> datetime:
        at = self._ends[version].at
        assert at is not None  # noqa: S101 - a query that asks for the time has one in its frontier
        return at
