"""What is told of the daemon: how far it is, what is next, what is late."""

import threading
from datetime import UTC, datetime, timedelta

from spark_trickle.scheduler.due import TableState
from spark_trickle.scheduler.overview import Progress, next_due
from spark_trickle.scheduler.schedules import Cron, Downstream, Every, Manual
from spark_trickle.scheduler.staleness import stale_tables

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_progress_tells_the_step_of_each_thread() -> None:
    progress, reached, go = Progress(), threading.Barrier(2), threading.Event()

    def work() -> None:
        progress.begin("b")
        progress.step("compute")
        reached.wait()
        go.wait()
        progress.end()

    other = threading.Thread(target=work)
    progress.step("nobody has begun")
    progress.begin("a")
    other.start()
    reached.wait()
    progress.step("write")
    assert {(r.name, r.step) for r in progress.running()} == {("a", "write"), ("b", "compute")}
    go.set()
    other.join()
    progress.end()
    assert progress.running() == ()


def test_the_next_instant_of_any_schedule_is_next() -> None:
    tables = [
        TableState("hourly", Cron("0 * * * *")),
        TableState("often", Every(60)),
        TableState("suspended", Every(6), active=False),
        TableState("manual", Manual()),
        TableState("source", Downstream()),
    ]
    assert next_due(tables, START + timedelta(seconds=1)) == ("often", START + timedelta(seconds=24))
    assert next_due(tables[3:], START) == ("", None)


def test_a_table_is_stale_when_it_is_twice_as_old_as_it_may_be() -> None:
    tables = [
        TableState("never", Every(60)),
        TableState("source", Downstream(), reached=START),
        TableState("reader", Every(60), ("source",), reached=START),
        TableState("slow", Every(3600), reached=START),
        TableState("manual", Manual(), reached=START),
    ]
    assert stale_tables(tables, START + timedelta(seconds=120)) == {}
    late = stale_tables(tables, START + timedelta(seconds=121))
    assert late == dict.fromkeys(("source", "reader"), timedelta(seconds=121))
