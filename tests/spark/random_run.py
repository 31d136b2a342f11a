"""Random queries against random edits, equal to Spark's own answer and to their rewrites.

python -m tests.spark.random_run [--seed N] [--queries 500] [--cycles 3] [--break join|per_key|lookup]

Query i of a run is `generate(1000 * seed + i)`. `--break`: see `breaks`.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from spark_trickle import Trickle
from tests.spark.breaks import add_option, break_rule, exit_code
from tests.spark.random_ast import Query, sql
from tests.spark.random_metamorphic import delete_and_insert, merged, variants
from tests.spark.random_queries import generate
from tests.spark.random_regressions import FOLDER, Case
from tests.spark.random_replay import Edit, Watched, replay, unchanged
from tests.spark.random_shrink import shrink
from tests.spark.session import as_in_production, start
from tests.spark.shapes import TABLES, Edits

GROUP = 20
REWRITTEN = 5
"""One query in so many is also run in another form, and with its edits in another form."""


@dataclass
class Summary:
    queries: int = 0
    rewrites: int = 0
    changed: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    support: Counter[str] = field(default_factory=Counter)
    recomputed: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def add(self, watched: Watched) -> None:
        self.actions.update(watched.actions)
        self.changed += watched.changed
        support, _, reason = watched.support.partition(": ")
        self.support[support or "not created"] += 1
        if support == "recomputed":
            self.recomputed[re.sub(r".* depends on `[^`]+`", "… depends on …", reason)] += 1


@dataclass(frozen=True)
class Run:
    trickle: Trickle
    seed: int
    cycles: int
    folder: Path
    """Where regression files go."""
    most_shrunk: int = 5
    summary: Summary = field(default_factory=Summary)

    def group(self, number: int, seeds: Sequence[int]) -> None:
        """Some queries and their rewrites in one database, then some of them again with rewritten edits."""
        edits = Edits(self.seed * 1000 + number)
        initial = [edits.initial(table) for table in TABLES]
        batches = [edits.batch() for _ in range(self.cycles)]
        trees = {f"seed_{seed}": generate(seed) for seed in seeds}
        chosen = list(trees)[number % REWRITTEN :: REWRITTEN]
        rewrites = {f"{name}_{how}": (name, t) for name in chosen for how, t in variants(trees[name]).items()}
        every = trees | {name: tree for name, (_, tree) in rewrites.items()}
        watched = dict(zip(every, self._replay(initial, batches, every.values()), strict=True))
        again, twins = self._edited_otherwise(initial, batches, {name: trees[name] for name in chosen})
        self.summary.queries += len(trees)
        self.summary.rewrites += len(rewrites) + len(twins)
        for name, one in watched.items():
            self._judge(Case(name, one.query, initial, batches), every[name], one)
        for name, (original, _) in rewrites.items():
            self._same(Case(name, watched[name].query, initial, batches), watched[original], watched[name])
        for name, twin in twins.items():
            case = Case(f"{name}_edits", twin.query, initial, again)
            self._judge(case, trees[name], twin)
            self._same(case, watched[name], twin)

    def _edited_otherwise(
        self, initial: list[str], batches: list[list[str]], trees: dict[str, Query]
    ) -> tuple[list[list[str]], dict[str, Watched]]:
        """DELETE and INSERT for UPDATE, one refresh for two; the statements that were run, and what came of it."""
        executed: list[list[str]] = []

        def rewrite(statement: str) -> list[str]:
            executed.append(delete_and_insert(statement, lambda query: self.trickle.sql(query).collect()))
            return executed[-1]

        fewer = merged(batches)
        twins = dict(zip(trees, self._replay(initial, fewer, trees.values(), rewrite), strict=True))
        statements = iter(executed)
        return [[s for _ in batch for s in next(statements)] for batch in fewer], twins

    def _replay(
        self, initial: list[str], batches: list[list[str]], trees: Iterable[Query], edit: Edit = unchanged
    ) -> list[Watched]:
        return replay(self.trickle, initial, batches, list(map(sql, trees)), edit)

    def _judge(self, case: Case, tree: Query, watched: Watched) -> None:
        self.summary.add(watched)
        failure = watched.failure
        if failure is None:
            return
        told = f"{failure.kind} {failure.code} after {failure.batch} batches: {failure.detail}"
        if not failure.is_finding:
            self.summary.refused.append(f"{case.name}: {told[:600]}\n  {case.query}")
            return
        print(f"{case.name}: {told[:2000]}\n  {case.query}", flush=True)
        case = replace(case, batches=case.batches[: failure.batch], why=told[:600])

        def fails(smaller: Case, queries: Sequence[str]) -> list[bool]:
            tried = replay(self.trickle, smaller.initial, smaller.batches, queries)
            return [failure.resembles(one.failure) for one in tried]

        if len(self.summary.findings) < self.most_shrunk and fails(case, [case.query])[0]:
            case = shrink(tree, case, fails)
        self._report(case)

    def _same(self, case: Case, one: Watched, other: Watched) -> None:
        """Two forms of one query hold the same after the last batch."""
        if one.failure is None and other.failure is None and one.held[-1] != other.held[-1]:
            self._report(replace(case, why=f"differs from {one.query}"))

    def _report(self, case: Case) -> None:
        lines = [case.name, case.why, case.query, *case.initial, *(f"{batch}" for batch in case.batches)]
        self.summary.findings.append("\n  ".join(lines))
        print("\n  ".join(lines), f"\n  -> {case.save(self.folder)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--cycles", type=int, default=3)
    add_option(parser)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.queries} queries, {options.cycles} cycles", flush=True)
    break_rule(options)
    with tempfile.TemporaryDirectory() as home:
        spark = start(Path(home))
        with Trickle(spark, home=Path(home)) as trickle:
            folder, most = (Path(home) / "broken", 1) if options.broken else (FOLDER, 5)
            task = Run(trickle, options.seed, options.cycles, folder, most)
            summary = run(task, options.queries, bool(options.broken))
        spark.stop()
    sys.exit(exit_code(options, found=bool(summary.findings)))


def run(task: Run, queries: int, until_found: bool = False) -> Summary:
    """All groups, or with `until_found` those up to the first finding."""
    started, summary = time.monotonic(), task.summary
    groups = range(0, queries, GROUP)
    for number, first in enumerate(groups):
        seeds = [1000 * task.seed + i for i in range(first, min(first + GROUP, queries))]
        with as_in_production(task.trickle) if number % 2 else nullcontext():
            task.group(number, seeds)
        seconds = time.monotonic() - started
        print(
            f"group {number + 1}/{len(groups)}: {dict(summary.actions)}, {len(summary.refused)} refused, "
            f"{len(summary.findings)} findings, {seconds:.0f} s",
            flush=True,
        )
        if until_found and summary.findings:
            break
    for refused in summary.refused:
        print(f"refused by Spark: {refused}")
    for reason, number in summary.recomputed.most_common():
        print(f"recomputed {number} times: {reason}")
    print(
        f"{summary.queries} queries and {summary.rewrites} rewrites, {summary.actions.total()} refreshes: "
        f"{summary.changed} changed the answer; "
        f"{dict(summary.actions)}; {dict(summary.support)}; {len(summary.refused)} refused, "
        f"{len(summary.findings)} findings, {time.monotonic() - started:.0f} s"
    )
    return summary


if __name__ == "__main__":
    main()
