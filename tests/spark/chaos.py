"""Daemons that are killed while writers commit: every version that was ever committed equals its query.

python -m tests.spark.chaos [--kills 20] [--seed N]      one daemon after the other, each killed by SIGKILL
python -m tests.spark.chaos --two [--far] [--postgres]   two at once, one of them killed
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_trickle import Trickle
from spark_trickle.refresh.verify import verify_table
from spark_trickle.storage.commits import commits_after
from tests.catalog.postgres import find_binaries, started
from tests.spark.session import start

BASES = {
    "orders": "id INT, customer INT, region STRING, amount INT",
    "customers": "id INT, tier STRING",
}
GRAPH = {
    "big": "SELECT id, customer, region, amount FROM orders WHERE amount > 20",
    "small": "SELECT id, customer, region, amount FROM orders WHERE amount <= 20 OR amount IS NULL",
    "sums": "SELECT region, SUM(amount) AS s FROM orders GROUP BY region",
    "counts": "SELECT region, COUNT(*) AS n FROM orders GROUP BY region",
    "averages": "SELECT s.region, s.s, c.n FROM sums s JOIN counts c ON s.region <=> c.region",
    "tiers": "SELECT tier, COUNT(*) AS n FROM customers GROUP BY tier",
    "known": "SELECT o.id, c.tier, o.amount FROM orders o JOIN customers c ON o.customer = c.id",
    "unknown": "SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer)",
    "per_tier": "SELECT tier, SUM(amount) AS s, COUNT(*) AS n FROM known GROUP BY tier",
    "best": "SELECT tier, MAX(amount) AS m FROM known GROUP BY tier",
    "ranked": "SELECT id, tier, RANK() OVER (PARTITION BY tier ORDER BY amount) AS r FROM known",
    "first": "SELECT id, tier FROM ranked WHERE r = 1",
    "spread": "SELECT b.tier, b.m, p.n FROM best b JOIN per_tier p ON b.tier <=> p.tier",
    "both": "SELECT id FROM big UNION ALL SELECT id FROM small",
    "distinct_regions": "SELECT DISTINCT region FROM both_regions",
    "both_regions": "SELECT region FROM big UNION ALL SELECT region FROM small",
    "shares": "SELECT a.region, a.s, d.region IS NULL AS gone FROM averages a LEFT JOIN distinct_regions d ON a.region <=> d.region",
    "loyal": "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer HAVING COUNT(*) > 1",
    "loyal_tiers": "SELECT c.tier, l.customer FROM loyal l LEFT JOIN customers c ON l.customer = c.id",
    "end": "SELECT s.region, s.s, t.n FROM shares s CROSS JOIN tiers t",
}
LEASE = 10
"""Seconds: what a dead daemon had begun is free for others after that."""
ORDER = [
    *(n for n in GRAPH if n not in {"distinct_regions", "shares", "end"}),
    "distinct_regions",
    "shares",
    "end",
]


class Edits:
    """Random commits to the base tables."""

    def __init__(self, trickle: Trickle, seed: int) -> None:
        self._trickle = trickle
        self._random = random.Random(seed)
        self._next = 1
        self.commits = 0

    def create(self) -> None:
        for name, columns in BASES.items():
            self._trickle.sql(f"CREATE TABLE {name} ({columns}) USING delta")
        self._trickle.sql("INSERT INTO customers VALUES (1, 'gold'), (2, 'iron'), (3, NULL)")
        for _ in range(3):
            self.one()

    def one(self) -> None:
        pick = self._random
        values = ", ".join(self._order() for _ in range(pick.randint(1, 4)))
        statement = pick.choice(
            [
                f"INSERT INTO orders VALUES {values}",
                f"INSERT INTO orders VALUES {values}",
                f"DELETE FROM orders WHERE id % 7 = {pick.randrange(7)}",
                f"UPDATE orders SET amount = {pick.randint(0, 60)} WHERE id % 5 = {pick.randrange(5)}",
                f"UPDATE orders SET customer = {pick.randint(1, 5)} WHERE id % 6 = {pick.randrange(6)}",
                f"INSERT INTO customers VALUES ({pick.randint(1, 6)}, '{pick.choice('xyz')}')",
                f"DELETE FROM customers WHERE id = {pick.randint(1, 6)}",
            ]
        )
        self._trickle.sql(statement)
        self.commits += 1

    def _order(self) -> str:
        pick = self._random
        self._next += 1
        region = pick.choice(["'n'", "'s'", "'e'", "NULL"])
        amount = pick.choice([str(pick.randint(0, 60)), "NULL"])
        return f"({self._next}, {pick.randint(1, 5)}, {region}, {amount})"


@dataclass
class Process:
    """A daemon in a process of its own, and what it has said."""

    home: Path
    catalog: str | None = None
    host: str | None = None
    lines: queue.Queue[dict[str, Any]] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        command = [sys.executable, "-m", "tests.spark.daemon_process", str(self.home), "--lease", str(LEASE)]
        if self.catalog:
            command += ["--catalog", self.catalog]
        if self.host:
            command += ["--host", self.host]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            if line.startswith("{"):
                self.lines.put({**json.loads(line), "heard": time.monotonic()})

    def wait_until_ready(self) -> None:
        while True:
            if self.lines.get(timeout=300)["kind"] == "ready":
                return

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()


def create(trickle: Trickle, schedule: str) -> None:
    for name in ORDER:
        trickle.create_stream_table(name, GRAPH[name], schedule)


def check_every_version(trickle: Trickle) -> Counter[str]:
    """Every commit of every stream table against its query at the frontier it carries."""
    found: Counter[str] = Counter()
    for name in GRAPH:
        table = trickle._table(name)
        tables = trickle._runtime.tables
        newest = tables.latest(table.location).version
        sequences = Counter[int]()
        for commit in commits_after(tables, table.location, -1, newest):
            if commit.stamp is None:
                continue
            sequences[commit.stamp.sequence] += 1
            prepared = trickle._runtime.definitions.of(table)
            result = verify_table(table, commit.version, commit.stamp.frontier, prepared, trickle._runtime)
            found["equal" if result.equal else "DIFFERENT"] += 1
            if not result.equal:
                print(f"{name} version {commit.version} differs: {result}", flush=True)
        twice = {number: count for number, count in sequences.items() if count > 1}
        found["done twice"] += len(twice)
        missing = set(range(1, max(sequences) + 1)) - set(sequences)
        found["numbers missing"] += len(missing)
    return found


def catch_up(trickle: Trickle) -> Counter[str]:
    """Refresh whatever is behind, without the daemon, and compare with the sources as they are now."""
    found: Counter[str] = Counter()
    for name in ORDER:
        found[trickle.refresh_stream_table(name).action.value] += 1
        found["right in the end" if trickle.verify(name).equal else "WRONG IN THE END"] += 1
    return found


def chaos(trickle: Trickle, home: Path, kills: int, seed: int) -> bool:
    pick, edits = random.Random(seed), Edits(trickle, seed)
    edits.create()
    create(trickle, "6s")
    events: Counter[str] = Counter()
    for number in range(1, kills + 1):
        daemon = Process(home)
        daemon.wait_until_ready()
        heard = until_at_work(daemon, edits, pick.choice([0, 1, 3, 10, 25, 40]))
        end = time.monotonic() + pick.uniform(0, 4)
        while time.monotonic() < end:
            edits.one()
        daemon.kill()
        for told in [*heard, *drained(daemon)]:
            events[f"{told['kind']} {told.get('action', '')}".strip()] += 1
            if told["kind"] == "failed":
                print(told["name"], told["why"], flush=True)
        print(f"kill {number}: {dict(events)}, {edits.commits} commits", flush=True)
    ended = catch_up(trickle)
    versions = check_every_version(trickle)
    history = Counter(trickle.refresh_history()["status"])
    print(f"{edits.commits} commits by the writer; history: {dict(history)}")
    print(f"in the end: {dict(ended)}; all versions: {dict(versions)}")
    return good(ended, versions) and "RUNNING" not in history


def until_at_work(daemon: Process, edits: Edits, refreshes: int) -> list[dict[str, Any]]:
    """Goes on writing until a daemon has begun, and has done so many refreshes; returns what it said so far."""
    heard: list[dict[str, Any]] = []
    end = time.monotonic() + 90
    while time.monotonic() < end:
        edits.one()
        heard += drained(daemon)
        kinds = Counter(told["kind"] for told in heard)
        if kinds["started"] and kinds["refreshed"] >= refreshes:
            break
    return heard


def two(trickle: Trickle, home: Path, catalog: str | None, seed: int, *, far: bool) -> bool:
    """On one machine the dead process is seen at once; of a far one only the end of its leases tells."""
    edits = Edits(trickle, seed)
    edits.create()
    create(trickle, "30s")  # so that two cores suffice, and who waits, waits for a lease
    daemons = [Process(home, catalog, "far" if far else None), Process(home, catalog)]
    for daemon in daemons:
        daemon.wait_until_ready()
    enough = threading.Event()
    writer = threading.Thread(target=edit_until, args=(edits, enough))
    writer.start()
    time.sleep(60)
    killed, left = daemons
    heard: list[dict[str, Any]] = []
    first: list[dict[str, Any]] = []
    # The other one with free workers: whoever waits then waits for a lease. And well under way.
    since = time.monotonic()
    while time.monotonic() < since + 1:
        time.sleep(0.05)
        heard += drained(killed)
        first += drained(left)
        if not unfinished(heard) or len(unfinished(first)) > 2:
            since = time.monotonic()
    began = time.monotonic()
    killed.kill()
    cut_short = unfinished([*heard, *drained(killed)])
    enough.set()
    writer.join()
    taken: dict[str, float] = {}
    ended: dict[str, float] = {}
    # No edits now: what is measured is the wait for a lease, not for others' work.
    while time.monotonic() < began + 90 and not cut_short <= ended.keys():
        time.sleep(0.1)
        for told in drained(left):
            first.append(told)
            if told["kind"] in {"started", "refreshed"} and told["name"] in cut_short:
                times = taken if told["kind"] == "started" else ended
                times.setdefault(told["name"], round(told["heard"] - began, 1))
    time.sleep(12)
    left.kill()
    shares = Counter(t["kind"] for t in first)
    print(
        f"at work when killed: {sorted(cut_short)}; taken over after {taken} s, refreshed after {ended} s; "
        f"the other one: {dict(shares)}"
    )
    found, versions = catch_up(trickle), check_every_version(trickle)
    print(f"{edits.commits} commits; in the end: {dict(found)}; all versions: {dict(versions)}")
    in_time = all(seconds < 2 * LEASE for seconds in taken.values())
    return good(found, versions) and cut_short <= ended.keys() and in_time


def edit_until(edits: Edits, enough: threading.Event) -> None:
    while not enough.wait(1):
        edits.one()


def unfinished(heard: list[dict[str, Any]]) -> set[str]:
    """What a daemon had begun and not ended."""
    open_ones: set[str] = set()
    for told in heard:
        if told["kind"] == "started":
            open_ones.add(told["name"])
        elif "name" in told and told["kind"] in {"refreshed", "skipped", "failed"}:
            open_ones.discard(told["name"])
    return open_ones


def drained(process: Process) -> Iterator[dict[str, Any]]:
    while True:
        try:
            yield process.lines.get_nowait()
        except queue.Empty:
            return


def good(ended: Counter[str], versions: Counter[str]) -> bool:
    bad = (
        ended["WRONG IN THE END"]
        + versions["DIFFERENT"]
        + versions["done twice"]
        + versions["numbers missing"]
    )
    return not bad


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--two", action="store_true")
    parser.add_argument("--far", action="store_true", help="the killed one is on another machine, as it says")
    parser.add_argument("--catalog", help="the URL of a database")
    parser.add_argument(
        "--postgres", action="store_true", help="a PostgreSQL server of its own as the catalog"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        if options.postgres:
            binaries = find_binaries()
            assert binaries, "PostgreSQL is not installed"
            server = started(binaries)
            stack.callback(server.stop)
            options.catalog = server.fresh_database()
        return run(options)


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        spark = start(home)
        with Trickle(spark, home=home, catalog=options.catalog) as trickle:
            fine = (
                two(trickle, home, options.catalog, options.seed, far=options.far)
                if options.two
                else chaos(trickle, home, options.kills, options.seed)
            )
        spark.stop()
    print("fine" if fine else "NOT FINE")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
