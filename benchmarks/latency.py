"""The floor: how long a refresh takes when almost nothing has changed, and when nothing has.

python -m benchmarks.latency [--size 1000000] [--changed 1,100] [--rounds 5] [--tables 200] [--json FILE]

Changes of `--changed` rows go into a stream table with `--size` rows, over a join with a filter and over an
aggregate. Beside each there is a table that is kept up to date as one would by hand, with Delta's MERGE: the change
feed since the last version, the query over its rows, MERGE by key. NO_DATA is timed over `--tables` stream tables,
one by one and by one look of the daemon.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import FEED, jobs_so_far, place, refreshed, report

from spark_trickle import Trickle
from spark_trickle.scheduler.daemon import Daemon

QUERIES = {
    "joined": "SELECT f.id, f.amount, i.name FROM fact f JOIN item i ON f.item = i.id WHERE f.amount >= 0",
    "grouped": "SELECT id, SUM(amount) AS total, COUNT(*) AS n FROM fact GROUP BY id",
}
_CHANGED = """(SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY id ORDER BY _commit_version DESC, _change_type DESC) AS nth
    FROM fact_changes WHERE _change_type IN ('insert', 'delete', 'update_postimage')
  ) WHERE nth = 1)"""
_NEW = {
    "joined": "SELECT f.id, f.amount, i.name, f._change_type AS what FROM {changed} f JOIN item i ON f.item = i.id",
    "grouped": "SELECT k.id, SUM(f.amount) AS total, COUNT(f.id) AS n, IF(COUNT(f.id) = 0, 'delete', '') AS what"
    " FROM (SELECT DISTINCT id FROM {changed}) k LEFT JOIN fact f ON f.id = k.id GROUP BY k.id",
}
_SET = {"joined": "amount, name", "grouped": "total, n"}


def fill(trickle: Trickle, size: int) -> None:
    trickle.sql(f"CREATE TABLE fact (id BIGINT, item BIGINT, amount BIGINT) USING delta {FEED}")
    trickle.sql(f"INSERT INTO fact SELECT id, id % 1000, id % 97 FROM range({size})")
    trickle.sql("CREATE TABLE item AS SELECT id, concat('item ', id) AS name FROM range(1000)")
    for name, query in QUERIES.items():
        trickle.create_stream_table(name, query, "manual", "DIFFERENTIAL")
        trickle.sql(f"CREATE TABLE {name}_by_hand USING delta {FEED} AS {query}")


def newest(trickle: Trickle) -> int:
    return int(trickle.sql("DESCRIBE HISTORY fact LIMIT 1").collect()[0]["version"])


def by_hand(trickle: Trickle, name: str, first: int, last: int) -> tuple[float, int]:
    """Seconds and jobs of the MERGE."""
    columns = _SET[name].split(", ")
    before, started = jobs_so_far(trickle), time.monotonic()
    # As a view: beside `fact` in one statement, Delta takes table_changes('fact', …) for the table itself.
    feed = trickle.spark.read.option("readChangeFeed", "true").option("startingVersion", first)
    feed.option("endingVersion", last).table("fact").createOrReplaceTempView("fact_changes")
    trickle.sql(
        f"MERGE INTO {name}_by_hand t USING ({_NEW[name].format(changed=_CHANGED)}) s ON t.id = s.id"
        " WHEN MATCHED AND s.what = 'delete' THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {', '.join(f't.{c} = s.{c}' for c in columns)}"
        f" WHEN NOT MATCHED AND s.what <> 'delete' THEN INSERT (id, {', '.join(columns)})"
        f" VALUES (s.id, {', '.join(f's.{c}' for c in columns)})"
    )
    return time.monotonic() - started, jobs_so_far(trickle) - before


def small_changes(trickle: Trickle, size: int, rows: int, rounds: int) -> list[dict[str, Any]]:
    timed: dict[str, list[tuple[float, int, float, int]]] = {name: [] for name in QUERIES}
    for number in range(rounds + 1):
        before = newest(trickle)
        first = (number * 7919) % (size - rows)
        trickle.sql(f"UPDATE fact SET amount = amount + 1 WHERE id >= {first} AND id < {first + rows}")
        for name in QUERIES:
            own = refreshed(trickle, name)
            hand, jobs = by_hand(trickle, name, before + 1, newest(trickle))
            if number:
                timed[name].append((own.seconds, own.jobs, hand, jobs))
    found = []
    for name, times in timed.items():
        own_seconds, own_jobs, hand, jobs = (median(column) for column in zip(*times, strict=True))
        columns = trickle.spark.table(f"{name}_by_hand").columns
        two = [trickle.spark.table(t).select(*columns) for t in (name, f"{name}_by_hand")]
        found.append(
            {
                "table": name,
                "changed rows": rows,
                "seconds": round(own_seconds, 3),
                "jobs": own_jobs,
                "by hand": round(hand, 3),
                "jobs by hand": jobs,
                "ratio": round(hand / own_seconds, 2),
                "right": trickle.verify(name).equal and not two[0].exceptAll(two[1]).count(),
            }
        )
        print(found[-1], flush=True)
    return found


def nothing(trickle: Trickle, tables: int) -> dict[str, Any]:
    """Refreshes of tables of which no source has changed."""
    for number in range(tables):
        trickle.create_stream_table(f"idle_{number}", f"SELECT id FROM item WHERE id = {number}", "manual")
    for number in range(min(10, tables)):
        trickle.refresh_stream_table(f"idle_{number}")
    jobs, started = jobs_so_far(trickle), time.monotonic()
    for number in range(tables):
        trickle.refresh_stream_table(f"idle_{number}")
    seconds = time.monotonic() - started
    return {
        "NO_DATA refreshes": tables,
        "milliseconds each": round(1000 * seconds / tables, 1),
        "jobs": jobs_so_far(trickle) - jobs,
    }


def looked_at(trickle: Trickle, tables: int) -> dict[str, Any]:
    """The daemon's look at the same tables, none of which has anything to do."""
    for number in range(tables):
        trickle.alter_stream_table(f"idle_{number}", schedule="6s")
    done: list[str] = []
    daemon = Daemon(
        trickle._runtime, lambda event: done.append(event.name) if event.kind == "refreshed" else None
    )
    daemon.tick()
    while daemon.waiting or daemon.running:
        time.sleep(0.01)
    done.clear()
    time.sleep(3.1)  # the next data timestamp
    jobs, started = jobs_so_far(trickle), time.monotonic()
    daemon.tick()
    seconds = time.monotonic() - started
    found = {
        "tables of the daemon": len(done),
        "seconds": round(seconds, 3),
        "a second": round(len(done) / seconds),
        "jobs": jobs_so_far(trickle) - jobs,
    }
    daemon.finish()
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--changed", type=lambda t: [int(n) for n in t.split(",")], default=[1, 100])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with place() as trickle:
        fill(trickle, options.size)
        rows = [
            row
            for changed in options.changed
            for row in small_changes(trickle, options.size, changed, options.rounds)
        ]
        idle = nothing(trickle, options.tables)
        looked = looked_at(trickle, options.tables)
    report(rows, None)
    report([idle], None)
    report([looked], None)
    if options.json:
        found = {"changes": rows, "nothing": idle, "by the daemon": looked}
        options.json.write_text(json.dumps(found, indent=1))
    return 0 if all(row["right"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
