"""Groups inside a query, kept in memory from one refresh to the next and continued from their totals.

What is kept belongs to exact versions of the sources. Without it, or when it belongs to others, the groups are
evaluated once at the versions that the refresh begins with: nothing but time depends on what is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from math import prod
from weakref import WeakKeyDictionary, WeakSet

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from spark_trickle.algebra.relations import OLD, At, PerKey
from spark_trickle.catalyst import held
from spark_trickle.catalyst.build import Builder
from spark_trickle.catalyst.few import difference
from spark_trickle.catalyst.holder import Holder
from spark_trickle.catalyst.inner import Inner
from spark_trickle.catalyst.merge import Groups, Merger
from spark_trickle.catalyst.plan import Plan, Planner
from spark_trickle.frontier import SourceVersion
from spark_trickle.incremental.inner import origin
from spark_trickle.incremental.prune import Pruner
from spark_trickle.storage.direct import local_relation
from spark_trickle.storage.layout import sql_type
from spark_trickle.storage.tables import DeltaTables, Snapshot

_WORTH = 8
"""Groups are kept if their rows are at least so many times as many: else they are as easily evaluated."""
_FEW_GROUPS = 1000
_MOST_BYTES = 32 * 2**20
"""More than that is no relation of the driver any more."""
Versions = Mapping[str, SourceVersion]


@dataclass(frozen=True)
class Continued:
    """Groups at both ends of an interval, as columns of the query, and what changed in them, weight last."""

    old: pa.Table
    new: pa.Table
    change: pa.Table | None


@dataclass(frozen=True)
class _Kept:
    versions: Versions
    rows: pa.Table
    use: int
    """Counts up: the least was used longest ago."""


class KeptGroups:
    """What this process keeps: the groups that were used last, up to so many of one kind and so many bytes in all."""

    def __init__(self, most_groups: int, most_bytes: int) -> None:
        self.most_groups = most_groups if most_bytes else 0
        self._most_bytes = most_bytes
        self._kept: WeakKeyDictionary[Inner, _Kept] = WeakKeyDictionary()
        self._uses = count()
        self._too_many: WeakSet[Inner] = WeakSet()
        self._guard = threading.Lock()

    def get(self, inner: Inner, versions: Versions) -> pa.Table | None:
        with self._guard:
            known = self._kept.get(inner)
            return known.rows if known is not None and known.versions == versions else None

    def keep(self, inner: Inner, versions: Versions, rows: pa.Table) -> None:
        if rows.nbytes > self._most_bytes:
            self.give_up(inner)
            return
        with self._guard:
            self._kept[inner] = _Kept(versions, rows, next(self._uses))
            while sum(one.rows.nbytes for one in self._kept.values()) > self._most_bytes:
                del self._kept[min(self._kept, key=lambda one: self._kept[one].use)]

    def give_up(self, inner: Inner) -> None:
        """There are more than can be kept; that is not tried again."""
        self._too_many.add(inner)

    def is_worth_keeping(self, inner: Inner, snapshots: Mapping[str, Snapshot]) -> bool:
        """There are few groups of many rows, by what the files of the sources say of themselves."""
        if inner in self._too_many or not inner.sources <= snapshots.keys():
            return False
        rows = sum(snapshots[source].row_count for source in inner.sources)
        keys = inner.groups.keys[0] if isinstance(inner.groups, PerKey) else ()
        bounds = []
        for key in keys:
            found = origin(inner.groups.children[0], key)
            if found is None:
                return False
            bounds.append(snapshots[found[0]].most_values(found[1]) + 1)  # and NULL
        most = prod(bounds)
        return most <= self.most_groups and most * _WORTH <= rows


@dataclass(frozen=True)
class Continuing:
    """Continues groups over one interval. `builder` evaluates what lies below them."""

    planner: Planner
    tables: DeltaTables
    builder: Builder
    holder: Holder
    pruner: Callable[[], Pruner]
    kept: KeptGroups

    def begin(self, inner: Inner, versions: Versions) -> None:
        """Have the groups at hand as they are at the old versions."""
        if self.kept.get(inner, versions) is None and (rows := self._begun(inner, versions)) is not None:
            self.kept.keep(inner, versions, rows)

    def over(self, inner: Inner, old: Versions, new: Versions) -> Continued | None:
        """None where there are too many groups, or too many of them change."""
        delta = self._delta(inner)
        if not held.is_held(delta):
            return None
        before = self._begun(inner, old)
        if before is None:
            return None
        if delta is None:
            self.kept.keep(inner, new, before)
            shown = _shown(inner, before)
            return Continued(shown, shown, None)
        touched = _touched(inner, before, held.arrow_rows(self.planner, delta))
        after = self._after(inner, before.filter(touched), delta)
        if after is None:
            return None
        return self._compared(inner, new, before, touched, after)

    def _compared(
        self, inner: Inner, new: Versions, before: pa.Table, touched: pa.Array, after: pa.Table
    ) -> Continued:
        now = pa.concat_tables([before.filter(pc.invert(touched)), after]).combine_chunks()
        self.kept.keep(inner, new, now)
        changed = difference(_shown(inner, after), _shown(inner, before.filter(touched)), 0)
        return Continued(_shown(inner, before), _shown(inner, now), changed and changed.change)

    def _begun(self, inner: Inner, versions: Versions) -> pa.Table | None:
        """The groups to begin with, kept or evaluated; None when there are too many."""
        rows = self.kept.get(inner, versions)
        if rows is None:
            rows = self._evaluated(inner)
        if rows is None or rows.nbytes > _MOST_BYTES:
            self.kept.give_up(inner)
            return None
        return rows

    def _evaluated(self, inner: Inner) -> pa.Table | None:
        """All groups at the old versions; None when there are too many."""
        plan = self.builder.plan(At(inner.full, OLD))
        assert plan is not None  # noqa: S101 - a relation at a version always has a plan
        rows = held.hold(self.planner, self._exact(inner, self.planner.frame(plan)), self.kept.most_groups)
        return None if rows is None else self._rows(rows)

    def _delta(self, inner: Inner) -> Plan | None:
        """The totals of what changed in the groups' rows, by group; None when nothing has."""
        node = self.pruner().node(inner.change)
        change = self.builder.plan(node) if node is not None else None
        if change is None:
            return None
        merger = Merger(self.planner, inner.running)
        return self.holder.hold(merger.of_change(change, repeats=self.builder.repeats))

    def _after(self, inner: Inner, before: pa.Table, delta: Plan) -> pa.Table | None:
        """The touched groups as they are now; None when there are too many."""
        planner, running = self.planner, inner.running
        stored = local_relation(self.tables, before, inner.schema)
        if stored is None:
            return None
        plan = Merger(planner, running).merged(stored, inner.keys, inner.totals, delta)
        found = self.holder.on_driver(plan)
        if found is None:
            return None
        groups = Groups(planner, running, planner.under_ids(found, plan.output()) or found, hides=False)
        rows = self._exact(inner, planner.frame(groups.continued(inner.full.operator.payload)))
        again = self.holder.hold(groups.again)
        if again is not None:
            self.builder.provide(inner.again, again)
            read = self.builder.rows(inner.new)
            rows = rows if read is None else rows.unionAll(self._exact(inner, read))
        now = self.holder.on_driver(rows)
        return None if now is None else self._rows(now)

    def _rows(self, rows: Plan) -> pa.Table:
        """In memory, whatever is known of values that are never NULL: that differs from plan to plan."""
        found = held.arrow_rows(self.planner, rows)
        return pa.table(found.columns, names=found.column_names)

    def _exact(self, inner: Inner, frame: DataFrame) -> DataFrame:
        """Columns in the types and under the names in which groups are kept."""
        fields, spark = inner.schema.fields, frame.sparkSession
        return frame.toDF(*[f.name for f in fields]).selectExpr(
            *[f"CAST({f.name} AS {sql_type(spark, f.dataType)}) AS {f.name}" for f in fields]
        )


def _touched(inner: Inner, groups: pa.Table, delta: pa.Table) -> pa.Array:
    """Which groups have one of the keys of a change, and perhaps others: merged with nothing, those stay what they are."""
    every = pa.repeat(pa.scalar(True), groups.num_rows)
    if groups.num_rows <= _FEW_GROUPS:
        return every
    for number, place in enumerate(inner.keys):
        column = groups.column(place).combine_chunks()
        wanted = delta.column(number).combine_chunks().cast(column.type)
        every = pc.and_(every, pc.is_in(column, value_set=wanted))
    return every


def _shown(inner: Inner, groups: pa.Table) -> pa.Table:
    """The columns that the query has, by its names for them."""
    names = [c.name for c in inner.scan.columns]
    return groups.select(range(len(names))).rename_columns(names)
