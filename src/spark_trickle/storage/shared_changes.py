"""Small changes of a source, read once and shared by all who read them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from spark_trickle.catalyst.few import arrow_type, netted
from spark_trickle.catalyst.held import arrow_rows, hold
from spark_trickle.catalyst.leaves import AtHand, Shape
from spark_trickle.catalyst.plan import Planner
from spark_trickle.names import WEIGHT
from spark_trickle.storage.changes import changed_rows, changes_between, has_feed
from spark_trickle.storage.direct import as_leaf
from spark_trickle.storage.feed import read_feed
from spark_trickle.storage.passing import filtered
from spark_trickle.storage.tables import DeltaTables, Snapshot


def small_change(tables: DeltaTables, old: Snapshot, new: Snapshot, shape: Shape, most: int) -> AtHand | None:
    """The netted change of the columns that are used, weight last; None where it may be large, or cannot be shared."""
    rows = changed_rows(tables, old, new)
    if rows is None or rows > most or old.schema != new.schema:
        return None
    kinds = {f.name: f.dataType.simpleString() for f in new.schema.fields}
    if any(kinds.get(name) != kind for name, kind in shape.used.items()):
        return None
    change = tables.remember_change(old, new, most, lambda: _read(tables, old, new, most))
    if change is None:
        return None
    rows = netted(change, [c for c in shape.columns if c in shape.used])
    leaf = as_leaf(tables, new.schema, filtered(rows, shape.only), shape)
    return None if leaf is None else replace(leaf, rows=rows.num_rows)


def _read(tables: DeltaTables, old: Snapshot, new: Snapshot, most: int) -> pa.Table | None:
    """The change of all columns; None when there are too many rows after all, or types that only Spark can compare."""
    if any(arrow_type(f.dataType) is None for f in new.schema.fields):
        return None
    found = read_feed(tables, old, new, most) if has_feed(old, new) else None
    if found is not None:
        return found
    change = changes_between(tables, old, new, new.schema.names)
    if change is None:
        empty = [(f.name, arrow_type(f.dataType)) for f in new.schema.fields]
        return pa.schema([*empty, (WEIGHT, pa.int64())]).empty_table()
    planner = Planner(tables.spark)
    plan = hold(planner, change, most)
    return None if plan is None else arrow_rows(planner, plan)
