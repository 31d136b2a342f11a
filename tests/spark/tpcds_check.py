"""Does every query have an answer before and after the edits? Asked of DuckDB, in seconds and without Spark.

python -m tests.spark.tpcds_check [--seeds 1,2,3] [--cycles 3]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from tests.spark import tpcds_data
from tests.spark.tpc_runs import print_table
from tests.spark.tpcds_edits import Edits
from tests.spark.tpcds_schema import connect, tables, texts

Answer = list[tuple[Any, ...]]

EMPTY_ALLOWED = 4


@dataclass
class Answers:
    """What a query said, before the edits and after each cycle."""

    number: int
    said: list[Answer] = field(default_factory=list)

    @property
    def told(self) -> bool:
        """Was there always something but NULL and zero?"""
        return all(any(value not in (None, 0) for row in rows for value in row) for rows in self.said)

    @property
    def changed(self) -> list[bool]:
        return [a != b for a, b in zip(self.said, self.said[1:], strict=False)]


def load(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tpcds_data.write(tpcds_data.generate(seed), Path(folder))
        for table, columns in tables().items():
            listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            connection.execute(f"CREATE TABLE {table} ({listed})")
            connection.execute(f"INSERT INTO {table} FROM '{folder}/{table}.parquet'")


def ask(seed: int, cycles: int) -> list[Answers]:
    every = [Answers(number) for number in texts()]
    edits = Edits(seed)
    with connect() as connection:
        load(connection, seed)
        for cycle in range(cycles + 1):
            for statement in edits.batch(cycle) if cycle else ():
                connection.execute(statement)
            for one in every:
                one.said.append(sorted(connection.execute(texts()[one.number]).fetchall(), key=repr))
    return every


def report(every: list[Answers]) -> None:
    rows = [("query", "rows", "changed")]
    rows += [
        (f"q{one.number}", " → ".join(str(len(rows)) for rows in one.said), f"{sum(one.changed)}×")
        for one in every
    ]
    print_table(rows)


def _summary(every: list[Answers]) -> Iterable[str]:
    yield f"with rows throughout: {sum(all(one.said) for one in every)} of {len(every)}"
    yield f"and not only NULL and zero: {sum(one.told for one in every)}"
    yield f"changed by every cycle: {sum(all(one.changed) for one in every)}"
    yield f"changed by some cycle: {sum(any(one.changed) for one in every)}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=lambda text: [int(n) for n in text.split(",")], default=[1])
    parser.add_argument("--cycles", type=int, default=3)
    options = parser.parse_args()
    good = True
    for seed in options.seeds:
        every = ask(seed, options.cycles)
        if len(options.seeds) == 1:
            report(every)
        print(f"seed {seed}:", "; ".join(_summary(every)), flush=True)
        missing = [f"q{one.number}" for one in every if not one.told]
        print(f"seed {seed}: without an answer at some time: {', '.join(missing) or 'none'}")
        good = good and len(missing) <= EMPTY_ALLOWED
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
