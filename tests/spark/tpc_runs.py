"""Stream tables over a benchmark's tables, edited and refreshed, compared with Spark's own answer every time.

What TPC-H and TPC-DS share: create all queries, edit, refresh and compare, and report.
"""

from __future__ import annotations

import json
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from spark_trickle import Action, Trickle, TrickleError
from tests.spark.oracle import Bag, answer, stored

T = TypeVar("T")


class Edits(Protocol):
    """Seeded statements, a batch for each cycle."""

    def batch(self, cycle: int) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Refreshed:
    """One refresh of one stream table, and how it compares with the full answer."""

    action: str
    reason: str
    rows_inserted: int
    rows_deleted: int
    rows: int
    changed: bool
    """Did the answer itself change? A refresh that had nothing to do proves little."""
    equal: bool
    difference: str
    refresh_seconds: float
    answer_seconds: float


@dataclass
class Run:
    """All that happened to one query."""

    number: int
    query: str
    support: str = ""
    maintained: str = ""
    """How, in the first words of the change plan."""
    rows_before: int = 0
    refreshes: list[Refreshed] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    held: Bag = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return f"q{self.number}"

    @property
    def good(self) -> bool:
        return not self.errors and all(r.equal for r in self.refreshes)


def run(trickle: Trickle, runs: list[Run], edits: Edits, cycles: int) -> None:
    """Create every query as a stream table, then edit, refresh and compare; a failure ends only its own query."""
    for one in runs:
        attempt(one, "create", partial(_create, trickle, one))
    for cycle in range(1, cycles + 1):
        started = time.monotonic()
        for statement in edits.batch(cycle):
            trickle.sql(statement)
        print(f"cycle {cycle}: edited in {time.monotonic() - started:.0f} s", flush=True)
        for one in runs:
            if not one.errors:
                attempt(one, f"cycle {cycle}", partial(_refresh, trickle, one))


def attempt(one: Run, when: str, step: Callable[[], str]) -> None:
    """Take a step of a query, and keep what goes wrong as its error."""
    try:
        print(f"{when}: {one.name} {step()}", flush=True)
    except Exception as error:
        code = f"{error.code}: {error.message}" if isinstance(error, TrickleError) else repr(error)
        one.errors.append(f"{when}: {code} ({_place(error)})")
        print(f"{when}: {one.name} FAILED, {code}", flush=True)


def _place(error: BaseException) -> str:
    """The innermost line of the library that the error passed; that of its cause, if it was translated."""
    frames = traceback.extract_tb((error.__cause__ or error).__traceback__)
    own = [f for f in frames if "spark_trickle" in f.filename]
    return f"{Path(own[-1].filename).name}, line {own[-1].lineno}" if own else "outside the library"


def analyse(trickle: Trickle, one: Run) -> str:
    """Ask how the query would be maintained; nothing is created."""
    explanation = trickle.explain(one.query)
    one.support, one.maintained = explanation.support, explanation.change_plan.split("\n")[0].rstrip(":")
    return one.support


def _create(trickle: Trickle, one: Run) -> str:
    analyse(trickle, one)
    _, seconds = _timed(lambda: trickle.create_stream_table(one.name, one.query, refresh_mode="AUTO"))
    one.held = stored(trickle, one.name)
    one.rows_before = one.held.total()
    full = answer(trickle, one.name, one.query)
    if one.held != full:
        one.errors.append(f"create: {_difference(one.held, full)}")
    return f"{one.rows_before} rows in {seconds:.1f} s, {one.support}"


def _refresh(trickle: Trickle, one: Run) -> str:
    result, refresh_seconds = _timed(lambda: trickle.refresh_stream_table(one.name))
    now = stored(trickle, one.name)
    full, answer_seconds = _timed(lambda: answer(trickle, one.name, one.query))
    refreshed = Refreshed(
        result.action.value,
        result.reason,
        result.rows_inserted,
        result.rows_deleted,
        full.total(),
        full != one.held,
        now == full,
        _difference(now, full),
        round(refresh_seconds, 3),
        round(answer_seconds, 3),
    )
    one.refreshes.append(refreshed)
    one.held = full
    verdict = "equal" if refreshed.equal else f"NOT EQUAL, {refreshed.difference}"
    return (
        f"{refreshed.action} +{refreshed.rows_inserted} −{refreshed.rows_deleted} of {refreshed.rows} rows, "
        f"{verdict}, refresh {refresh_seconds:.1f} s, full answer {answer_seconds:.1f} s"
    )


def _timed(step: Callable[[], T]) -> tuple[T, float]:
    started = time.monotonic()
    result = step()
    return result, time.monotonic() - started


def _difference(now: Bag, full: Bag) -> str:
    """A few rows of either side are enough to see what is wrong."""
    missing, unexpected = full - now, now - full
    if not missing and not unexpected:
        return ""
    few = [list(side.items())[:3] for side in (missing, unexpected)]
    return f"{missing.total()} missing {few[0]}, {unexpected.total()} unexpected {few[1]}"


# The report


def report(runs: list[Run]) -> None:
    head = ("query", "support", "actions", "rows", "changed", "equal", "refresh s", "full s")
    print_table([head, *(_row(one) for one in runs)])
    for line in [*_remarks(runs), _closing(runs)]:
        print(line)


def print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()


def _remarks(runs: list[Run]) -> Iterable[str]:
    """What the table has no room for."""
    for one in runs:
        if ":" in one.support:
            yield f"{one.name} is {one.support}"
        yield from (f"{one.name} FAILED at {error}" for error in one.errors)
        yield from (f"{one.name} DIFFERS: {r.difference}" for r in one.refreshes if r.difference)
        if one.refreshes and not any(r.changed for r in one.refreshes):
            what = "empty" if not one.held else "the same"
            yield f"{one.name} was always {what}: it proves little"


def _closing(runs: list[Run]) -> str:
    refreshes = [(one, r) for one in runs for r in one.refreshes]
    differential = [one.name for one, r in refreshes if r.action == Action.DIFFERENTIAL]
    why: dict[str, list[str]] = {}
    for one, r in refreshes:
        if r.action != Action.DIFFERENTIAL:
            # "`a`, `b` changed and LIMIT needs all rows": which tables changed differs from query to query.
            named = why.setdefault(f"{r.action}, because {r.reason.rpartition(' changed and ')[2]}", [])
            named += [one.name] if one.name not in named else []
    others = "".join(f"; {', '.join(names)} {reason}" for reason, names in why.items())
    return (
        f"{len(set(differential))} of {len(runs)} queries and {len(differential)} of {len(refreshes)} refreshes "
        f"were DIFFERENTIAL{others}"
    )


def _row(one: Run) -> tuple[str, ...]:
    actions = Counter(r.action for r in one.refreshes)
    counts = [one.rows_before, *(r.rows for r in one.refreshes)]
    times = max(len(one.refreshes), 1)
    return (
        one.name,
        one.support.partition(":")[0],
        ", ".join(f"{n} {action}" for action, n in actions.items()) or "none",
        " → ".join(map(str, counts)),
        f"{sum(r.changed for r in one.refreshes)}×",
        "yes" if one.good else "failed" if one.errors else "NO",
        f"{sum(r.refresh_seconds for r in one.refreshes) / times:.1f}",
        f"{sum(r.answer_seconds for r in one.refreshes) / times:.1f}",
    )


def as_json(runs: list[Run], head: dict[str, object]) -> str:
    listed = [{k: v for k, v in asdict(one).items() if k != "held"} for one in runs]
    return json.dumps({**head, "queries": listed}, indent=2, ensure_ascii=False)
