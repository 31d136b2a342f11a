"""TPC-H: every query as a stream table, kept up to date after a small change, against recomputing it.

python -m benchmarks.tpch [--scale 1] [--change 0.001] [--streams recent,uniform] [--queries 1,3,5] [--rounds 1]
                          [--warm-up 3] [--json FILE]

For each query there are two stream tables over the same sources, one in mode AUTO and one in mode FULL; after
every change both are refreshed, one after the other; in the rounds that count, the first is compared with its query.
What a wrong refresh of an earlier round had left would show there. The sources have a change feed and deletion vectors; `orders` and `lineitem` lie in the order of their keys, as they would if
they had been appended to.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.common import FEED, Pair, create_pair, measured, place
from benchmarks.writer import Writer
from tests.spark.tpch_queries import TABLES, queries

from spark_trickle import Action, Trickle

FILES = {"lineitem": 16, "orders": 8, "partsupp": 4}
WARM_UP = 3
"""Rounds that are not counted: code is compiled in the first, and AUTO has seen both ways after the third."""
RECENT_KEYS, RECENT_SHARE = 0.05, 0.8
"""The recent stream: this share of the changes lies among the newest of the keys."""


@dataclass
class Measured:
    """One refresh of each of a query's two tables."""

    query: int
    stream: str
    action: str
    auto: float
    full: float
    jobs: int
    right: bool
    evaluated: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return self.full / self.auto


class Orders:
    """Which orders change: keys of existing ones by their number, in the order in which they came."""

    def __init__(self, scale: float, seed: int) -> None:
        self._count = int(1_500_000 * scale)
        self._pick = random.Random(seed)
        self._gone: set[int] = set()

    def some(self, number: int, stream: str) -> list[int]:
        recent = int(number * RECENT_SHARE) if stream == "recent" else 0
        newest = int(self._count * (1 - RECENT_KEYS))
        found = self._unused(recent, newest, self._count) + self._unused(number - recent, 0, self._count)
        return [number // 8 * 32 + number % 8 + 1 for number in found]

    def _unused(self, number: int, low: int, high: int) -> list[int]:
        found: list[int] = []
        while len(found) < number:
            one = self._pick.randrange(low, high)
            if one not in self._gone:
                self._gone.add(one)
                found.append(one)
        return found


def load(trickle: Trickle, folder: Path, scale: float) -> None:
    generator = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run([generator, "parquet", "-q", "-s", str(scale), "-o", folder], check=True)
    for table, schema in TABLES.items():
        trickle.sql(f"CREATE TABLE {table} ({schema}) USING delta {FEED}")
        rows = trickle.spark.read.parquet(str(folder / f"{table}.parquet"))
        files = max(1, int(FILES.get(table, 1) * max(1.0, scale)))
        key = rows.columns[0]
        rows = (
            rows.repartitionByRange(files, key).sortWithinPartitions(key) if files > 1 else rows.coalesce(1)
        )
        rows.write.format("delta").mode("append").saveAsTable(table)


def change(writer: Writer, orders: Orders, stream: str, fraction: float, scale: float, cycle: int) -> None:
    """A third of the changed orders is new, with lines; a third deleted, with lines; of a third the lines change."""
    number = max(3, int(1_500_000 * scale * fraction))
    copied, dropped, updated = (orders.some(number // 3, stream) for _ in range(3))
    shift = 6_000_000 * max(1, int(scale)) * cycle + 1
    for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        rows = writer.rows(table, key, copied)
        writer.commit(table, added=_with(rows, key, pc.add(rows.column(key), shift)))
        writer.commit(table, removed=writer.rows(table, key, dropped))
    lines = writer.rows("lineitem", "l_orderkey", updated)
    dearer = _with(lines, "l_quantity", _times(pc.add(lines.column("l_quantity"), Decimal(1)), Decimal(1)))
    dearer = _with(dearer, "l_extendedprice", _times(lines.column("l_extendedprice"), Decimal("1.01")))
    dearer = _with(dearer, "l_discount", _times(lines.column("l_discount"), Decimal(0), Decimal("0.05")))
    writer.commit("lineitem", removed=lines, added=dearer)
    every = int(1 / fraction)
    some = range(cycle % every, int(150_000 * scale) + 1, every)
    customers = writer.rows("customer", "c_custkey", some)
    richer = pc.add(customers.column("c_acctbal"), Decimal(1))
    writer.commit(
        "customer", removed=customers, added=_with(customers, "c_acctbal", _times(richer, Decimal(1)))
    )


def _with(rows: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    """Another value in one column, in the type that the column has."""
    place = rows.column_names.index(name)
    return rows.set_column(place, name, values.cast(rows.schema.field(name).type))


def _times(values: pa.ChunkedArray, factor: Decimal, plus: Decimal = Decimal(0)) -> pa.ChunkedArray:
    """Money, to the cent."""
    return pc.round(pc.add(pc.multiply(values, factor), plus), ndigits=2)


def measure(trickle: Trickle, number: int, stream: str, *, check: bool) -> Measured:
    pair = measured(trickle, f"q{number}", check=check)
    result, auto, full, jobs = pair.change.result, pair.change.seconds, pair.full.seconds, pair.change.jobs
    found = Measured(
        number,
        stream,
        result.action.value,
        auto,
        full,
        jobs,
        pair.right,
        pair.evaluated,
        dict(result.durations),
    )
    print(
        f"{stream:<8} q{number:<3} {found.action:<13} {auto:7.2f} s, full {full:7.2f} s, {found.ratio:6.2f} ×, "
        f"{jobs:3} jobs{'' if found.right else '  WRONG'}{_why(pair)}",
        flush=True,
    )
    return found


def _why(pair: Pair) -> str:
    """Where AUTO recomputed: why."""
    result = pair.change.result
    return f"  {result.reason}" if result.action is Action.FULL else ""


def report(found: Sequence[Measured], stream: str) -> None:
    every = [m for m in found if m.stream == stream]
    own = [m for m in every if m.action != Action.NO_DATA]
    if not own:
        return
    mean = _mean([m.ratio for m in own])
    fast, slow = sum(m.ratio >= 3 for m in own), [f"q{m.query}" for m in own if m.ratio < 1 / 1.1]
    print(
        f"{stream}: {sum(m.right for m in every)} of {len(every)} right; of {len(own)} whose sources changed: "
        f"geometric mean {mean:.2f} ×, {fast} at least 3 ×, slower than FULL: {', '.join(slow) or 'none'}"
    )
    ratios = [m.evaluated / m.auto if m.action == Action.NO_DATA else m.ratio for m in every]
    print(
        f"{stream}: of all {len(every)}, those with nothing to do against evaluating their query: "
        f"geometric mean {_mean(ratios):.2f} ×, {sum(ratio >= 3 for ratio in ratios)} at least 3 ×"
    )


def _mean(ratios: Sequence[float]) -> float:
    """The geometric one."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def report_steps(found: Sequence[Measured]) -> None:
    """Where the time of the differential refreshes went, by query and step, in seconds."""
    own = [m for m in found if m.action == Action.DIFFERENTIAL]
    names = sorted({step for m in own for step in m.steps})
    if not own:
        return
    print(f"{'stream':<8} {'query':<5} " + " ".join(f"{name:>9}" for name in [*names, "rest", "jobs"]))
    for m in own:
        rest = m.auto - sum(m.steps.values())
        cells = [*(m.steps.get(name, 0.0) for name in names), rest]
        print(f"{m.stream:<8} q{m.query:<4} " + " ".join(f"{c:9.3f}" for c in cells) + f" {m.jobs:>9}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--change", type=float, default=0.001)
    parser.add_argument("--streams", type=lambda text: text.split(","), default=["recent", "uniform"])
    parser.add_argument("--queries", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=WARM_UP)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    every = queries(options.scale)
    chosen = options.queries or list(every)
    found: list[Measured] = []
    with place() as trickle, tempfile.TemporaryDirectory() as folder:
        load(trickle, Path(folder), options.scale)
        for number in chosen:
            create_pair(trickle, f"q{number}", every[number])
            print(f"q{number} created", flush=True)
        orders, writer = Orders(options.scale, options.seed), Writer(trickle)
        cycle = 0
        for _ in range(options.rounds + options.warm_up):
            for stream in options.streams:
                cycle += 1
                change(writer, orders, stream, options.change, options.scale, cycle)
                print(f"change {cycle}: {stream}", flush=True)
                counts = cycle > options.warm_up * len(options.streams)
                measurements = [measure(trickle, number, stream, check=counts) for number in chosen]
                if counts:
                    found += measurements
    report_steps(found)
    for stream in options.streams:
        report(found, stream)
    if options.json:
        options.json.write_text(json.dumps([asdict(m) | {"ratio": m.ratio} for m in found], indent=1))
    return 0 if all(m.right for m in found) else 1


if __name__ == "__main__":
    sys.exit(main())
