"""The same change on tables of different sizes: what a refresh takes follows the change, not the table.

python -m benchmarks.growth [--sizes 1000000,10000000] [--change 1000] [--rounds 3] [--json FILE]

The change is `--change` rows of the newest ones, updated. Rows are as those of an orders table: keys, money, a day, a
status, a text of forty characters. A table of a tenth of the smallest size goes first, so that code is compiled.
Seconds are medians of the rounds after the second, in which columns that are looked through again are sorted; growth is
against the smallest size; the ratio is the median of those of the single rounds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import FEED, create_pair, measured, place, report

from spark_trickle import Trickle

_WARM_UP = 2
QUERIES = {
    "filter": "SELECT id, item, amount, day, status, note FROM fact WHERE item % 10 < 8",
    "join": "SELECT f.id, f.amount, f.day, f.note, i.name FROM fact f JOIN item i ON f.item = i.id"
    " WHERE f.item % 10 < 8",
    "aggregate": "SELECT item, COUNT(*) AS n, SUM(amount) AS total, AVG(price) AS price, MAX(amount) AS most,"
    " MIN(day) AS first, MAX(note) AS note FROM fact GROUP BY item",
    "few_groups": "SELECT region, status, COUNT(*) AS n, SUM(amount) AS total, SUM(amount * price) AS paid,"
    " AVG(price) AS price FROM fact GROUP BY region, status",
}


def fill(trickle: Trickle, size: int) -> None:
    trickle.sql(
        "CREATE TABLE fact (id BIGINT, item BIGINT, region INT, amount DECIMAL(12,2), price DECIMAL(12,2), day DATE,"
        f" status STRING, note STRING) USING delta {FEED}"
    )
    items = max(10, size // 100)
    trickle.sql(
        f"INSERT INTO fact SELECT id, id * 7919 % {items}, CAST(id % 10 AS INT), CAST(id * 31 % 100000 / 100 AS DECIMAL(12,2)),"
        " CAST(id * 17 % 5000 / 100 AS DECIMAL(12,2)), date_add(DATE'2015-01-01', CAST(id * 3650 / "
        f"{size} AS INT)), element_at(array('open', 'paid', 'sent', 'done', 'lost'), CAST(id % 5 AS INT) + 1),"
        f" sha1(CAST(id AS STRING)) FROM range({size})"
    )
    trickle.sql(f"CREATE TABLE item (id BIGINT, name STRING) USING delta {FEED}")
    trickle.sql(f"INSERT INTO item SELECT id, concat('item ', id) FROM range({items})")


def one_size(size: int, change: int, rounds: int) -> dict[str, tuple[float, float, float, int, bool]]:
    """Seconds by change and in full, their ratio, jobs, and whether all was right, by query."""
    with place() as trickle:
        fill(trickle, size)
        for name, query in QUERIES.items():
            create_pair(trickle, name, query, "DIFFERENTIAL")
        found = {name: list[Any]() for name in QUERIES}
        for number in range(rounds + _WARM_UP):
            trickle.sql(f"UPDATE fact SET amount = amount + {number + 1} WHERE id >= {size - change}")
            for name in QUERIES:
                found[name].append(measured(trickle, name))
                print(size, number, found[name][-1].cells(), flush=True)
    return {
        name: (
            median(p.change.seconds for p in pairs[_WARM_UP:]),
            median(p.full.seconds for p in pairs[_WARM_UP:]),
            median(p.ratio for p in pairs[_WARM_UP:]),
            pairs[-1].change.jobs,
            all(p.right for p in pairs),
        )
        for name, pairs in found.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--sizes", type=lambda t: [int(n) for n in t.split(",")], default=[1_000_000, 10_000_000]
    )
    parser.add_argument("--change", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    one_size(min(options.sizes) // 10, min(options.change, min(options.sizes) // 100), options.rounds)
    by_size = {size: one_size(size, options.change, options.rounds) for size in options.sizes}
    least = by_size[min(options.sizes)]
    rows = [
        {
            "query": name,
            "rows": size,
            "seconds": round(change, 3),
            "growth": round(change / least[name][0], 2),
            "full": round(full, 3),
            "full growth": round(full / least[name][1], 2),
            "ratio": round(ratio, 2),
            "jobs": jobs,
            "right": right,
        }
        for size, found in by_size.items()
        for name, (change, full, ratio, jobs, right) in found.items()
    ]
    report(sorted(rows, key=lambda row: str(row["query"])), options.json)
    return 0 if all(row["right"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
