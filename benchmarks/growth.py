"""The same change on tables of different sizes: what a refresh takes follows the change, not the table.

python -m benchmarks.growth [--sizes 1000000,10000000] [--change 1000] [--rounds 3] [--json FILE]

The change is `--change` rows of the newest ones, updated. Seconds are medians of the rounds after the first; growth is
against the smallest size; the ratio is the median of those of the single rounds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import create_pair, measured, place, report
from benchmarks.matrix import QUERIES, fill, named

CHOSEN = ("filter", "join", "aggregate", "few groups")


def one_size(size: int, change: int, rounds: int) -> dict[str, tuple[float, float, float, int, bool]]:
    """Seconds by change and in full, their ratio, jobs, and whether all was right, by query."""
    with place() as trickle:
        fill(trickle, size)
        for name in CHOSEN:
            create_pair(trickle, named(name), QUERIES[name], "DIFFERENTIAL")
        found = {name: list[Any]() for name in CHOSEN}
        for number in range(rounds + 1):
            trickle.sql(f"UPDATE fact SET amount = amount + {number + 1} WHERE id >= {size - change}")
            for name in CHOSEN:
                found[name].append(measured(trickle, named(name)))
                print(size, number, found[name][-1].cells(), flush=True)
    return {
        name: (
            median(p.change.seconds for p in pairs[1:]),
            median(p.full.seconds for p in pairs[1:]),
            median(p.ratio for p in pairs[1:]),
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
