"""A writer beside the stream tables: rows of a large table are found by their keys and replaced, one commit each time.

MERGE reads every column of every file that holds one of the keys; at scale 10 a change of a few thousand rows takes it
minutes. What it commits is the same: deletion vectors, new files, change rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pyarrow as pa
from pyspark.sql.types import StructType

from spark_trickle import Trickle
from spark_trickle.catalyst.few import Few
from spark_trickle.catalyst.listing import Values
from spark_trickle.frontier import Frontier
from spark_trickle.names import WEIGHT
from spark_trickle.storage.apply import add_change
from spark_trickle.storage.commits import Stamp
from spark_trickle.storage.direct import located
from spark_trickle.storage.layout import Layout
from spark_trickle.storage.tables import DeltaTables, Snapshot

_PLACE = 2
_ALL = 2**40


class Writer:
    """Finds and replaces rows of Delta tables on a local disk."""

    def __init__(self, trickle: Trickle) -> None:
        self._trickle = trickle
        self._tables = DeltaTables(trickle.spark, _ALL)
        self._places: dict[str, str] = {}
        self._numbers = count(1)

    def rows(self, table: str, key: str, values: Sequence[int]) -> pa.Table:
        """The rows that have one of these keys, with their places in the last columns."""
        snapshot = self._snapshot(table)
        wanted = {key: Values("bigint", sorted(values), with_null=False)}
        found = located(self._tables, snapshot, _layout(snapshot).paths, wanted, _ALL)
        if found is None:
            raise ValueError(f"the rows of {table} cannot be found by {key}")
        return found

    def commit(self, table: str, removed: pa.Table | None = None, added: pa.Table | None = None) -> None:
        """Take rows away, found by `rows`, and add others."""
        snapshot = self._snapshot(table)
        parts = []
        for rows, weight in ((removed, -1), (added, 1)):
            if rows is not None:
                own = rows.select(range(len(snapshot.schema.fields)))
                weights = pa.repeat(pa.scalar(weight, pa.int64()), own.num_rows)
                parts.append(own.append_column(WEIGHT, weights))
        places = None if removed is None else removed.select(removed.column_names[-_PLACE:])
        few = Few(pa.concat_tables(parts), places)
        stamp = Stamp(f"writer:{table}", next(self._numbers), "WRITE", "", "", Frontier())
        add_change(self._tables, snapshot, _layout(snapshot), few, stamp)

    def _snapshot(self, table: str) -> Snapshot:
        if table not in self._places:
            found = self._trickle.sql(f"DESCRIBE DETAIL {table}").first()
            assert found is not None
            self._places[table] = found["location"]
        return self._tables.latest_snapshot(self._places[table])


def _layout(snapshot: Snapshot) -> Layout:
    return Layout.of(snapshot.schema, StructType([]))
