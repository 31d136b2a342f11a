"""Sources as plans: a version of one, its change, the time.

Everything has the column ids of the leaf it stands for in the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol

from pyspark.sql import DataFrame

from spark_trickle.algebra.comparisons import Comparison
from spark_trickle.algebra.relations import NEW, OLD, Node, Relation, Scan, Version
from spark_trickle.algebra.traverse import scans_of
from spark_trickle.catalyst import held
from spark_trickle.catalyst.holder import Holder
from spark_trickle.catalyst.listing import Values, Within
from spark_trickle.catalyst.plan import Expression, Plan, Planner, column_id, kind_of, output
from spark_trickle.catalyst.time import CLOCK, at_instant, clock_column
from spark_trickle.names import WEIGHT

_Asked = tuple[str, tuple[str, ...], tuple[Comparison, ...]]
"""A source, some of its columns, and which rows may be left out."""


@dataclass(frozen=True)
class Shape:
    """A leaf of the query: all its columns in order, and those that the query uses with their types."""

    columns: tuple[str, ...]
    types: tuple[tuple[str, str], ...]
    only: tuple[Comparison, ...] = ()
    """Rows that fail one of these may be left out."""

    @cached_property
    def used(self) -> Mapping[str, str]:
        return dict(self.types)


@dataclass(frozen=True)
class AtHand:
    """Rows that the driver holds, under ids of their own."""

    plan: Plan
    rows: int
    complete: bool
    """It has all columns of the leaf, those that nobody uses as NULL; else only the used ones."""


class Reader(Protocol):
    """Where the rows of a source come from."""

    def rows(self, source: str, version: Version, columns: Sequence[str]) -> DataFrame:
        """The source's columns at one version."""
        ...

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        """The netted change of these columns, weight last; None when there is none."""
        ...

    def table(self, source: str, version: Version, within: Within) -> Plan | None:
        """The source with all its columns as one leaf of a plan, where it is a table.

        Rows whose columns do not lie in all the ranges of `within` may be missing.
        """
        ...

    def lookup(
        self, source: str, version: Version, shape: Shape, keys: Mapping[str, Values]
    ) -> AtHand | None:
        """The rows that have one of the values in each column of `keys`, if they are easily read."""
        ...

    def whole(self, source: str, version: Version, shape: Shape) -> AtHand | None:
        """All rows, if those are few."""
        ...

    def small_change(self, source: str, shape: Shape) -> AtHand | None:
        """The netted change of the used columns, weight last, if it is easily read; see `changes`."""
        ...

    def prunes_pages(self, source: str, version: Version, column: str, values: Sequence[int]) -> bool:
        """The values, in order, lie in few of the pages that the source's files have for the column."""
        ...

    def instant(self, version: Version) -> datetime:
        """The time that the clock shows at one version."""
        ...


class Leaves:
    """The leaves of the plans of one refresh; what is read of a change is read once."""

    def __init__(self, planner: Planner, reader: Reader, holder: Holder) -> None:
        self._planner = planner
        self._reader = reader
        self._holder = holder
        self._versions: dict[tuple[int, Version], Plan] = {}
        self._changes: dict[_Asked, AtHand | Plan | None] = {}
        self._counted: set[tuple[str, tuple[str, ...]]] = set()
        self._alive: list[Node] = []
        self.many = False
        """A source has changed in more rows than the driver holds."""
        self.changed_rows = 0
        """Netted change rows read from the sources so far."""
        self.copies = 0
        """As how many rows those of the driver count that are told by few, each with its weight."""

    def at(self, relation: Node, version: Version) -> Plan:
        """A relation of the query over one version of its sources, the same plan each time."""
        if (id(relation), version) not in self._versions:
            self._alive.append(relation)
            self._versions[id(relation), version] = self._evaluated(relation, version)
        return self._versions[id(relation), version]

    def _evaluated(self, relation: Node, version: Version) -> Plan:
        assert isinstance(relation, Relation)  # noqa: S101 - a change has no version
        if isinstance(relation, Scan):
            return self.scan(relation, version, {})
        scans = list(scans_of(relation))
        replaced = [(s.operator.payload, self.at(s, version)) for s in scans if s.source != CLOCK]
        plan = self._planner.replace_nodes(relation.operator.payload, replaced)
        if any(s.source == CLOCK for s in scans):
            plan = at_instant(self._planner, plan, self._reader.instant(version))
        return plan

    def scan(self, scan: Scan, version: Version, within: Within) -> Plan:
        """One version of a source under the query's ids; rows outside the ranges of `within` may be missing."""
        if scan.source == CLOCK:
            return self._planner.project([self._time(scan, version)], self._planner.one_row())
        few = self._reader.whole(scan.source, version, self._shape(scan))
        if few is not None:
            return self._at_hand(scan, few, weighted=False)
        table, leaf = self._reader.table(scan.source, version, within), self._table(scan)
        if table is not None and table.schema().equals(leaf.schema()):
            found = self._planner.under_ids(table, leaf.output())
            if found is not None:
                own = scan.operator.payload
                return found if leaf is own else self._planner.with_children(own, [found])
        frame = self._reader.rows(scan.source, version, [c.name for c in scan.columns])
        return self._adopt(scan, self._planner.analyzed(frame), weighted=False)

    def looked_up(self, scan: Scan, version: Version, keys: Mapping[int, Values]) -> Plan | None:
        """The rows with one of the values in each of some columns, by id, under the query's ids; None: ask Spark."""
        if scan.source == CLOCK:
            return None
        names = {c.id: c.name for c in scan.columns}
        wanted = {names[column]: values for column, values in keys.items()}
        found = self._reader.lookup(scan.source, version, self._shape(scan), wanted)
        return None if found is None else self._at_hand(scan, found, weighted=False)

    def prunes_pages(self, scan: Scan, version: Version, column: str, values: Sequence[int]) -> bool:
        """See `Reader`."""
        return scan.source != CLOCK and self._reader.prunes_pages(scan.source, version, column, values)

    def _time(self, clock: Scan, version: Version) -> Expression:
        now = clock_column(clock.operator.payload)
        assert now is not None  # noqa: S101 - that is how the clock was found
        return self._planner.alias(
            self._planner.timestamp(self._reader.instant(version)), now.name(), now.exprId()
        )

    def _clock_change(self, scan: Scan) -> Plan | None:
        """One row with the old time taken away and the new one added."""
        if self._reader.instant(OLD) == self._reader.instant(NEW):
            return None
        planner = self._planner
        ends = [
            planner.project(
                [self._time(scan, version), planner.alias(planner.literal(sign), WEIGHT)], planner.one_row()
            )
            for version, sign in ((OLD, -1), (NEW, +1))
        ]
        return planner.union(ends)

    def change(self, scan: Scan) -> Plan | None:
        """The netted change of a source, weight last; None when there is none."""
        if scan.source == CLOCK:
            return self._clock_change(scan)
        wanted = tuple(c.name for c in scan.columns)
        # Two scans of one source may leave out different rows.
        asked = (scan.source, wanted, scan.only)
        if asked not in self._changes:
            self._changes[asked] = self._read_change(scan, wanted)
        change = self._changes[asked]
        if isinstance(change, AtHand):
            return self._at_hand(scan, change, weighted=True)
        return None if change is None else self._adopt(scan, change, weighted=True)

    def _read_change(self, scan: Scan, wanted: tuple[str, ...]) -> AtHand | Plan | None:
        small = self._reader.small_change(scan.source, self._shape(scan))
        if small is not None:
            self._add_rows(scan.source, wanted, small.rows)
            return small if held.count(small.plan) else None
        frame = self._reader.changes(scan.source, wanted)
        plan = None if frame is None else self._holder.hold(frame)
        self._add_rows(scan.source, wanted, self._count(plan))
        self.many = self.many or not held.is_held(plan)
        if plan is not None and held.is_held(plan):
            self.copies += held.copies(self._planner, plan)
        return plan

    def _add_rows(self, source: str, wanted: tuple[str, ...], rows: int) -> None:
        """Each change is counted once, whoever reads which of its rows."""
        if (source, wanted) not in self._counted:
            self._counted.add((source, wanted))
            self.changed_rows += rows

    def _table(self, scan: Scan) -> Plan:
        """The leaf of the query itself, with all columns that the table has."""
        own: Plan = scan.operator.payload
        return self._planner.memo(scan, "table", lambda: own.child() if kind_of(own) == "Project" else own)

    def _shape(self, scan: Scan) -> Shape:
        """What stays the same as long as the definition lives is asked for once."""
        names = self._planner.memo(scan, "names", lambda: _names_of(scan.operator.payload))
        return Shape(names, tuple((c.name, c.type) for c in scan.columns), scan.only)

    def _at_hand(self, scan: Scan, rows: AtHand, weighted: bool) -> Plan:
        """Rows of the driver under the ids of the leaf they stand for."""
        if not rows.complete:
            return self._adopt(scan, rows.plan, weighted)
        # Columns that nobody uses are NULL here, whatever the source says of them.
        columns = self._planner.memo(
            scan,
            "nullable",
            lambda: self._planner.seq([a.withNullability(True) for a in output(scan.operator.payload)]),
        )
        if weighted:
            columns = columns.appended(rows.plan.output().last())
        return self._planner.under_ids(rows.plan, columns)

    def _count(self, plan: Plan | None) -> int:
        if plan is None:
            return 0
        return held.count(plan) if held.is_held(plan) else self._planner.frame(plan).count()

    def _adopt(self, scan: Scan, plan: Plan, weighted: bool) -> Plan:
        """The plan under the ids of the leaf it stands for; columns nobody reads are NULL."""
        own = output(plan)
        found = {c.id: have for c, have in zip(scan.columns, own[: len(scan.columns)], strict=True)}
        columns = [
            self._planner.alias(
                found.get(column_id(want)) or self._planner.null(want.dataType()), want.name(), want.exprId()
            )
            for want in output(scan.operator.payload)
        ]
        if weighted:
            columns.append(self._planner.alias(own[-1], WEIGHT))
        return self._planner.project(columns, plan)


def _names_of(leaf: Any) -> tuple[str, ...]:
    return tuple(str(a.name()) for a in output(leaf))
