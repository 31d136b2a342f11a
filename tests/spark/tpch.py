"""TPC-H: 22 stream tables over eight tables, edited and refreshed, equal to Spark's own answer every time.

python -m tests.spark.tpch [--queries 1,3,5] [--scale 0.01] [--seed N] [--cycles 3] [--json FILE]   (make tpch)
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from spark_trickle import Trickle
from tests.spark.breaks import add_option, break_rule, exit_code
from tests.spark.session import start
from tests.spark.tpc_runs import Run, as_json, report, run
from tests.spark.tpch_queries import TABLES, queries

SHIFT = 1_000_000_000
"""New keys are old keys plus this times the cycle; far above every generated key up to scale 100."""


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


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--cycles", type=int, default=3)
    parser.add_argument("--json", type=Path)
    add_option(parser)
    options = parser.parse_args()
    every = queries(options.scale)
    runs = [Run(n, every[n]) for n in options.queries or every]
    print(
        f"seed {options.seed}, scale {options.scale}, {options.cycles} cycles, {len(runs)} queries",
        flush=True,
    )
    break_rule(options)
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
        head = {"seed": options.seed, "scale": options.scale, "cycles": options.cycles}
        options.json.write_text(as_json(runs, head))
    return exit_code(options, found=not all(one.good for one in runs))


if __name__ == "__main__":
    sys.exit(main())
