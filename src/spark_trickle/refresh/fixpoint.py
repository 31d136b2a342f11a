"""Queries that read each other's answers, evaluated until none of them finds anything new.

Members of a cycle are defined as sets (`definitions.CIRCULAR`), so that there is an end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Self

from pyspark.sql import DataFrame

from spark_trickle.algebra.relations import NEW, At, Version
from spark_trickle.catalyst.build import Builder
from spark_trickle.catalyst.holder import Holder
from spark_trickle.catalyst.leaves import AtHand, Shape
from spark_trickle.catalyst.listing import Values, Within
from spark_trickle.catalyst.plan import Plan
from spark_trickle.names import quote
from spark_trickle.refresh.definitions import Prepared
from spark_trickle.refresh.ends import VersionReader


class NoFixpoint(Exception):  # noqa: N818 - translated where the tables are known
    """There is something new after the last iteration allowed."""


@dataclass(frozen=True)
class _WithMembers:
    """The sources outside of the cycle as of the new versions, and the members as found so far."""

    outside: VersionReader
    found: Mapping[str, DataFrame]

    def rows(self, source: str, version: Version, columns: Sequence[str]) -> DataFrame:
        if source in self.found:
            return self.found[source].select(*[quote(c) for c in columns])
        return self.outside.rows(source, version, columns)

    def table(self, source: str, version: Version, within: Within) -> Plan | None:
        return None if source in self.found else self.outside.table(source, version, within)

    def lookup(
        self, source: str, version: Version, shape: Shape, keys: Mapping[str, Values]
    ) -> AtHand | None:
        return None if source in self.found else self.outside.lookup(source, version, shape, keys)

    def whole(self, source: str, version: Version, shape: Shape) -> AtHand | None:
        return None if source in self.found else self.outside.whole(source, version, shape)

    def small_change(self, source: str, shape: Shape) -> AtHand | None:
        raise NotImplementedError("a fixpoint evaluates whole queries")

    def prunes_pages(self, source: str, version: Version, column: str, values: Sequence[int]) -> bool:
        return source not in self.found and self.outside.prunes_pages(source, version, column, values)

    def changes(self, source: str, columns: Sequence[str]) -> DataFrame | None:
        raise NotImplementedError("a fixpoint evaluates whole queries")

    def instant(self, version: Version) -> datetime:
        return self.outside.instant(version)


@dataclass
class Fixpoint:
    """The members of a cycle. What is held is let go of at the end of a `with` block."""

    members: Mapping[str, Prepared]
    outside: Mapping[str, VersionReader]
    local_rows: int
    iterations: int = 0
    _holders: list[Holder] = field(default_factory=list)

    def solve(self, start: Mapping[str, DataFrame], most: int) -> dict[str, DataFrame]:
        """The least sets that contain `start` and that the queries map to themselves, each by its member's name."""
        found, sizes = dict(start), dict.fromkeys(self.members, -1)
        while True:
            if self.iterations == most:
                raise NoFixpoint
            self.iterations += 1
            step = {name: self._evaluated(name, found) for name in self.members}
            now = {name: frame.count() for name, frame in step.items()}
            found = step
            if now == sizes:
                return found
            sizes = now

    def nothing(self) -> dict[str, DataFrame]:
        """Every member without rows."""
        empty = {}
        for name, prepared in self.members.items():
            spark = prepared.planner.spark
            empty[name] = spark.createDataFrame([], prepared.definition.schema)
        return empty

    def _evaluated(self, name: str, found: Mapping[str, DataFrame]) -> DataFrame:
        """One query over what was found so far, evaluated and held."""
        prepared = self.members[name]
        planner = prepared.planner
        visible = {other: planner.frame(planner.analyzed(rows)) for other, rows in found.items()}
        holder = Holder(planner, self.local_rows)
        self._holders.append(holder)
        builder = Builder(planner, _WithMembers(self.outside[name], visible), holder)
        rows = builder.rows(At(prepared.definition.relation, NEW))
        assert rows is not None  # noqa: S101 - a relation at a version always has a plan
        fields = prepared.definition.schema.fields
        flat = rows.toDF(*[f"c{i}" for i in range(len(rows.columns))])
        named = flat.select(*[flat[f"c{i}"].cast(f.dataType).alias(f.name) for i, f in enumerate(fields)])
        held = holder.hold(named)
        return planner.frame(held) if held is not None else self.nothing()[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for holder in self._holders:
            holder.close()
