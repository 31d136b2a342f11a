"""Compute: the rows to change, as a netted change against what the table holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

from pyspark.sql import DataFrame

from spark_trickle.algebra.relations import NEW, OLD, At, Relation, Version
from spark_trickle.catalyst.build import Builder
from spark_trickle.catalyst.definition import Definition
from spark_trickle.catalyst.holder import Difference, Holder
from spark_trickle.catalyst.identity import net
from spark_trickle.catalyst.listing import Values, Within
from spark_trickle.catalyst.merge import Groups, Merger
from spark_trickle.catalyst.plan import WEIGHT, Plan, Planner, output
from spark_trickle.catalyst.time import CLOCK
from spark_trickle.config import Settings
from spark_trickle.incremental.maintain import ByKey, ByWeight, Iterate, Recompute, TopRows, Totals
from spark_trickle.incremental.prune import Pruner
from spark_trickle.names import quote
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.recursion import Derivation
from spark_trickle.refresh.top_rows import Race
from spark_trickle.storage.direct import look_up, read_all, read_whole
from spark_trickle.storage.layout import Layout, sql_type
from spark_trickle.storage.removals import PLACE
from spark_trickle.storage.shared_changes import change_of
from spark_trickle.storage.tables import DeltaTables, Snapshot


@dataclass(frozen=True)
class Moment:
    """One end of an interval: a version of every source, and the time if the query asks for it."""

    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    at: datetime | None = None


def layout_of(definition: Definition) -> Layout:
    return Layout.of(definition.schema, definition.hidden)


def _size(moment: Moment, source: str) -> int:
    return moment.snapshots[source].size_in_bytes if source in moment.snapshots else 0


class VersionReader:
    """Reads sources at the two ends of an interval, in the session of the definition."""

    def __init__(self, tables: DeltaTables, old: Moment, new: Moment, most: int) -> None:
        """`most`: so many rows are held by the driver."""
        self._tables = tables
        self.most = most
        self._ends = {OLD: old, NEW: new}

    def rows(self, source: str, version: Version, columns: Sequence[str]) -> DataFrame:
        return self._tables.rows(self._ends[version].snapshots[source], columns)

    def table(self, source: str, version: Version, within: Within) -> Plan:
        return self._tables.leaf(self._ends[version].snapshots[source], within)

    def lookup(
        self, source: str, version: Version, columns: Sequence[str], keys: Mapping[str, Values]
    ) -> Plan | None:
        snapshot = self._ends[version].snapshots[source]
        return look_up(self._tables, snapshot, {c: (c,) for c in columns}, keys, self.most)

    def whole(self, source: str, version: Version, columns: Sequence[str]) -> Plan | None:
        return read_whole(self._tables, self._ends[version].snapshots[source], columns, self.most)

    def prunes_pages(self, source: str, version: Version, column: str, values: Sequence[int]) -> bool:
        return self._ends[version].snapshots[source].prunes_pages(column, values)

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        old, new = (self._ends[version].snapshots[source] for version in (OLD, NEW))
        return change_of(self._tables, old, new, columns)

    def instant(self, version: Version) -> datetime:
        at = self._ends[version].at
        assert at is not None  # noqa: S101 - a query that asks for the time has one in its frontier
        return at


class Computation:
    """Evaluates one definition over one interval; a context manager that lets go of what it held."""

    def __init__(
        self, prepared: Prepared, tables: DeltaTables, old: Moment, new: Moment, settings: Settings
    ) -> None:
        self._definition = prepared.definition
        self._planner: Planner = prepared.planner
        self._tables = tables.in_session(prepared.planner.spark)
        self._layout = layout_of(prepared.definition)
        self._reader = VersionReader(self._tables, old, new, settings.local_change_rows)
        self._holder = Holder(prepared.planner, settings.local_change_rows)
        self._builder = Builder(self._planner, self._reader, self._holder)
        before, after = old.snapshots, new.snapshots
        moved = {n for n in after if n in before and before[n] is not after[n]}
        self._changed = frozenset(moved | ({CLOCK} if old.at != new.at else set()))
        small = settings.whole_read_bytes
        self._whole = frozenset(n for n in after if all(_size(m, n) <= small for m in (old, new)))

    def __enter__(self) -> Computation:
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.close()

    @property
    def changed_rows(self) -> int:
        """Netted change rows read from the sources."""
        return self._builder.changed_rows

    def query(self) -> DataFrame:
        """The whole answer at the new versions, flat."""
        return self._at_new(self._definition.relation)

    def _at_new(self, relation: Relation) -> DataFrame:
        rows = self._builder.rows(At(relation, NEW))
        assert rows is not None  # noqa: S101 - a relation at a version always has a plan
        return rows

    def change(self, stored: Snapshot, *, careful: bool = False) -> Difference | None:
        """The netted change of the table, evaluated and held; None when nothing changes."""
        maintenance = self._definition.careful if careful else self._definition.maintenance
        match maintenance:
            case ByWeight():
                return self._by_weight(maintenance)
            case ByKey():
                return self._by_key(maintenance, stored)
            case Totals():
                return self._totals(maintenance, stored)
            case TopRows():
                return self._top_rows(maintenance, stored)
            case Iterate():
                return self._iterate(maintenance, stored)
            case Recompute():
                return self.difference(stored)
        assert_never(maintenance)

    def difference(self, stored: Snapshot) -> Difference | None:
        """What the whole answer and the stored table do not share, as a change of the table."""
        return self._against(self.query(), self._stored(stored))

    def against(self, rows: DataFrame, stored: Snapshot) -> Difference | None:
        """What other rows and the stored table do not share, as a change of the table."""
        return self._against(rows, self._stored(stored))

    def _by_weight(self, maintenance: ByWeight) -> Difference | None:
        change = self._change_of(maintenance)
        return None if change is None else self._netted(change.toDF(*self._layout.names, WEIGHT))

    def _change_of(self, maintenance: ByWeight) -> DataFrame | None:
        plan = Pruner(self._changed, self._whole).node(maintenance.change)
        return self._builder.change(plan) if plan is not None else None

    def _by_key(self, maintenance: ByKey, stored: Snapshot) -> Difference | None:
        places = {c.id: i for i, c in enumerate(self._definition.relation.columns)}
        maintenance = self._preferred(maintenance, stored, places)
        found = self._replacement(maintenance)
        if found is None:
            return None
        key_set, rows = found
        old = self._planner.frame(self._touched(stored, [places[c] for c in maintenance.columns], key_set))
        return self._holder.difference(None if rows is None else self._exact(rows), old, len(PLACE))

    def _preferred(self, maintenance: ByKey, stored: Snapshot, places: Mapping[int, int]) -> ByKey:
        """By fewer key columns if the table has hardly more rows than these have values."""
        coarse = maintenance.coarsely
        if coarse is None:
            return maintenance
        names = dict(enumerate(f.name for f in self._layout.visible.fields))
        shown = [names[places[c]] for c in coarse.columns if places[c] in names]
        return coarse if any(map(stored.may_be_unique, shown)) else maintenance

    def _replacement(self, maintenance: ByKey) -> tuple[Plan, DataFrame | None] | None:
        """The touched keys, and their rows now; None when no key is touched."""
        pruner = Pruner(self._changed, self._whole)
        keys = pruner.keys(maintenance.keys)
        key_set = self._builder.key_set(keys) if keys is not None else None
        if key_set is None:
            return None
        new = pruner.node(maintenance.new)
        return key_set, self._builder.rows(new) if new is not None else None

    def _totals(self, maintenance: Totals, stored: Snapshot) -> Difference | None:
        """The totals of the change merged with the stored ones; groups of which they do not tell, evaluated again."""
        running = self._definition.totals
        assert running is not None  # noqa: S101 - that is how the maintenance was chosen
        node = Pruner(self._changed, self._whole).node(maintenance.change)
        change = self._builder.plan(node) if node is not None else None
        if change is None:
            return None
        planner, merger = self._planner, Merger(self._planner, running)
        delta = self._holder.hold(planner.frame(merger.of_change(change)))
        if delta is None:
            return None
        places = {c.id: i for i, c in enumerate(self._definition.relation.columns)}
        keys, totals = ([places[c] for c in cs] for cs in (maintenance.columns, maintenance.places))
        kept = self._touched(stored, keys, delta)
        kept = self._holder.hold(planner.frame(kept)) or planner.empty(kept.output())
        merged = self._holder.hold(planner.frame(merger.merged(kept, keys, totals, delta)))
        if merged is None:
            return None
        groups = Groups(planner, running, merged, hides=maintenance.hides or not keys)
        return self._holder.difference(self._rows_of(maintenance, groups), planner.frame(kept), len(PLACE))

    def _rows_of(self, maintenance: Totals, groups: Groups) -> DataFrame:
        """What the query gives for these groups now."""
        continued = groups.continued(maintenance.top.operator.payload)
        rows = self._exact(self._in_place_of(maintenance.top, continued))
        again = self._holder.hold(self._planner.frame(groups.again))
        if again is None:
            return rows
        self._builder.provide(maintenance.again, again)
        read = self._builder.rows(maintenance.new)
        return rows if read is None else rows.unionAll(self._exact(read))

    def _top_rows(self, maintenance: TopRows, stored: Snapshot) -> Difference | None:
        """The competing rows at hand, as few as decide; then the query's own LIMIT over them, against the table."""
        change = self._competing(maintenance, stored)
        if change is None:
            return None
        kept = self._carried(self._stored(stored), maintenance.places)
        child = maintenance.top.child
        race = Race(self._planner, maintenance.top, lambda: self._at_new(child), self._holder.hold)
        rows = race.contenders(kept, net(change))
        if rows is None:
            return None
        return self._against(self._over(child, rows), self._stored(stored))

    def _competing(self, maintenance: TopRows, stored: Snapshot) -> DataFrame | None:
        """The change of the rows that compete, weight last, as far as they are stored or can get there."""
        competing = maintenance.competing
        if isinstance(competing, ByWeight):
            return self._change_of(competing)
        carried = dict(zip((c.id for c in maintenance.top.columns), maintenance.places, strict=True))
        index = {c.id: i for i, c in enumerate(self._definition.relation.columns)}
        places = {column: index[shown] for column, shown in carried.items()}
        competing = self._preferred(competing, stored, places)
        found = self._replacement(competing)
        if found is None:
            return None
        key_set, rows = found
        touched = self._touched(stored, [places[c] for c in competing.columns], key_set)
        removed = self._carried(self._planner.frame(touched), maintenance.places)
        change = removed.selectExpr("*", f"-1L AS {WEIGHT}")
        return change if rows is None else rows.selectExpr("*", f"1L AS {WEIGHT}").unionAll(change)

    def _iterate(self, maintenance: Iterate, stored: Snapshot) -> Difference | None:
        kept = self._carried(self._stored(stored), maintenance.places)
        derivation = Derivation(self._planner, self._reader, self._changed, self._holder)
        change = derivation.change(maintenance, kept, stored.row_count)
        return None if change is None else self._netted(change.toDF(*self._layout.names, WEIGHT))

    def _over(self, node: Relation, rows: DataFrame) -> DataFrame:
        """The query with other rows in the place of one of its relations."""
        other = self._planner.readdress(self._planner.analyzed(rows), output(node.operator.payload))
        return self._in_place_of(node, other)

    def _in_place_of(self, node: Relation, other: Plan) -> DataFrame:
        """The query with another plan, of the same columns, in the place of one of its relations."""
        root = self._definition.relation.operator.payload
        return self._planner.frame(self._planner.replace_nodes(root, [(node.operator.payload, other)]))

    def _carried(self, frame: DataFrame, places: tuple[int, ...]) -> DataFrame:
        """Some columns of the table by their ids in the query, named by position."""
        index = {c.id: i for i, c in enumerate(self._definition.relation.columns)}
        flat = frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])
        return flat.selectExpr(*[f"c{index[place]} AS r{n}" for n, place in enumerate(places)])

    def _against(self, new: DataFrame, old: DataFrame) -> Difference | None:
        removed = old.toDF(*self._layout.names).selectExpr("*", f"-1L AS {WEIGHT}")
        added = self._exact(new).selectExpr("*", f"1L AS {WEIGHT}")
        return self._netted(added.unionAll(removed))

    def _exact(self, frame: DataFrame) -> DataFrame:
        """Columns in the types the table stores."""
        fields = self._layout.flat.fields
        spark = frame.sparkSession
        return frame.toDF(*[f"c{i}" for i in range(len(fields))]).selectExpr(
            *[f"CAST(c{i} AS {sql_type(spark, f.dataType)}) AS {quote(f.name)}" for i, f in enumerate(fields)]
        )

    def _stored(self, snapshot: Snapshot) -> DataFrame:
        return self._tables.rows(snapshot).selectExpr(*self._layout.unpack())

    def _touched(self, stored: Snapshot, columns: Sequence[int], key_set: Plan) -> Plan:
        """The table's rows whose columns, by place, equal the first ones of the key set; each with its place."""
        found = self._touched_at_hand(stored, columns, key_set)
        if found is not None:
            return found
        names = [f.name for f in self._layout.visible.fields]
        named = {i: names[c] for i, c in enumerate(columns) if c < len(names)}
        within = {name: self._holder.ranges(key_set, i) for i, name in named.items()}
        by_page = self._holder.by_page(key_set, named, stored.prunes_pages)
        rows = self._tables.rows(stored, within=within).selectExpr(*self._layout.unpack(), *PLACE)
        plan = self._planner.analyzed(rows)
        if not columns:
            return plan
        own = output(plan)
        return self._holder.semi_join(plan, [(i, own[c]) for i, c in enumerate(columns)], key_set, by_page)

    def _touched_at_hand(self, stored: Snapshot, columns: Sequence[int], key_set: Plan) -> Plan | None:
        """The same, found and held by the driver, if it can."""
        paths, most, names = self._layout.paths, self._reader.most, self._layout.names
        if not columns:
            return read_all(self._tables, stored, paths, most)
        asked = {names[c]: self._holder.values(key_set, i) for i, c in enumerate(columns)}
        known = {name: values for name, values in asked.items() if values is not None}
        plan = look_up(self._tables, stored, paths, known, most, places=True) if known else None
        if plan is None or len(columns) == 1:
            return plan
        own = output(plan)
        return self._holder.semi_join(plan, [(i, own[c]) for i, c in enumerate(columns)], key_set)

    def _netted(self, change: DataFrame) -> Difference | None:
        plan = self._holder.netted(change)
        return None if plan is None else Difference(self._planner.frame(plan))
