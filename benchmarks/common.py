"""What all benchmarks share: a place of their own, a refresh timed with its Spark jobs counted, a table of results."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_trickle import RefreshResult, Trickle
from spark_trickle.storage.embedded import start_session

FEED = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"


@contextmanager
def place(settings: Mapping[str, object] | None = None) -> Iterator[Trickle]:
    """A Spark of its own with an empty warehouse, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder))
        with Trickle(spark, home=Path(folder), settings=dict(settings or {})) as trickle:
            yield trickle
        spark.stop()


@dataclass(frozen=True)
class Timed:
    """One refresh."""

    result: RefreshResult
    seconds: float
    jobs: int


def jobs_so_far(trickle: Trickle) -> int:
    return int(trickle.spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


def refreshed(trickle: Trickle, name: str) -> Timed:
    before, started = jobs_so_far(trickle), time.monotonic()
    result = trickle.refresh_stream_table(name)
    return Timed(result, time.monotonic() - started, jobs_so_far(trickle) - before)


def create_pair(trickle: Trickle, name: str, query: str, mode: str = "AUTO") -> None:
    """A stream table, and one beside it that is recomputed."""
    trickle.create_stream_table(name, query, "manual", mode)
    trickle.create_stream_table(f"{name}_full", query, "manual", "FULL")


@dataclass(frozen=True)
class Pair:
    """A refresh of each of the two after the same change."""

    name: str
    change: Timed
    full: Timed
    right: bool
    evaluated: float = 0.0
    """Seconds that evaluating the query and comparing it with the table took; 0 where that was not done."""

    @property
    def ratio(self) -> float:
        return self.full.seconds / self.change.seconds

    def cells(self) -> dict[str, Any]:
        return {
            "query": self.name,
            "action": self.change.result.action.value,
            "seconds": round(self.change.seconds, 3),
            "full": round(self.full.seconds, 3),
            "ratio": round(self.ratio, 2),
            "jobs": self.change.jobs,
            "right": self.right,
        }


def measured(trickle: Trickle, name: str, *, check: bool = True, full_first: bool = False) -> Pair:
    """Both are refreshed, one after the other, and the stream table is compared with its query.

    Whichever goes first also reads what the sources' logs have to say about the change.
    """
    order = (f"{name}_full", name) if full_first else (name, f"{name}_full")
    timed = {one: refreshed(trickle, one) for one in order}
    change, full = timed[name], timed[f"{name}_full"]
    started = time.monotonic()
    right = not check or trickle.verify(name).equal
    return Pair(name, change, full, right, time.monotonic() - started if check else 0.0)


def report(rows: Sequence[Mapping[str, Any]], file: Path | None) -> None:
    """As a table, and as JSON if asked for."""
    if rows:
        widths = {key: max(len(key), *(len(str(row[key])) for row in rows)) for key in rows[0]}
        print("  ".join(f"{key:>{width}}" for key, width in widths.items()))
        for row in rows:
            print("  ".join(f"{row[key]!s:>{width}}" for key, width in widths.items()))
    if file:
        file.write_text(json.dumps(list(rows), indent=1))
