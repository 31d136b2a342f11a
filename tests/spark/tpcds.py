"""TPC-DS: 99 stream tables over 24 tiny tables, edited and refreshed, equal to Spark's own answer every time.

python -m tests.spark.tpcds [--queries 1,3] [--seed N] [--cycles 3] [--json FILE] [--without-limit] [--analyse-only]

In reading order: tpcds_schema (tables and texts, from DuckDB), tpcds_queries (in Spark's words), tpcds_rows,
tpcds_people, tpcds_things and tpcds_dimensions (small tables), tpcds_stories and tpcds_facts (large ones),
tpcds_data (files), tpcds_edits, and tpcds_check, which tells without Spark whether every query has an answer.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from spark_trickle import Action, Trickle
from tests.spark import tpcds_data
from tests.spark.breaks import add_option, break_rule, exit_code
from tests.spark.session import start
from tests.spark.tpc_runs import Run, analyse, as_json, attempt, print_table, report, run
from tests.spark.tpcds_edits import Edits
from tests.spark.tpcds_queries import queries
from tests.spark.tpcds_schema import spark_columns, tables


def create_tables(trickle: Trickle) -> None:
    for table, columns in tables().items():
        trickle.sql(f"CREATE TABLE {table} ({spark_columns(columns)}) USING delta")


def load(trickle: Trickle, folder: Path, seed: int) -> None:
    tpcds_data.write(tpcds_data.generate(seed), folder)
    for table in tables():
        trickle.sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM parquet.`{folder / table}.parquet`"
        )


_MAINTAINED = {
    # By the first word of the change plan.
    "add": "by weight",
    "replace": "by key",
    "merge": "as first rows",
    "derive": "by iteration",
    "apply": "recomputed",
}


def report_analysis(runs: list[Run]) -> None:
    rows = [("query", "support", "maintained", "reason or error")]
    for one in runs:
        how = _MAINTAINED.get(one.maintained.split(" ")[0], one.maintained)
        rows.append((one.name, _support(one), how, "; ".join(one.errors) or _reasons(one)))
    print_table(rows)
    for line in [*_not_incremental(runs), *_analysed(runs)]:
        print(line)


def _support(one: Run) -> str:
    return one.support.partition(": ")[0] or "failed"


def _reasons(one: Run) -> str:
    """Each reason once; where in the text it stands is left out."""
    reasons = re.sub(r" \(line \d+, column \d+\)", "", one.support.partition(": ")[2])
    return "; ".join(sorted(set(reasons.split("; ")))) if reasons else ""


def _not_incremental(runs: list[Run]) -> Iterable[str]:
    why: dict[str, list[str]] = {}
    for one in runs:
        if _support(one) in {"recomputed", "partly recomputed"}:
            why.setdefault(f"{_support(one)}, because {_reasons(one)}", []).append(one.name)
    yield from (f"{reason}: {', '.join(names)}" for reason, names in sorted(why.items()))


def _analysed(runs: list[Run]) -> Iterable[str]:
    kinds: dict[str, list[str]] = {}
    for one in runs:
        kinds.setdefault(_support(one), []).append(one.name)
    yield f"{sum(bool(one.support) for one in runs)} of {len(runs)} queries analysed"
    yield from (f"{kind}: {len(names)}" for kind, names in sorted(kinds.items()))


def _summary(runs: list[Run]) -> Iterable[str]:
    """What a reader of many rows wants to know first."""
    refreshed = [one for one in runs if one.refreshes]
    differential = [one for one in refreshed if all(r.action != Action.FULL for r in one.refreshes)]
    with_rows = [one for one in refreshed if one.rows_before and all(r.rows for r in one.refreshes)]
    changed = [one for one in refreshed if all(r.changed for r in one.refreshes)]
    yield from _analysed(runs)
    yield f"never FULL: {len(differential)} of {len(runs)}"
    yield f"with rows before and after every cycle: {len(with_rows)} of {len(runs)}"
    yield f"changed by every cycle: {len(changed)} of {len(runs)}"
    yield f"equal to Spark's answer throughout: {sum(one.good for one in refreshed)} of {len(runs)}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cycles", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--without-limit", action="store_true", help="leave out a LIMIT at the end of a query"
    )
    parser.add_argument("--analyse-only", action="store_true", help="only tell how each query is maintained")
    add_option(parser)
    return parser.parse_args()


def main() -> int:
    options = _options()
    every = queries(options.without_limit)
    runs = [Run(n, every[n]) for n in options.queries or every]
    print(f"seed {options.seed}, {options.cycles} cycles, {len(runs)} queries", flush=True)
    break_rule(options)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Path(folder))
        with Trickle(spark, home=Path(folder)) as trickle:
            create_tables(trickle)
            if options.analyse_only:
                for one in runs:
                    attempt(one, "analyse", partial(analyse, trickle, one))
            else:
                load(trickle, Path(folder) / "generated", options.seed)
                run(trickle, runs, Edits(options.seed), options.cycles)
        spark.stop()
    if options.analyse_only:
        report_analysis(runs)
    else:
        report(runs)
        print(*_not_incremental(runs), *_summary(runs), sep="\n")
    print(f"seed {options.seed}, {time.monotonic() - started:.0f} s")
    if options.json:
        head = {name: getattr(options, name) for name in ("seed", "cycles", "without_limit", "analyse_only")}
        options.json.write_text(as_json(runs, head))
    return exit_code(options, found=not all(one.good for one in runs))


if __name__ == "__main__":
    sys.exit(main())
