"""ORDER BY … LIMIT from the stored rows: the rows among which the new answer lies, as few as decide it.

All rows before the last stored one, the boundary, are stored themselves. So the stored rows with the change
merged in are the first ones again, as long as enough of them do not lie beyond the boundary. Only when they
are too few, what lies beyond is read. With an OFFSET the rows before the first stored one are not known, so
a change that does not lie beyond the boundary means reading up to it.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from spark_trickle.algebra.relations import PerKey, Top, Whole
from spark_trickle.algebra.traverse import below_row_wise
from spark_trickle.catalyst.identity import net
from spark_trickle.catalyst.ordering import SortKey, sort_keys
from spark_trickle.catalyst.plan import Plan, Planner, output
from spark_trickle.names import WEIGHT

_LITERALS = (int, str, decimal.Decimal, datetime.date)


@dataclass(frozen=True)
class Race:
    """One LIMIT over one change. `read` gives all competing rows at the new version; `hold` evaluates a frame."""

    planner: Planner
    top: Top
    read: Callable[[], DataFrame]
    hold: Callable[[DataFrame], Plan | None]

    def contenders(self, stored: DataFrame, change: DataFrame) -> DataFrame | None:
        """Rows that the LIMIT can be applied to; None when the stored ones are the answer still."""
        limit = self.top.limit
        if limit is None:
            return self.read()
        kept = self._held(self._named(stored.withColumn(WEIGHT, F.lit(1).cast("long"))))
        changed = self._named(change)
        if kept is None or self._rows_of(kept) < limit:
            if limit == 0:
                return None
            return self.read() if self.top.offset else self._repeated(self._merged(kept, changed))
        boundary = self._boundary(kept)
        near = self._held(self._against(changed, boundary).where(F.col("place") <= 0))
        if near is None:
            return None
        if self.top.offset:
            return self._from_the_start(near, boundary)
        return self._from_stored(kept, near, boundary, limit)

    def _from_the_start(self, near: DataFrame, boundary: DataFrame) -> DataFrame:
        """Rows up to the boundary, if they are still as many as before; else all."""
        return self._read(boundary, beyond=False) if self._rows_of(near) >= 0 else self.read()

    def _from_stored(self, kept: DataFrame, near: DataFrame, boundary: DataFrame, limit: int) -> DataFrame:
        merged = self._against(self._merged(kept, near.select(*self._names, WEIGHT)), boundary)
        sure = self._held(merged)
        if sure is not None and self._rows_of(sure) >= limit:
            return self._repeated(sure)
        if isinstance(below_row_wise(self.top.child), PerKey | Whole):
            return self.read()  # groups are known only when all their rows were read
        beyond = self._read(boundary, beyond=True)
        if sure is None:
            return beyond
        return self._repeated(sure.where(F.col("place") < 0)).unionAll(beyond)

    # Frames of competing rows: r0, r1, … and the weight

    @property
    def _names(self) -> list[str]:
        return [f"r{i}" for i in range(len(self.top.columns))]

    def _named(self, frame: DataFrame) -> DataFrame:
        return frame.toDF(*self._names, WEIGHT)

    def _merged(self, kept: DataFrame | None, change: DataFrame) -> DataFrame:
        """Stored rows and change together; a row removed that was not stored lies beyond them."""
        both = change if kept is None else kept.unionAll(change)
        return net(both).where(F.col(WEIGHT) > 0)

    def _repeated(self, frame: DataFrame) -> DataFrame:
        """Every row as often as its weight says."""
        copies = F.explode(F.array_repeat(F.lit(0), F.col(WEIGHT).cast("int")))
        return frame.select(*self._names, copies.alias("copy")).select(*self._names)

    def _rows_of(self, held: DataFrame) -> int:
        """How many rows the weights of a held frame stand for."""
        return sum(row[0] for row in held.select(WEIGHT).collect())

    def _held(self, frame: DataFrame) -> DataFrame | None:
        plan = self.hold(frame)
        return None if plan is None else self.planner.frame(plan)

    # The order

    def _read(self, boundary: DataFrame, beyond: bool) -> DataFrame:
        """All competing rows on one side of the boundary, or at it.

        The first sort key is compared with a literal as well, so that scans can skip what lies on the other side.
        """
        rows = self._with_keys(self._named(self.read().withColumn(WEIGHT, F.lit(1).cast("long"))))
        first, value = F.col("o0"), boundary.collect()[0][0]
        if type(value) in _LITERALS:
            key, literal = self._keys[0], F.lit(value)
            rows = rows.where(key.not_before(first, literal) if beyond else key.not_after(first, literal))
        placed = self._against(rows.select(*self._names, WEIGHT), F.broadcast(boundary))
        side = F.col("place") >= 0 if beyond else F.col("place") <= 0
        return placed.where(side).select(*self._names)

    def _against(self, frame: DataFrame, boundary: DataFrame) -> DataFrame:
        """The frame with `place`: −1 before the boundary, 0 at it, 1 beyond it."""
        keys = self._keys
        located = self._with_keys(frame).crossJoin(boundary)
        place: Column = F.lit(0)
        for i in reversed(range(len(keys))):
            mine, other = F.col(f"o{i}"), F.col(f"b{i}")
            place = (
                F.when(keys[i].before(mine, other), -1).when(keys[i].before(other, mine), 1).otherwise(place)
            )
        return located.select(*self._names, WEIGHT, place.alias("place"))

    def _boundary(self, kept: DataFrame) -> DataFrame:
        """The sort keys of the last stored row: b0, b1, …."""
        keys = self._keys
        order = [key.reversed(F.col(f"o{i}")) for i, key in enumerate(keys)]
        last = self._with_keys(kept).orderBy(*order).limit(1)
        held = self._held(last.select(*[F.col(f"o{i}").alias(f"b{i}") for i in range(len(keys))]))
        assert held is not None  # noqa: S101 - `kept` has rows
        return held

    def _with_keys(self, frame: DataFrame) -> DataFrame:
        """The frame with the values it is sorted by: o0, o1, …."""
        columns = output(self.top.child.operator.payload)
        plan = self.planner.readdress(self.planner.analyzed(frame), columns, weight=True)
        values = [self.planner.alias(key.value, f"o{i}") for i, key in enumerate(self._keys)]
        wide = self.planner.frame(self.planner.project([*output(plan), *values], plan))
        return wide.toDF(*self._names, WEIGHT, *[f"o{i}" for i in range(len(values))])

    @property
    def _keys(self) -> list[SortKey]:
        return sort_keys(self.top.operator.payload)
