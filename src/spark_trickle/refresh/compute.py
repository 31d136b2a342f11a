"""Compute: the rows to change, as a netted change against what the table holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from spark_trickle.algebra.relations import NEW, OLD, At, Version
from spark_trickle.catalyst.build import Builder
from spark_trickle.catalyst.definition import Definition
from spark_trickle.catalyst.identity import net
from spark_trickle.catalyst.plan import WEIGHT, Planner, output
from spark_trickle.incremental.maintain import ByKey, ByWeight, Recompute
from spark_trickle.incremental.prune import Pruner
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.storage.changes import changes_between
from spark_trickle.storage.layout import Layout
from spark_trickle.storage.tables import DeltaTables, Snapshot

Snapshots = Mapping[str, Snapshot]


def layout_of(definition: Definition) -> Layout:
    return Layout(definition.schema, definition.hidden)


class VersionReader:
    """Reads sources at the two ends of an interval, in the session of the definition."""

    def __init__(self, tables: DeltaTables, old: Snapshots, new: Snapshots) -> None:
        self._tables = tables
        self._snapshots = {OLD: old, NEW: new}

    def rows(self, source: str, version: Version, columns: Sequence[str]) -> DataFrame:
        return self._tables.rows(self._snapshots[version][source], columns)

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        old, new = self._snapshots[OLD][source], self._snapshots[NEW][source]
        return changes_between(self._tables, old, new, columns)


class Computation:
    """Evaluates one definition over one interval; a context manager that lets go of what it held."""

    def __init__(
        self, prepared: Prepared, tables: DeltaTables, old: Snapshots, new: Snapshots, local_rows: int
    ) -> None:
        self._definition = prepared.definition
        self._planner: Planner = prepared.planner
        self._tables = tables.in_session(prepared.planner.spark)
        self._layout = layout_of(prepared.definition)
        self._builder = Builder(prepared.planner, VersionReader(self._tables, old, new), local_rows)
        self._changed = frozenset(n for n in new if n in old and old[n] is not new[n])

    def __enter__(self) -> Computation:
        return self

    def __exit__(self, *_: object) -> None:
        self._builder.close()

    @property
    def changed_rows(self) -> int:
        """Netted change rows read from the sources."""
        return self._builder.changed_rows

    def query(self) -> DataFrame:
        """The whole answer at the new versions, flat."""
        rows = self._builder.rows(At(self._definition.relation, NEW))
        assert rows is not None  # noqa: S101 - a relation at a version always has a plan
        return rows

    def change(self, stored: Snapshot) -> DataFrame | None:
        """The netted change of the table, evaluated and held; None when nothing changes."""
        maintenance = self._definition.maintenance
        match maintenance:
            case ByWeight():
                return self._by_weight(maintenance)
            case ByKey():
                return self._by_key(maintenance, stored)
            case Recompute():
                return self.difference(stored)
        assert_never(maintenance)

    def difference(self, stored: Snapshot) -> DataFrame | None:
        """What the whole answer and the stored table do not share, as a change of the table."""
        return self._against(self.query(), self._stored(stored))

    def _by_weight(self, maintenance: ByWeight) -> DataFrame | None:
        plan = Pruner(self._changed).node(maintenance.change)
        change = self._builder.change(plan) if plan is not None else None
        return None if change is None else self._held(net(change.toDF(*self._layout.names, WEIGHT)))

    def _by_key(self, maintenance: ByKey, stored: Snapshot) -> DataFrame | None:
        pruner = Pruner(self._changed)
        keys = pruner.keys(maintenance.keys)
        key_set = self._builder.key_set(keys) if keys is not None else None
        if key_set is None:
            return None
        new = pruner.node(maintenance.new)
        rows = self._builder.rows(new) if new is not None else None
        places = {c.id: i for i, c in enumerate(self._definition.relation.columns)}
        kept = self._planner.analyzed(self._stored(stored))
        columns = output(kept)
        on = [(i, columns[places[c]]) for i, c in enumerate(maintenance.columns)]
        old = self._planner.frame(self._builder.semi_join(kept, on, key_set))
        return self._against(rows, old)

    def _against(self, new: DataFrame | None, old: DataFrame) -> DataFrame | None:
        removed = old.toDF(*self._layout.names).withColumn(WEIGHT, F.lit(-1).cast("long"))
        if new is None:
            return self._held(net(removed))
        added = self._exact(new).withColumn(WEIGHT, F.lit(1).cast("long"))
        return self._held(net(added.unionAll(removed)))

    def _exact(self, frame: DataFrame) -> DataFrame:
        """Columns in the types the table stores."""
        fields = self._layout.flat.fields
        flat = frame.toDF(*[f"c{i}" for i in range(len(fields))])
        return flat.select(*[F.col(f"c{i}").cast(f.dataType).alias(f.name) for i, f in enumerate(fields)])

    def _stored(self, snapshot: Snapshot) -> DataFrame:
        return self._tables.rows(snapshot).select(*self._layout.unpack())

    def _held(self, change: DataFrame) -> DataFrame | None:
        plan = self._builder.hold(change)
        return None if plan is None else self._planner.frame(plan)
