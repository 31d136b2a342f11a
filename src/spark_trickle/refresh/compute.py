"""Compute: the rows to change, as a netted change against what the table holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from pyspark.sql import DataFrame

from spark_trickle.algebra.relations import NEW, At, Relation
from spark_trickle.catalyst.build import Builder
from spark_trickle.catalyst.definition import Definition
from spark_trickle.catalyst.holder import Difference, Holder
from spark_trickle.catalyst.identity import net
from spark_trickle.catalyst.inner import Inner
from spark_trickle.catalyst.later import calls_put_off
from spark_trickle.catalyst.merge import Groups, Merger
from spark_trickle.catalyst.plan import Plan, Planner, output
from spark_trickle.catalyst.time import CLOCK
from spark_trickle.config import Settings
from spark_trickle.incremental.maintain import (
    ByKey,
    ByWeight,
    Iterate,
    Maintenance,
    Recompute,
    TopRows,
    Totals,
)
from spark_trickle.incremental.prune import Pruner
from spark_trickle.names import WEIGHT
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.ends import Moment, VersionReader, rows_to_hold, rows_to_read
from spark_trickle.refresh.inner_reader import InnerReader
from spark_trickle.refresh.kept_groups import Continued, Continuing, KeptGroups, Versions
from spark_trickle.refresh.recursion import Derivation
from spark_trickle.refresh.stored import Change, StoredRows
from spark_trickle.refresh.top_rows import Race
from spark_trickle.storage.direct import (
    can_look_up,
)
from spark_trickle.storage.layout import Layout
from spark_trickle.storage.tables import DeltaTables, Snapshot


def layout_of(definition: Definition) -> Layout:
    return Layout.of(definition.schema, definition.hidden)


_FEW_GROUPS = 1000


@dataclass(frozen=True)
class _Moves:
    """Competing rows that come and that go; of those that go, with a weight column if none come separately."""

    come: DataFrame | None
    gone: DataFrame | None = None

    @property
    def change(self) -> DataFrame:
        """As one change, weight last."""
        assert self.gone is not None  # noqa: S101 - asked only where rows go
        if WEIGHT in self.gone.columns:
            return self.gone
        removed = self.gone.selectExpr("*", f"-1L AS {WEIGHT}")
        return (
            removed if self.come is None else self.come.selectExpr("*", f"1L AS {WEIGHT}").unionAll(removed)
        )


class Computation:
    """Evaluates one definition over one interval; a context manager that lets go of what it held."""

    def __init__(
        self,
        prepared: Prepared,
        tables: DeltaTables,
        old: Moment,
        new: Moment,
        settings: Settings,
        groups: KeptGroups | None = None,
    ) -> None:
        self._prepared, self._groups, self._old, self._new = prepared, groups, old, new
        self._definition = prepared.definition
        self._planner: Planner = prepared.planner
        self._tables = tables.in_session(prepared.planner.spark)
        self._layout = layout_of(prepared.definition)
        most = rows_to_hold(settings, old, new)
        self._reader: VersionReader | InnerReader = VersionReader(self._tables, old, new, most)
        self._holder = Holder(prepared.planner, most)
        self._stored = StoredRows(self._planner, self._tables, self._layout, self._holder, most)
        self._builder = Builder(self._planner, self._reader, self._holder)
        self._below = self._builder
        before, after = old.snapshots, new.snapshots
        moved = {n for n in after if n in before and before[n] is not after[n]}
        self._changed = frozenset(moved | ({CLOCK} if old.at != new.at else set()))
        self._whole = frozenset(n for n in after if self._is_read_whole(n, settings))

    def _is_read_whole(self, source: str, settings: Settings) -> bool:
        """A small source, unless the driver looks up some of its rows with less effort than it holds all of them."""
        ends = [m.snapshots[source] for m in (self._old, self._new) if source in m.snapshots]
        return all(
            s.size_in_bytes <= settings.whole_read_bytes
            and (s.row_count <= rows_to_read(settings.local_change_rows) or not can_look_up(self._tables, s))
            for s in ends
        )

    def __enter__(self) -> Computation:
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.close()

    @property
    def changed_rows(self) -> int:
        """Netted change rows read from the sources."""
        return max(self._below.changed_rows, self._builder.changed_rows)

    def query(self) -> DataFrame:
        """The whole answer at the new versions, flat."""
        return self._at_new(self._definition.relation)

    def _at_new(self, relation: Relation) -> DataFrame:
        rows = self._builder.rows(At(relation, NEW))
        assert rows is not None  # noqa: S101 - a relation at a version always has a plan
        return rows

    def change(self, stored: Snapshot, *, careful: bool = False) -> Change | None:
        """The netted change of the table, evaluated and held; None when nothing changes."""
        with calls_put_off(self._planner.spark):
            return self._change(stored, careful)

    def _change(self, stored: Snapshot, careful: bool) -> Change | None:
        maintenance = self._definition.careful if careful else self._above_groups()
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

    def _above_groups(self) -> Maintenance:
        """Groups inside the query that are worth keeping are continued first; what is above reads them as sources."""
        continuing = self._continuing()
        old, new = self._versions(self._old), self._versions(self._new)
        found: dict[Inner, Continued] = {}
        for inner in self._worth_keeping():
            if inner.sources & self._changed:
                continued = continuing.over(
                    inner, *({n: end[n] for n in inner.sources} for end in (old, new))
                )
                if continued is not None:
                    found[inner] = continued
        if not found:
            return self._definition.maintenance
        groups = {inner.scan.source: (inner, continued) for inner, continued in found.items()}
        self._reader = InnerReader(self._reader, self._planner, self._tables, groups, self._reader.most)
        self._builder = Builder(self._planner, self._reader, self._holder)
        moved = {name for name, (_, continued) in groups.items() if continued.change is not None}
        self._changed = frozenset(self._changed | moved)
        return self._prepared.above(found)

    @property
    def is_ready(self) -> bool:
        """The groups that the next refresh, from the old versions on, begins with are at hand."""
        groups, versions = self._groups, self._versions(self._old)
        return groups is None or all(
            groups.get(inner, {n: versions[n] for n in inner.sources}) is not None
            for inner in self._worth_keeping()
        )

    def get_ready(self) -> None:
        """Evaluate those that are not."""
        with calls_put_off(self._planner.spark):
            continuing, versions = self._continuing(), self._versions(self._old)
            for inner in self._worth_keeping():
                continuing.begin(inner, {n: versions[n] for n in inner.sources})

    def _worth_keeping(self) -> list[Inner]:
        """Groups inside the query that are kept from one refresh to the next."""
        if self._groups is None or not self._groups.most_groups:
            return []
        snapshots, groups = self._new.snapshots, self._groups
        return [inner for inner in self._prepared.inner if groups.is_worth_keeping(inner, snapshots)]

    def _continuing(self) -> Continuing:
        return Continuing(
            self._planner,
            self._tables,
            self._builder,
            self._holder,
            partial(Pruner, self._changed, self._whole),
            self._groups or KeptGroups(0, 0),
        )

    def _versions(self, end: Moment) -> Versions:
        return {name: snapshot.source_version for name, snapshot in end.snapshots.items()}

    def difference(self, stored: Snapshot) -> Difference | None:
        """What the whole answer and the stored table do not share, as a change of the table."""
        return self._stored.against(self.query(), self._stored.flat(stored))

    def against(self, rows: DataFrame, stored: Snapshot) -> Difference | None:
        """What other rows and the stored table do not share, as a change of the table."""
        return self._stored.against(rows, self._stored.flat(stored))

    def _by_weight(self, maintenance: ByWeight) -> Change | None:
        change = self._change_of(maintenance)
        return None if change is None else self._stored.netted(change.toDF(*self._layout.names, WEIGHT))

    def _change_of(self, maintenance: ByWeight) -> DataFrame | None:
        plan = Pruner(self._changed, self._whole).node(maintenance.change)
        return self._builder.change(plan) if plan is not None else None

    def _by_key(self, maintenance: ByKey, stored: Snapshot) -> Change | None:
        places = {c.id: i for i, c in enumerate(self._definition.relation.columns)}
        maintenance = self._preferred(maintenance, stored, places)
        found = self._replacement(maintenance)
        if found is None:
            return None
        key_set, rows = found
        old = self._stored.touched(stored, [places[c] for c in maintenance.columns], key_set)
        return self._stored.compared(None if rows is None else self._stored.exact(rows), old)

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

    def _totals(self, maintenance: Totals, stored: Snapshot) -> Change | None:
        """The totals of the change merged with the stored ones; groups of which they do not tell, evaluated again."""
        running = self._definition.totals
        assert running is not None  # noqa: S101 - that is how the maintenance was chosen
        node = Pruner(self._changed, self._whole).node(maintenance.change)
        change = self._builder.plan(node) if node is not None else None
        if change is None:
            return None
        planner, merger = self._planner, Merger(self._planner, running)
        delta = merger.of_change(change, repeats=self._builder.repeats)
        places = {c.id: i for i, c in enumerate(self._definition.relation.columns)}
        keys, totals = ([places[c] for c in cs] for cs in (maintenance.columns, maintenance.places))
        if stored.row_count <= _FEW_GROUPS:
            # All groups are merged: that is less work than to find out first which of them are touched.
            touched = self._stored.located(stored)
        else:
            delta = self._holder.hold(delta)
            if delta is None:
                return None
            touched = self._stored.touched(stored, keys, delta)
        kept = touched.plan
        if touched.rows is None:
            kept = self._holder.hold(kept) or planner.empty(kept.output())
        plan = merger.merged(kept, keys, totals, delta)
        found = self._holder.hold(plan)
        if found is None:
            return None
        # Spark renews the ids of relations that occur twice.
        merged = planner.under_ids(found, plan.output()) or found
        groups = Groups(planner, running, merged, hides=maintenance.hides or not keys)
        return self._stored.compared(self._rows_of(maintenance, groups), replace(touched, plan=kept))

    def _rows_of(self, maintenance: Totals, groups: Groups) -> DataFrame:
        """What the query gives for these groups now."""
        continued = groups.continued(maintenance.top.operator.payload)
        rows = self._stored.exact(self._in_place_of(maintenance.top, continued))
        again = self._holder.hold(groups.again)
        if again is None:
            return rows
        self._builder.provide(maintenance.again, again)
        read = self._builder.rows(maintenance.new)
        return rows if read is None else rows.unionAll(self._stored.exact(read))

    def _top_rows(self, maintenance: TopRows, stored: Snapshot) -> Change | None:
        """The competing rows at hand, as few as decide; then the query's own LIMIT over them, against the table."""
        moves = self._competing(maintenance, stored)
        if moves is None:
            return None
        table = self._stored.located(stored)
        kept = self._carried(self._planner.frame(table.plan), maintenance.places)
        child = maintenance.top.child
        if moves.gone is None:
            # All that was before the last stored row still is, so what is not stored cannot come before it.
            rows: DataFrame | None = kept if moves.come is None else kept.unionAll(moves.come)
        else:
            race = Race(self._planner, maintenance.top, lambda: self._at_new(child), self._holder.hold)
            rows = race.contenders(kept, net(moves.change))
        if rows is None:
            return None
        return self._stored.compared(self._stored.exact(self._over(child, rows)), table)

    def _competing(self, maintenance: TopRows, stored: Snapshot) -> _Moves | None:
        """What changes among the rows that compete, as far as they are stored or can get there."""
        competing = maintenance.competing
        if isinstance(competing, ByWeight):
            change = self._change_of(competing)
            return None if change is None else _Moves(None, change)
        carried = dict(zip((c.id for c in maintenance.top.columns), maintenance.places, strict=True))
        index = {c.id: i for i, c in enumerate(self._definition.relation.columns)}
        places = {column: index[shown] for column, shown in carried.items()}
        competing = self._preferred(competing, stored, places)
        found = self._replacement(competing)
        if found is None:
            return None
        key_set, rows = found
        touched = self._stored.touched(stored, [places[c] for c in competing.columns], key_set)
        if touched.rows is not None and not touched.rows.num_rows:
            return _Moves(rows)
        return _Moves(rows, self._carried(self._planner.frame(touched.plan), maintenance.places))

    def _iterate(self, maintenance: Iterate, stored: Snapshot) -> Change | None:
        kept = self._carried(self._stored.flat(stored), maintenance.places)
        derivation = Derivation(self._planner, self._reader, self._changed, self._holder)
        change = derivation.change(maintenance, kept, stored.row_count)
        return None if change is None else self._stored.netted(change.toDF(*self._layout.names, WEIGHT))

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
