"""TPC-H: 22 stream tables over eight tables, edited and refreshed, equal to Spark's own answer every time.

python -m tests.spark.tpch [--queries 1,3,5] [--scale 0.01] [--seed N] [--cycles 3] [--json FILE]   (make tpch)
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

from spark_trickle import Action, Trickle, TrickleError
from tests.spark.oracle import Bag, answer, stored
from tests.spark.session import start
from tests.spark.tpch_queries import TABLES, queries

T = TypeVar("T")

SHIFT = 1_000_000_000
"""New keys are old keys plus this times the cycle; far above every generated key up to scale 100."""


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


# Edits


class Edits:
    """Seeded statements for the six changing tables, each touching about one row in 150.

    Rows are chosen by key modulo a prime; the residue is random. Values are chosen so that rows enter and
    leave the selective queries too: at scale 0.01 hardly an order has more than 300 pieces by itself.
    """

    def __init__(self, seed: int, scale: float) -> None:
        self._random = random.Random(seed)
        self._customers, self._suppliers = int(150_000 * scale), int(10_000 * scale)

    def batch(self, cycle: int) -> list[str]:
        shift = SHIFT * cycle
        return [
            *self._order_edits(shift),
            *self._line_edits(),
            *self._customer_edits(shift),
            *self._part_edits(shift),
            *self._supplier_edits(shift),
        ]

    def _order_edits(self, shift: int) -> Iterable[str]:
        days, customer = self._random.randint(1, 40), self._number(1, self._customers)
        copied, dropped = self._some("o_orderkey", 173), self._some("o_orderkey", 211)
        yield (
            f"INSERT INTO orders SELECT o_orderkey + {shift}, (o_custkey + {customer}) % {self._customers} + 1, "
            f"o_orderstatus, o_totalprice + {days}.17, date_add(o_orderdate, {days}), o_orderpriority, o_clerk, "
            f"o_shippriority, o_comment FROM orders WHERE {copied} AND o_orderkey < {SHIFT}"
        )
        yield (
            f"INSERT INTO lineitem SELECT l_orderkey + {shift}, l_partkey, l_suppkey, l_linenumber, l_quantity, "
            f"l_extendedprice + {days}.31 * l_linenumber, l_discount, l_tax, l_returnflag, l_linestatus, "
            f"date_add(l_shipdate, {days}), date_add(l_commitdate, {days}), date_add(l_receiptdate, {days}), "
            f"l_shipinstruct, l_shipmode, l_comment "
            f"FROM lineitem WHERE {_of_line(copied)} AND l_orderkey < {SHIFT}"
        )
        yield (
            f"UPDATE orders SET o_custkey = (o_custkey * 7 + {customer}) % {self._customers} + 1 "
            f"WHERE {self._some('o_orderkey', 163)}"
        )
        yield (
            f"UPDATE orders SET o_orderdate = date_add(o_orderdate, {self._number(-60, 60)}), o_orderstatus = 'F', "
            f"o_orderpriority = {self._one_of('1-URGENT', '3-MEDIUM', '5-LOW')} "
            f"WHERE {self._some('o_orderkey', 167)}"
        )
        yield f"DELETE FROM orders WHERE {dropped}"
        yield f"DELETE FROM lineitem WHERE {_of_line(dropped)}"

    def _line_edits(self) -> Iterable[str]:
        yield (
            f"UPDATE lineitem SET l_quantity = 44 + l_linenumber % 7, "
            f"l_extendedprice = l_extendedprice * 1.25 + {self._number(1, 99)}.07 "
            f"WHERE {self._some('l_orderkey', 179)}"
        )
        yield (
            f"UPDATE lineitem SET l_quantity = {self._number(1, 6)}, l_discount = 0.06, l_shipmode = 'AIR', "
            f"l_shipinstruct = 'DELIVER IN PERSON', l_returnflag = 'R' "
            f"WHERE {self._some('(l_orderkey + l_linenumber)', 157)}"
        )
        yield (
            f"UPDATE lineitem SET l_shipdate = date_add(l_shipdate, {self._number(-30, 30)}), "
            f"l_commitdate = date_add(l_commitdate, {self._number(-45, 45)}), l_shipmode = 'MAIL' "
            f"WHERE {self._some('l_orderkey', 181)}"
        )
        yield (
            f"UPDATE lineitem SET l_suppkey = l_suppkey % {self._suppliers} + 1 "
            f"WHERE {self._some('(l_orderkey + l_linenumber)', 191)}"
        )
        yield f"DELETE FROM lineitem WHERE {self._some('(l_orderkey + l_linenumber)', 307)}"

    def _customer_edits(self, shift: int) -> Iterable[str]:
        segment = self._one_of("BUILDING", "MACHINERY")
        nation = f"(c_nationkey + {self._number(1, 24)}) % 25"
        yield (
            f"INSERT INTO customer SELECT c_custkey + {shift}, concat('Customer#', c_custkey + {shift}), c_address, "
            f"c_nationkey, c_phone, c_acctbal + 1000, {segment}, c_comment "
            f"FROM customer WHERE {self._some('c_custkey', 101)} AND c_custkey < {SHIFT}"
        )
        yield (
            f"UPDATE customer SET c_mktsegment = {segment}, c_acctbal = c_acctbal + {self._number(-500, 500)} "
            f"WHERE {self._some('c_custkey', 127)}"
        )
        yield (
            f"UPDATE customer SET c_nationkey = {nation}, "
            f"c_phone = concat({nation} + 10, substring(c_phone, 3)) WHERE {self._some('c_custkey', 131)}"
        )
        yield f"DELETE FROM customer WHERE {self._some('c_custkey', 151)}"

    def _part_edits(self, shift: int) -> Iterable[str]:
        copied, dropped = self._some("p_partkey", 151), self._some("p_partkey", 199)
        brand, container = self._random.choice(
            [("Brand#12", "SM BOX"), ("Brand#23", "MED BOX"), ("Brand#34", "LG CASE")]
        )
        yield (
            f"INSERT INTO part SELECT p_partkey + {shift}, p_name, p_mfgr, p_brand, 'SMALL PLATED BRASS', 15, "
            f"p_container, p_retailprice + 10, p_comment "
            f"FROM part WHERE {copied} AND p_partkey < {SHIFT}"
        )
        yield (
            f"INSERT INTO partsupp SELECT ps_partkey + {shift}, ps_suppkey, ps_availqty, ps_supplycost + 3.33, "
            f"ps_comment FROM partsupp WHERE {_of_supply(copied)} AND ps_partkey < {SHIFT}"
        )
        # Q8, Q17, Q19 and Q20 ask for very few parts: each gets some in every cycle.
        yield (
            f"UPDATE part SET p_brand = 'Brand#23', p_container = 'MED BOX', p_type = 'PROMO PLATED BRASS', p_size = 7 "
            f"WHERE {self._some('p_partkey', 163)}"
        )
        yield (
            f"UPDATE part SET p_brand = '{brand}', p_container = '{container}', p_size = 3 "
            f"WHERE {self._some('p_partkey', 173)}"
        )
        yield (
            f"UPDATE part SET p_name = concat('forest green ', p_name), p_type = 'ECONOMY ANODIZED STEEL' "
            f"WHERE {self._some('p_partkey', 137)}"
        )
        yield f"DELETE FROM part WHERE {dropped}"
        yield f"DELETE FROM partsupp WHERE {_of_supply(dropped)}"
        yield (
            f"UPDATE partsupp SET ps_supplycost = ps_supplycost * 0.5 + {self._number(1, 50)}, "
            f"ps_availqty = ps_availqty + {self._number(-50, 50)} WHERE {self._some('ps_partkey', 167)}"
        )
        yield (
            f"UPDATE partsupp SET ps_suppkey = ps_suppkey % {self._suppliers} + 1 "
            f"WHERE {self._some('(ps_partkey + ps_suppkey)', 227)}"
        )

    def _supplier_edits(self, shift: int) -> Iterable[str]:
        """A hundred rows at scale 0.01, so more than one in 150. Nations are those that Q8, Q20 and Q21 ask for."""
        copied = self._some("s_suppkey", 61)
        yield (
            f"INSERT INTO supplier SELECT s_suppkey + {shift}, concat('Supplier#', s_suppkey + {shift}), s_address, "
            f"7, s_phone, s_acctbal + 20, s_comment FROM supplier WHERE {copied} AND s_suppkey < {SHIFT}"
        )
        yield (
            f"INSERT INTO partsupp SELECT ps_partkey, ps_suppkey + {shift}, ps_availqty + 4000, "
            f"ps_supplycost - 0.07, ps_comment FROM partsupp WHERE {_of_supply(copied)} AND ps_suppkey < {SHIFT} AND ps_partkey % 3 = 0"
        )
        yield (
            f"UPDATE supplier SET s_nationkey = CASE s_suppkey % 3 WHEN 0 THEN 2 WHEN 1 THEN 3 ELSE 20 END, "
            f"s_acctbal = s_acctbal + 111 WHERE {self._some('s_suppkey', 31)}"
        )
        yield (
            f"UPDATE supplier SET s_comment = 'furious Customer, many Complaints', s_address = 'moved' "
            f"WHERE {self._some('s_suppkey', 59)}"
        )
        yield f"DELETE FROM supplier WHERE {self._some('s_suppkey', 79)}"

    def _some(self, key: str, one_in: int) -> str:
        return f"{key} % {one_in} = {self._random.randrange(one_in)}"

    def _number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def _one_of(self, *values: str) -> str:
        return repr(self._random.choice(values))


def _of_line(condition: str) -> str:
    return condition.replace("o_orderkey", "l_orderkey")


def _of_supply(condition: str) -> str:
    return condition.replace("p_partkey", "ps_partkey").replace("s_suppkey", "ps_suppkey")


# The run


def load(trickle: Trickle, folder: Path, scale: float) -> None:
    generator = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run([generator, "parquet", "-q", "-s", str(scale), "-o", folder], check=True)
    for table, schema in TABLES.items():
        trickle.sql(f"CREATE TABLE {table} ({schema}) USING delta")
        trickle.sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(2) */ * FROM parquet.`{folder / table}.parquet`"
        )


def run(trickle: Trickle, runs: list[Run], edits: Edits, cycles: int) -> None:
    """Create every query as a stream table, then edit, refresh and compare; a failure ends only its own query."""
    for one in runs:
        _attempt(one, "create", lambda one=one: _create(trickle, one))
    for cycle in range(1, cycles + 1):
        started = time.monotonic()
        for statement in edits.batch(cycle):
            trickle.sql(statement)
        print(f"cycle {cycle}: edited in {time.monotonic() - started:.0f} s", flush=True)
        for one in runs:
            if not one.errors:
                _attempt(one, f"cycle {cycle}", lambda one=one: _refresh(trickle, one))


def _attempt(one: Run, when: str, step: Callable[[], str]) -> None:
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


def _create(trickle: Trickle, one: Run) -> str:
    one.support = trickle.explain(one.query).support
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
    rows = [("query", "support", "actions", "rows", "changed", "equal", "refresh s", "full s")]
    rows += [_row(one) for one in runs]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()
    for line in [*_remarks(runs), _closing(runs)]:
        print(line)


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


def _as_json(runs: list[Run], options: argparse.Namespace) -> str:
    listed = [{k: v for k, v in asdict(one).items() if k != "held"} for one in runs]
    head = {"seed": options.seed, "scale": options.scale, "cycles": options.cycles}
    return json.dumps({**head, "queries": listed}, indent=2, ensure_ascii=False)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--cycles", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    every = queries(options.scale)
    runs = [Run(n, every[n]) for n in options.queries or every]
    print(
        f"seed {options.seed}, scale {options.scale}, {options.cycles} cycles, {len(runs)} queries",
        flush=True,
    )
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Path(folder))
        with Trickle(spark, home=Path(folder)) as trickle:
            load(trickle, Path(folder) / "generated", options.scale)
            run(trickle, runs, Edits(options.seed, options.scale), options.cycles)
        spark.stop()
    report(runs)
    print(f"seed {options.seed}, {time.monotonic() - started:.0f} s")
    if options.json:
        options.json.write_text(_as_json(runs, options))
    return 0 if all(one.good for one in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
