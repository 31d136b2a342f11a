"""A recursive query from its stored rows: what the change derives from them, and what that derives, and so on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from spark_trickle.algebra.relations import NEW, Node, Version
from spark_trickle.catalyst.build import Builder
from spark_trickle.catalyst.holder import Holder
from spark_trickle.catalyst.identity import net
from spark_trickle.catalyst.leaves import AtHand, Reader, Shape
from spark_trickle.catalyst.listing import Values, Within
from spark_trickle.catalyst.plan import Plan, Planner
from spark_trickle.incremental.maintain import Iterate
from spark_trickle.incremental.prune import Pruner
from spark_trickle.names import WEIGHT


class NotConverged(Exception):  # noqa: N818 - not an error: the query itself may well end
    """A change that derives more and more, as through a cycle that the query need not reach."""


@dataclass(frozen=True)
class _WithItself:
    """The sources, and the recursive query itself as one more of them."""

    sources: Reader
    itself: str
    own_rows: DataFrame | None = None
    own_changes: DataFrame | None = None
    only_new: bool = False

    def rows(self, source: str, version: Version, columns: Sequence[str]) -> DataFrame:
        if source == self.itself:
            assert self.own_rows is not None  # noqa: S101 - a step reads itself either as rows or as a change
            return self.own_rows
        return self.sources.rows(source, NEW if self.only_new else version, columns)

    def table(self, source: str, version: Version, within: Within) -> Plan | None:
        wanted = NEW if self.only_new else version
        return None if source == self.itself else self.sources.table(source, wanted, within)

    def lookup(
        self, source: str, version: Version, shape: Shape, keys: Mapping[str, Values]
    ) -> AtHand | None:
        wanted = NEW if self.only_new else version
        return None if source == self.itself else self.sources.lookup(source, wanted, shape, keys)

    def whole(self, source: str, version: Version, shape: Shape) -> AtHand | None:
        wanted = NEW if self.only_new else version
        return None if source == self.itself else self.sources.whole(source, wanted, shape)

    def small_change(self, source: str, shape: Shape) -> AtHand | None:
        return None if source == self.itself else self.sources.small_change(source, shape)

    def prunes_pages(self, source: str, version: Version, column: str, values: Sequence[int]) -> bool:
        wanted = NEW if self.only_new else version
        return source != self.itself and self.sources.prunes_pages(source, wanted, column, values)

    def instant(self, version: Version) -> datetime:
        return self.sources.instant(NEW if self.only_new else version)

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        return self.own_changes if source == self.itself else self.sources.changes(source, columns)


@dataclass(frozen=True)
class Derivation:
    """One recursive query over one interval."""

    planner: Planner
    sources: Reader
    changed: frozenset[str]
    holder: Holder

    def change(self, query: Iterate, stored: DataFrame, count: int) -> DataFrame | None:
        """The change of a table of so many rows, weight last, not netted; None when there is none."""
        start = _WithItself(self.sources, query.itself, own_rows=stored)
        found = self._evaluated(start, self.changed, [query.base, query.step], len(stored.columns))
        total: list[DataFrame] = []
        level = self._deepest(found)
        while found is not None:
            if 0 <= query.most_levels < level + len(total):
                raise NotConverged(f"the change derives rows beyond level {query.most_levels}")
            total.append(self.planner.frame(found))
            step = _WithItself(self.sources, query.itself, own_changes=total[-1], only_new=True)
            found = self._evaluated(step, frozenset({query.itself}), [query.step], len(stored.columns))
        if not total:
            return None
        summed = net(reduce(DataFrame.unionAll, total))
        self._check_rows(count, summed)
        derived = _WithItself(self.sources, query.itself, own_changes=summed)
        return Builder(self.planner, derived, self.holder).change(query.result)

    def _check_rows(self, count: int, change: DataFrame) -> None:
        most = int(self.planner.spark.conf.get("spark.sql.cteRecursionRowLimit") or -1)
        if most < 0:
            return
        added = change.agg(F.sum(WEIGHT)).first()
        if count + int((added and added[0]) or 0) >= most:
            raise NotConverged(f"the recursion gives {most} rows or more")

    def _deepest(self, found: Plan | None) -> int:
        """The level that the rows found first have reached; every further step is one level deeper."""
        if found is None:
            return 0
        *_, level, _ = self.planner.frame(found).columns
        deepest = self.planner.frame(found).agg(F.max(level)).first()
        return int(deepest[0]) if deepest else 0

    def _evaluated(
        self, reader: Reader, changed: frozenset[str], changes: list[Node], width: int
    ) -> Plan | None:
        """The sum of some changes, netted and held; columns are named by position."""
        builder, pruner = Builder(self.planner, reader, self.holder), Pruner(changed)
        plans = [plan for plan in map(pruner.node, changes) if plan is not None]
        frames = [frame for frame in map(builder.change, plans) if frame is not None]
        if not frames:
            return None
        names = [f"r{i}" for i in range(width)]
        return self.holder.netted(reduce(DataFrame.unionAll, (f.toDF(*names, WEIGHT) for f in frames)))
