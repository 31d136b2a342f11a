"""The daemon on real tables: what is due is refreshed, in order, at one set of versions, whatever fails beside it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from spark_trickle import Settings, Trickle
from spark_trickle.refresh.graph import read_graph
from spark_trickle.refresh.runtime import lease_on, refreshing_together
from spark_trickle.scheduler.daemon import Daemon
from spark_trickle.scheduler.due import Job
from spark_trickle.scheduler.events import Event, Webhook
from spark_trickle.storage import tidy as storage_tidy
from spark_trickle.storage.commits import read_commit, version_at
from tests.spark.oracle import answer, stored

START = datetime(2026, 1, 1, tzinfo=UTC)
DIAMOND = {
    "by_sum": ("SELECT region, SUM(amount) AS s FROM orders GROUP BY region", "DOWNSTREAM"),
    "by_count": ("SELECT region, COUNT(*) AS n FROM orders GROUP BY region", "2m"),
    "average": ("SELECT b.region, b.s / c.n AS a FROM by_sum b JOIN by_count c ON b.region = c.region", "1m"),
}


class Watched:
    """A daemon whose clock stands still until it is moved, and what it told."""

    def __init__(self, trickle: Trickle) -> None:
        self.now = START
        self.events: list[Event] = []
        self.trickle = trickle
        trickle._clock = trickle._runtime.clock = lambda: self.now
        self.daemon = Daemon(trickle._runtime, self.events.append)

    def after(self, seconds: float) -> list[str]:
        """Let time pass, tick, wait until all is done: what was told meanwhile, as `kind name`."""
        self.now += timedelta(seconds=seconds)
        told = len(self.events)
        self.daemon.tick()
        until(lambda: not self.daemon.waiting and not self.daemon.running)
        ended = [e for e in self.events[told:] if e.kind not in {"started", "stale"}]
        return [f"{e.kind} {e.name.rpartition('.')[2]}" for e in ended]


def until(done: Callable[[], bool], seconds: float = 120) -> None:
    limit = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < limit, "it takes too long"
        time.sleep(0.02)


@pytest.fixture
def watched(own: Trickle) -> Watched:
    trickle = own
    trickle.sql("CREATE TABLE orders (id INT, region STRING, amount INT) USING delta")
    trickle.sql("INSERT INTO orders VALUES (1, 'n', 10), (2, 'n', 30), (3, 's', 5)")
    watched = Watched(trickle)
    for name, (query, schedule) in DIAMOND.items():
        trickle.create_stream_table(name, query, schedule)
    return watched


def test_what_is_due_is_refreshed_in_order_and_nothing_else(watched: Watched) -> None:
    trickle = watched.trickle
    assert watched.after(1) == []
    trickle.sql("INSERT INTO orders VALUES (4, 's', 15)")
    told = watched.after(24)
    assert told[-1] == "refreshed average"
    assert sorted(told[:-1]) == ["refreshed by_count", "refreshed by_sum"]
    assert watched.after(1) == []
    for name, (query, _) in DIAMOND.items():
        assert stored(trickle, name) == answer(trickle, name, query)
    frontiers = [trickle._table(name).frontier for name in DIAMOND]
    orders = f"spark_catalog.{trickle._table('average').database_name}.orders"
    assert len({frontier.bases[orders] for frontier in frontiers if frontier}) == 1


def test_a_failure_does_not_mix_versions_and_suspends_only_its_table(watched: Watched) -> None:
    trickle = watched.trickle
    trickle.create_stream_table("alone", "SELECT id FROM orders", "1m")
    trickle.create_stream_table("fragile", "SELECT id, 100 / amount AS x FROM orders", "1m")
    before = stored(trickle, "average")
    trickle.sql("INSERT INTO orders VALUES (4, 's', 0)")
    told = watched.after(24)
    assert "failed fragile" in told
    assert "refreshed alone" in told
    assert "refreshed average" in told
    assert stored(trickle, "average") != before
    assert watched.after(0.5) == []
    assert watched.after(1) == ["failed fragile"]
    assert sorted(watched.after(2)) == ["failed fragile", "suspended fragile"]
    assert trickle._table("fragile").status == "SUSPENDED"
    assert watched.after(3600)
    trickle.sql("DELETE FROM orders WHERE amount = 0")
    trickle.resume("fragile")
    assert "refreshed fragile" in watched.after(60)
    assert trickle.verify("fragile").equal


def test_a_new_commit_wakes_a_table_on_change(watched: Watched) -> None:
    trickle = watched.trickle
    trickle.create_stream_table("awake", "SELECT id FROM orders", "ON CHANGE")
    assert watched.after(3) == []
    trickle.sql("INSERT INTO orders VALUES (9, 'e', 1)")
    assert watched.after(3) == ["refreshed awake"]
    assert watched.after(3) == []


def test_many_small_files_become_one_and_nobody_notices(watched: Watched) -> None:
    trickle = watched.trickle
    runtime = trickle._runtime
    runtime.settings = replace(runtime.settings, tidy_files=3)
    trickle.create_stream_table("copy", "SELECT id, amount FROM orders", "1m")
    trickle.create_stream_table("reader", "SELECT SUM(amount) AS s FROM copy", "1m")
    told = []
    for number in range(4):
        trickle.sql(f"INSERT INTO orders VALUES ({10 + number}, 'w', {number})")
        told += watched.after(60)
        for name in ("copy", "reader"):
            assert trickle.verify(name).equal
    assert "tidied copy" in told
    files = runtime.tables.latest_snapshot(trickle._table("copy").location).by_content
    assert len(files) < 4
    operations = [row["operation"] for row in trickle.sql("DESCRIBE HISTORY copy").collect()]
    assert "OPTIMIZE" in operations
    actions = list(trickle.refresh_history("reader")["action"])
    assert actions.count("FULL") == 1
    assert set(actions) <= {"FULL", "DIFFERENTIAL", "NO_DATA"}


def test_files_in_which_a_key_may_lie_anywhere_are_sorted_and_nobody_notices(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    trickle = watched.trickle
    monkeypatch.setattr(storage_tidy, "_SMALL", 0)
    trickle.create_stream_table("copy", "SELECT id, amount FROM orders", "1m")
    trickle.create_stream_table("by_id", "SELECT id, SUM(amount) AS s FROM copy GROUP BY id", "1m")
    trickle.create_stream_table("anew", "SELECT id, amount FROM orders", "1m", "FULL")
    told = []
    for number in range(4):
        trickle.sql(f"INSERT INTO orders VALUES ({100 + number}, 'w', 1), ({-100 - number}, 'w', 1)")
        told += watched.after(60)
        for name in ("copy", "by_id"):
            assert trickle.verify(name).equal
    assert {"tidied copy", "tidied by_id"} <= {*told}
    assert "tidied anew" not in told
    for name in ("copy", "by_id"):
        rows = trickle.sql(f"DESCRIBE HISTORY {name}").collect()
        orders = [row["operationParameters"]["zOrderBy"] for row in rows if row["operation"] == "OPTIMIZE"]
        assert {*orders} == {'["id"]'}
        assert set(trickle.refresh_history(name)["action"]) <= {"FULL", "DIFFERENTIAL", "NO_DATA"}
        assert list(trickle.refresh_history(name)["action"]).count("FULL") == 1


def test_it_runs_by_itself_until_it_is_told_to_stop(own: Trickle) -> None:
    own.sql("CREATE TABLE t (id INT) USING delta")
    quick = Trickle(own.spark, home=own._home, settings=Settings(min_schedule_seconds=1))
    quick.create_stream_table("copy", "SELECT id FROM t", "6s")
    stop, events = threading.Event(), list[Event]()
    thread = threading.Thread(target=quick.run, args=(stop, events.append))
    thread.start()
    try:
        own.sql("INSERT INTO t VALUES (1)")
        until(lambda: own.spark.table("copy").count() == 1, 60)
    finally:
        stop.set()
        thread.join(60)
        quick.close()
    assert not thread.is_alive()
    assert {e.kind for e in events} <= {"started", "refreshed", "stale"}


def test_a_diamond_shows_the_old_or_the_new_answer_and_never_a_mixture(watched: Watched) -> None:
    """One side fails, is tried again, is suspended, and comes back; the other side goes on all the time."""
    trickle = watched.trickle
    trickle.create_stream_table(
        "inverse", "SELECT region, SUM(100 DIV amount) AS q FROM orders GROUP BY region", "2m"
    )
    query = "SELECT b.region, b.s, c.q FROM by_sum b JOIN inverse c ON b.region = c.region"
    trickle.create_stream_table("end", query, "1m")
    before = stored(trickle, "end")
    trickle.sql("INSERT INTO orders VALUES (4, 's', 0)")
    for seconds in (24, 1, 2, 4, 24, 300, 3600):
        watched.after(seconds)
        assert stored(trickle, "end") == before
        assert trickle.verify("end").equal
    assert trickle._table("inverse").status == "SUSPENDED"
    assert trickle._table("end").status != "SUSPENDED"
    assert stored(trickle, "by_sum") == answer(trickle, "by_sum", DIAMOND["by_sum"][0])
    trickle.sql("UPDATE orders SET amount = 20 WHERE id = 4")
    trickle.resume("inverse")
    watched.after(3600)
    assert stored(trickle, "end") == answer(trickle, "end", query) != before


def test_a_source_that_cannot_be_read_for_an_hour_stops_only_what_reads_it(watched: Watched) -> None:
    """Backoff, suspension and an alert; the others go on; once the source is back, the table is resumed."""
    trickle = watched.trickle
    trickle.sql("CREATE TABLE other (id INT) USING delta")
    trickle.create_stream_table("alone", "SELECT id FROM other", "1m")
    folder = trickle._table("alone").location.removeprefix("file:")
    log = Path(folder).parent / "other" / "_delta_log"
    hidden = log.rename(log.parent / "_hidden")
    attempts, others = [], 0
    for _ in range(60):
        told = watched.after(60)
        attempts += [t for t in told if t.endswith(" alone")]
        if others < 2:
            trickle.sql(f"INSERT INTO orders VALUES ({100 + others}, 'n', 1)")
        others += "refreshed average" in told
    assert attempts == ["failed alone"] * 3 + ["suspended alone"]
    assert others >= 50
    alerts = [e.alert for e in watched.events if e.alert and e.name.endswith(".alone")]
    assert [a["alert"] for a in alerts].count("auto_suspended") == 1
    hidden.rename(log)
    trickle.resume("alone")
    assert "refreshed alone" in watched.after(60)
    assert trickle.verify("alone").equal


def test_alerts_are_posted_and_a_webhook_that_is_down_harms_nobody() -> None:
    received: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    event = Event("stale", "spark_catalog.default.t", START, message="It is late.")
    assert event.alert is not None
    problems: list[str] = []
    webhook = Webhook(f"http://127.0.0.1:{server.server_port}/x", problems.append)
    webhook.send(event.alert)
    webhook.close()
    server.shutdown()
    assert received == [event.alert]
    assert (received[0]["alert"], received[0]["stream_table"]) == ("stale", "t")
    down = Webhook(f"http://127.0.0.1:{server.server_port}/x", problems.append)
    server.server_close()
    assert problems == []
    down.send(event.alert)
    down.close()
    assert "It is late." in problems[0]
    assert Event("refreshed", "t", START).alert is None


def test_a_table_that_keeps_its_own_time_is_read_as_of_the_data_timestamp(watched: Watched) -> None:
    """With in-commit timestamps, commits after the data timestamp belong to the next one."""
    trickle = watched.trickle
    trickle.sql(
        "CREATE TABLE timed (id INT) USING delta TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')"
    )
    trickle.create_stream_table("copy", "SELECT id FROM timed", "1m")
    trickle.sql("INSERT INTO timed VALUES (1)")
    (location,) = [
        row.location for row in read_graph(trickle._catalog).rows if row.source_name.endswith(".timed")
    ]
    newest = trickle._runtime.tables.latest(location)
    made = read_commit(trickle._runtime.tables, location, newest.version).at
    assert made is not None
    second = timedelta(seconds=1)
    assert version_at(trickle._runtime.tables, location, newest, made) == newest
    earlier = version_at(trickle._runtime.tables, location, newest, made - second)
    assert earlier.version < newest.version
    watched.now = made - timedelta(minutes=2)
    assert "refreshed copy" in watched.after(1)
    assert not stored(trickle, "copy")
    assert "refreshed copy" in watched.after(3600)
    assert stored(trickle, "copy") == {(1,): 1}


def test_the_command_runs_until_it_is_told_to_stop(own: Trickle, tmp_path: Path) -> None:
    """A process of its own: SIGHUP makes it read its settings, SIGTERM ends it when what has begun is done."""
    own.sql(f"CREATE DATABASE command LOCATION '{tmp_path}/warehouse/command.db'")
    own.sql("USE command")
    own.sql("CREATE TABLE command.t (id INT) USING delta")
    own.create_stream_table("command.copy", "SELECT id FROM command.t", "6s")
    own.sql("INSERT INTO command.t VALUES (1), (2)")
    process = subprocess.Popen(
        [sys.executable, "-m", "spark_trickle", "--home", str(tmp_path), "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []

    def listen() -> None:
        while process.stderr and (line := process.stderr.readline()):
            said.append(line)

    def heard(text: str) -> None:
        until(lambda: any(text in line for line in said) or process.poll() is not None)
        assert any(text in line for line in said), said

    threading.Thread(target=listen, daemon=True).start()
    try:
        heard("copy: DIFFERENTIAL, +2 rows")
        (tmp_path / "trickle.toml").write_text("lease_seconds = 0")
        process.send_signal(signal.SIGHUP)
        heard("must be at least 1")
        (tmp_path / "trickle.toml").write_text("lease_seconds = 30")
        process.send_signal(signal.SIGHUP)
        heard("were read again")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
    assert process.stdout is not None
    out = process.stdout.read()
    assert out.startswith("Stopped: ")
    assert not [line for line in said if "Traceback" in line]


def test_a_table_that_has_joined_a_group_meanwhile_is_not_refreshed_alone(watched: Watched) -> None:
    trickle, daemon = watched.trickle, watched.daemon
    trickle.sql("INSERT INTO orders VALUES (4, 's', 15)")
    before = stored(trickle, "by_sum")
    job = Job(trickle._table("by_sum").name, START, START)
    trickle.alter_stream_table("average", diamond_consistency="atomic")
    assert daemon._refresh(job)
    assert (stored(trickle, "by_sum"), watched.events) == (before, [])


def test_a_group_at_work_elsewhere_is_left_alone_and_no_failure(watched: Watched) -> None:
    trickle = watched.trickle
    trickle.alter_stream_table("average", diamond_consistency="atomic")
    trickle.sql("INSERT INTO orders VALUES (4, 's', 15)")
    ids = [trickle._table(name).id for name in DIAMOND]
    with lease_on(trickle._runtime, refreshing_together(ids)) as holder:
        assert holder is None
        assert watched.after(60) == []
    assert len(watched.after(60)) == 3
