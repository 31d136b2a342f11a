"""Small changes of a source, read and netted once and shared by all who read them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from spark_trickle.catalyst import held
from spark_trickle.catalyst.identity import needs_encoding, net
from spark_trickle.catalyst.plan import Plan, Planner, output
from spark_trickle.storage.changes import changed_rows, changes_between
from spark_trickle.storage.tables import DeltaTables, Snapshot

_MOST_ROWS = 10_000


def change_of(tables: DeltaTables, old: Snapshot, new: Snapshot, columns: Sequence[str]) -> DataFrame | None:
    """The netted change of some columns, weight last; None when there is none."""
    planner = Planner(tables.spark)
    names = _shared_names(tables, old, new)
    if not names or not set(columns) <= set(names):
        return changes_between(tables, old, new, columns)
    plan = tables.remember_change(old, new, lambda: _read(tables, planner, old, new, names))
    if plan is None:
        return changes_between(tables, old, new, columns)
    if not held.count(plan):
        return None
    by_name = dict(zip(names, output(plan)[:-1], strict=True))
    wanted, weight = [by_name[c] for c in columns], output(plan)[-1]
    if len(columns) == len(names) or (columns and held.all_differ(held.columns_of(planner, plan, wanted))):
        return planner.frame(held.columns_of(planner, plan, [*wanted, weight]))
    return net(planner.frame(planner.project([*wanted, weight], plan)))


def _read(
    tables: DeltaTables, planner: Planner, old: Snapshot, new: Snapshot, names: Sequence[str]
) -> Plan | None:
    """The change of all columns, held; None when there are too many rows after all."""
    change = changes_between(tables, old, new, names)
    return planner.empty(planner.seq([])) if change is None else held.hold(planner, change, _MOST_ROWS)


def _shared_names(tables: DeltaTables, old: Snapshot, new: Snapshot) -> list[str]:
    """The source's columns, if its change is small and all of it can be kept."""
    rows = changed_rows(tables, old, new)
    if rows is None or rows > _MOST_ROWS:
        return []
    schemas = {str(snapshot.state.metadata().schemaString()) for snapshot in (old, new)}
    if len(schemas) > 1:
        return []
    fields = StructType.fromJson(json.loads(schemas.pop())).fields
    return [] if any(needs_encoding(f.dataType) for f in fields) else [f.name for f in fields]
