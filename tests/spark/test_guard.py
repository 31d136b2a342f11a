"""A differential refresh that takes too long is given up, and recomputing takes its place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.catalyst import held
from spark_trickle.catalyst.guard import TookTooLong, time_limit
from spark_trickle.catalyst.plan import Planner
from spark_trickle.refresh import write
from tests.spark.oracle import Checked

QUERY = "SELECT k, SUM(v) AS s FROM t GROUP BY k"


def test_jobs_are_cancelled_when_the_time_is_over(trickle: Trickle) -> None:
    endless = trickle.spark.range(10**13).selectExpr("sum(id % 7)")
    with pytest.raises(TookTooLong, match="it was not done"), time_limit(trickle.spark, 0.5):
        endless.collect()
    assert trickle.spark.range(5).count() == 5


def test_what_the_thread_does_itself_is_stopped_too(trickle: Trickle) -> None:
    planner = Planner(trickle.spark)
    some = planner.frame(held.hold(planner, trickle.spark.range(20_000).selectExpr("id", "0 AS same")))
    pairs = some.join(some.selectExpr("id AS other", "same"), "same")
    endless = planner.frame(planner.in_one(planner.analyzed(pairs))).selectExpr("sum(id + other)")
    before = trickle.spark.sparkContext._jsc.sc().dagScheduler().nextJobId()
    with pytest.raises(TookTooLong, match="it was not done"), time_limit(trickle.spark, 0.5):
        held.hold(planner, endless)
    assert trickle.spark.sparkContext._jsc.sc().dagScheduler().nextJobId() == before
    with pytest.raises(TookTooLong), time_limit(trickle.spark, 0.1):
        time.sleep(0.5)
        held.hold(planner, some)
    assert held.hold(planner, some) is not None


def test_within_the_time_nothing_happens_and_other_errors_stay_what_they_are(trickle: Trickle) -> None:
    with time_limit(trickle.spark, 300):
        assert trickle.spark.range(5).count() == 5
    with pytest.raises(ZeroDivisionError), time_limit(trickle.spark, 300):
        raise ZeroDivisionError


def test_a_refresh_that_was_given_up_is_full_and_says_so(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trickle.sql("CREATE TABLE t (k INT, v INT) USING delta")
    trickle.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    trickle.create_stream_table("st", QUERY)
    checked = Checked(trickle, "st", QUERY)
    checked.created()

    @contextmanager
    def at_once(_spark: Any, _seconds: float | None) -> Iterator[None]:
        yield
        raise TookTooLong("it was not done after 0.0 s")

    trickle.sql("INSERT INTO t VALUES (1, 5)")
    with monkeypatch.context() as patched:
        patched.setattr(write, "time_limit", at_once)
        result = checked.refresh(Action.FULL)
    assert result.reason.endswith("t` changed, but it was not done after 0.0 s and was given up")
    assert {"given up", "compute", "write"} <= set(result.durations)
    trickle.sql("INSERT INTO t VALUES (2, 5)")
    checked.refresh(Action.DIFFERENTIAL)
    history = trickle.refresh_history("st").to_dict("records")
    predicted = next(row["predicted_seconds"] for row in history if row["action"] == "DIFFERENTIAL")
    assert predicted == pytest.approx(result.durations["given up"])
