"""Functions of the clock are bound to the data timestamp: rows age out although no table changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from spark_trickle import Action, Trickle
from tests.spark.oracle import Bag, rows_of, stored

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

QUERIES = {
    "window": "SELECT id FROM t WHERE ts > {now} - INTERVAL 2 HOURS",
    "shown": "SELECT id, {today} AS day, {local} AS here FROM t",
    "grouped": "SELECT {today} - CAST(ts AS DATE) IS NULL AS unknown, COUNT(*) AS n, MAX({now}) AS at FROM t GROUP BY 1",
    "case": "SELECT k, SUM(CASE WHEN ts <= {now} THEN 1 ELSE 0 END) AS past FROM t GROUP BY k",
    "subquery": "SELECT id FROM t WHERE k IN (SELECT k FROM t WHERE ts > {now} - INTERVAL 1 HOUR)",
    "outer_join": "SELECT a.id, b.id AS other FROM t a LEFT JOIN t b ON a.k = b.k AND b.ts > {now}",
    "no_table": "SELECT {now} AS at",
}


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch) -> Clock:
    ticking = Clock()
    monkeypatch.setattr(trickle._runtime, "clock", ticking)
    trickle.sql("CREATE TABLE t (id INT, k INT, ts TIMESTAMP) USING delta")
    trickle.sql(
        "INSERT INTO t SELECT id, id % 3, TIMESTAMP'2026-03-01 12:00:00Z' + make_interval(0, 0, 0, 0, 0, 30 * (id - 4)) "
        "FROM range(9)"
    )
    trickle.sql("INSERT INTO t VALUES (NULL, NULL, NULL)")
    return ticking


def _answer(trickle: Trickle, query: str, now: datetime) -> Bag:
    instant = f"TIMESTAMP'{now:%Y-%m-%d %H:%M:%S}Z'"
    texts = {
        "now": instant,
        "today": f"CAST({instant} AS DATE)",
        "local": f"CAST({instant} AS TIMESTAMP_NTZ)",
    }
    return rows_of(trickle.sql(query.format(**texts)))


def test_rows_enter_and_leave_as_time_passes(trickle: Trickle, clock: Clock) -> None:
    functions = {"now": "current_timestamp()", "today": "current_date()", "local": "localtimestamp()"}
    for name, query in QUERIES.items():
        trickle.create_stream_table(name, query.format(**functions), refresh_mode="DIFFERENTIAL")
    for hours, edit in ((0, ""), (1, ""), (2, "DELETE FROM t WHERE id = 5"), (30, ""), (31, "DELETE FROM t")):
        clock.now = NOON + timedelta(hours=hours)
        if edit:
            trickle.sql(edit)
        for name, query in QUERIES.items():
            result = trickle.refresh_stream_table(name)
            assert stored(trickle, name) == _answer(trickle, query, clock.now), (name, result)
            assert result.action is (Action.DIFFERENTIAL if hours or edit else Action.NO_DATA)
            assert result.frontier.data_timestamp == clock.now
            assert trickle.verify(name).equal


def test_time_without_effect_makes_no_commit(trickle: Trickle, clock: Clock) -> None:
    trickle.create_stream_table("st", "SELECT id FROM t WHERE ts > now() - INTERVAL 100 DAYS")
    version = trickle.refresh_stream_table("st").version
    clock.now += timedelta(minutes=1)
    result = trickle.refresh_stream_table("st")
    assert (result.action, result.reason, result.version) == (Action.DIFFERENTIAL, "time has passed", version)
    clock.now -= timedelta(hours=5)
    assert trickle.refresh_stream_table("st").action is Action.NO_DATA


def test_verify_asks_as_of_the_time_of_each_refresh(trickle: Trickle, clock: Clock) -> None:
    trickle.create_stream_table("st", "SELECT id FROM t WHERE ts > current_timestamp()")
    clock.now += timedelta(hours=1)
    trickle.refresh_stream_table("st")
    history = trickle.refresh_history("st")
    assert all(trickle.verify("st", as_of=int(number)).equal for number in history["id"])


def test_readers_of_a_table_with_time_see_its_changes(trickle: Trickle, clock: Clock) -> None:
    trickle.create_stream_table("recent", "SELECT id, k FROM t WHERE ts > now() - INTERVAL 1 HOUR")
    trickle.create_stream_table("counts", "SELECT k, COUNT(*) AS n FROM recent GROUP BY k")
    clock.now += timedelta(hours=1)
    assert trickle.refresh_stream_table("counts").action is Action.DIFFERENTIAL
    assert stored(trickle, "counts") == rows_of(trickle.sql("SELECT k, COUNT(*) AS n FROM recent GROUP BY k"))
