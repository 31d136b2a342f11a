"""Scan, filter, aggregates, join, join with aggregate: tables of some sizes, some part of them changed.

python -m benchmarks.matrix [--sizes 10000,100000,1000000] [--changes 0.01,0.1,0.5] [--rounds 2] [--json FILE]

For every query there are two stream tables over the same sources, one in mode AUTO and one in mode FULL; after
every change both are refreshed, one or the other first in turn. The first round of a size warms up and is not
reported. `fact` has `--sizes` rows, `item` a hundredth of them. A change updates a contiguous part of the newest rows, as most changes do.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.common import FEED, create_pair, measured, place, report

from spark_trickle import Trickle

QUERIES = {
    "scan": "SELECT id, item, grp, amount FROM fact",
    "filter": "SELECT id, item, amount FROM fact WHERE amount % 10 < 3",
    "aggregate": "SELECT item, SUM(amount) AS total, COUNT(*) AS n, MAX(amount) AS most FROM fact GROUP BY item",
    "few groups": "SELECT grp, SUM(amount) AS total, COUNT(*) AS n, AVG(amount) AS mean FROM fact GROUP BY grp",
    "join": "SELECT f.id, f.amount, i.name FROM fact f JOIN item i ON f.item = i.id WHERE f.amount % 10 < 5",
    "join, aggregate": "SELECT i.name, SUM(f.amount) AS total, COUNT(*) AS n"
    " FROM fact f JOIN item i ON f.item = i.id GROUP BY i.name",
}


def named(query: str) -> str:
    """A query's table."""
    return query.replace(", ", "_").replace(" ", "_")


def fill(trickle: Trickle, size: int) -> None:
    items = max(10, size // 100)
    trickle.sql(f"CREATE TABLE fact (id BIGINT, item BIGINT, grp INT, amount BIGINT) USING delta {FEED}")
    trickle.sql(
        f"INSERT INTO fact SELECT id, id * 7919 % {items}, CAST(id % 50 AS INT), id * 31 % 1000 FROM range({size})"
    )
    trickle.sql(f"CREATE TABLE item (id BIGINT, name STRING) USING delta {FEED}")
    trickle.sql(f"INSERT INTO item SELECT id, concat('item ', id) FROM range({items})")


def one_size(trickle: Trickle, size: int, changes: list[float], rounds: int) -> list[dict[str, Any]]:
    fill(trickle, size)
    for name, query in QUERIES.items():
        create_pair(trickle, named(name), query)
    rows = []
    for number in range(rounds + 1):
        for share in changes:
            first = int(size * (1 - share))
            trickle.sql(f"UPDATE fact SET amount = amount + {1 + number % 3} WHERE id >= {first}")
            for name in QUERIES:
                found = measured(trickle, named(name), full_first=number % 2 == 0)
                if number:
                    rows.append({"rows": size, "changed": share, **found.cells()})
                    print(rows[-1], flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--sizes", type=lambda t: [int(n) for n in t.split(",")], default=[10_000, 100_000, 1_000_000]
    )
    parser.add_argument(
        "--changes", type=lambda t: [float(n) for n in t.split(",")], default=[0.01, 0.1, 0.5]
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for size in options.sizes:
        with place() as trickle:
            rows += one_size(trickle, size, options.changes, options.rounds)
    report(rows, options.json)
    return 0 if all(row["right"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
