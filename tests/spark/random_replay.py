"""Queries against edits: create stream tables, edit, refresh, compare with Spark's own answer."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.errors import PySparkException

from spark_trickle import Action, Trickle, TrickleError
from tests.spark.oracle import Bag, answer, stored
from tests.spark.shapes import TABLES

_NUMBERS = itertools.count(1)
Edit = Callable[[str], list[str]]


@dataclass(frozen=True)
class Failure:
    """What went wrong."""

    kind: str
    """difference, action, error: findings. refused: Spark itself refuses or fails."""
    code: str
    detail: str
    batch: int
    """How many batches were applied."""

    @property
    def is_finding(self) -> bool:
        return self.kind != "refused"

    def resembles(self, other: Failure | None) -> bool:
        """A wrong change shows as a difference, or as rows to remove that are not there: one and the same."""
        shown = {"difference", "action"}
        if other is None or {self.kind, other.kind} <= shown:
            return other is not None
        return (self.kind, self.code) == (other.kind, other.code)


@dataclass
class Watched:
    """One stream table of a replay, until it fails."""

    trickle: Trickle
    name: str
    query: str
    support: str = ""
    """As EXPLAIN says it, with the reason."""
    held: list[Bag] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    changed: int = 0
    """Refreshes after which the answer was another one."""
    failure: Failure | None = None

    def create(self) -> None:
        self._guard(self._create, 0)

    def refresh(self, batch: int) -> None:
        if self.failure is None:
            self._guard(lambda: self._refresh(batch), batch)

    def _create(self) -> None:
        self.trickle.create_stream_table(self.name, self.query)
        self.support = self.trickle.explain(self.name).support
        self._compare(0)

    def _refresh(self, batch: int) -> None:
        result = self.trickle.refresh_stream_table(self.name)
        self.actions[result.action.value] += 1
        self._compare(batch)
        self.changed += self.held[-1] != self.held[-2]
        allowed = {
            Action.NO_DATA,
            Action.FULL if self.support.startswith("recomputed") else Action.DIFFERENTIAL,
        }
        if self.failure is None and result.action not in allowed:
            self.failure = Failure("action", result.action.value, result.reason, batch)

    def _compare(self, batch: int) -> None:
        now, full = stored(self.trickle, self.name), answer(self.trickle, self.name, self.query)
        self.held.append(now)
        if now != full:
            detail = f"missing {dict(full - now)}, unexpected {dict(now - full)}"
            self.failure = Failure("difference", "", detail, batch)

    def _guard(self, step: Callable[[], None], batch: int) -> None:
        try:
            step()
        except Exception as error:
            code = error.code if isinstance(error, TrickleError) else type(error).__name__
            kind = "error" if self._spark_answers() else "refused"
            self.failure = Failure(kind, code, str(error), batch)

    def _spark_answers(self) -> bool:
        try:
            self.trickle.spark.sql(self.query).collect()
        except PySparkException:
            return False
        return True


def unchanged(statement: str) -> list[str]:
    return [statement]


def replay(
    trickle: Trickle,
    initial: Sequence[str],
    batches: Sequence[Sequence[str]],
    queries: Sequence[str],
    edit: Edit = unchanged,
) -> list[Watched]:
    """All queries in one fresh database; nothing is left of it afterwards. `edit` may rewrite statements."""
    database = f"random_{next(_NUMBERS)}"
    trickle.sql(f"CREATE DATABASE {database}")
    trickle.sql(f"USE {database}")
    watched = [Watched(trickle, f"q{i}", query) for i, query in enumerate(queries)]
    try:
        for table, schema in TABLES.items():
            trickle.sql(f"CREATE TABLE {table} ({schema}) USING delta")
        for statement in initial:
            trickle.sql(statement)
        for one in watched:
            one.create()
        for batch, statements in enumerate(batches, 1):
            for statement in statements:
                for rewritten in edit(statement):
                    trickle.sql(rewritten)
            for one in watched:
                one.refresh(batch)
    finally:
        for one in watched:
            if one.support:
                trickle.drop_stream_table(one.name)
        trickle.sql("USE default")
        trickle.sql(f"DROP DATABASE {database} CASCADE")
    return watched
