"""The one check used everywhere: the table equals Spark's own answer, and the refresh took the action expected."""

from __future__ import annotations

import datetime
import decimal
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from spark_trickle import Action, RefreshResult, Trickle

Bag = Counter[tuple[Any, ...]]


def bag(rows: Iterable[Iterable[Any]]) -> Bag:
    """Rows as a multiset of comparable values; floats to twelve digits, as sums may be re-associated."""
    return Counter(tuple(_comparable(v) for v in row) for row in rows)


def rows_of(frame: DataFrame) -> Bag:
    return bag(frame.collect())


def stored(trickle: Trickle, name: str) -> Bag:
    """The visible rows of a stream table, read file by file."""
    frame = _now(trickle, trickle._table(name).location)
    return rows_of(frame.select(*[f"`{c}`" for c in frame.columns if c != "__st"]))


def answer(trickle: Trickle, name: str, query: str) -> Bag:
    """Spark's own answer to the full query over the sources as they are now.

    The sources are temporary views over their current files: planning a Delta scan would cost a second each.
    """
    session = trickle.spark.newSession()
    for key, value in trickle.spark.conf.getAll.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)
    table = trickle._table(name)
    with trickle._catalog.begin(write=False) as catalog:
        sources = catalog.dependencies.of(table.id)
    tables = trickle._runtime.tables.in_session(session)
    for source in sources:
        view = source.source_name.rsplit(".", 1)[-1]
        tables.rows(tables.latest_snapshot(source.location)).createOrReplaceTempView(view)
    return rows_of(session.sql(query))


def _now(trickle: Trickle, location: str) -> DataFrame:
    tables = trickle._runtime.tables
    return tables.rows(tables.latest_snapshot(location))


@dataclass
class Checked:
    """A stream table under test: refresh it, and everything that must hold afterwards is checked."""

    trickle: Trickle
    name: str
    query: str
    held: Bag = field(default_factory=Counter)

    def created(self) -> None:
        self.held = stored(self.trickle, self.name)
        assert self.held == answer(self.trickle, self.name, self.query)

    def refresh(self, expected: Action | Iterable[Action]) -> RefreshResult:
        """Refresh; compare with Spark's full answer, the change feed, a second refresh, and the action."""
        allowed = {expected} if isinstance(expected, Action) else set(expected)
        before_version = self._version()
        result = self.trickle.refresh_stream_table(self.name)
        now = stored(self.trickle, self.name)
        full = answer(self.trickle, self.name, self.query)
        assert now == full, f"{self.name}: missing {full - now}, unexpected {now - full} ({result})"
        assert result.action in allowed, f"{self.name}: {result.action}, because {result.reason}"
        assert self._netted_feed(before_version) == _difference(now, self.held)
        self._refresh_again_is_free()
        self.held = now
        return result

    def _refresh_again_is_free(self) -> None:
        version = self._version()
        again = self.trickle.refresh_stream_table(self.name)
        assert again.action is Action.NO_DATA
        assert self._version() == version

    def _version(self) -> int:
        location = self.trickle._table(self.name).location
        return self.trickle._runtime.tables.latest(location).version

    def _netted_feed(self, since: int) -> dict[tuple[Any, ...], int]:
        """What consumers of the table's own change feed see."""
        if self._version() == since:
            return {}
        feed = (
            self.trickle.spark.read.option("readChangeFeed", "true")
            .option("startingVersion", since + 1)
            .table(self.name)
        )
        hidden = {"_change_type", "_commit_version", "_commit_timestamp", "__st"}
        visible = [c for c in feed.columns if c not in hidden]
        net: Counter[tuple[Any, ...]] = Counter()
        for row in feed.select("_change_type", *[f"`{c}`" for c in visible]).collect():
            sign = 1 if row[0] in {"insert", "update_postimage"} else -1
            net[tuple(_comparable(v) for v in row[1:])] += sign
        return {row: weight for row, weight in net.items() if weight}


def _difference(new: Bag, old: Bag) -> dict[tuple[Any, ...], int]:
    return {row: new[row] - old[row] for row in new.keys() | old.keys() if new[row] != old[row]}


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.12g}")
    if isinstance(value, dict):
        return ("map", *((_comparable(k), _comparable(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return tuple(_comparable(v) for v in value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, datetime.datetime | datetime.date | decimal.Decimal):
        return str(value)
    return value
