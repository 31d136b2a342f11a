"""Kill −9 at every step of a refresh, two refreshers at once: the change is applied once, history tells the truth.

Every step is cut short once in this process, by an exception nothing of ours handles; real processes are killed by
SIGKILL at the most delicate steps here, and at all of them by `make crash`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.refresh import run
from spark_trickle.refresh.runtime import Runtime
from tests.spark.oracle import Checked

STEPS = ["recover", "measure", "decide", "compute", "write", "committed", "remember", "done"]
QUERY = "SELECT k, v FROM t WHERE v IS NOT NULL"


class Killed(BaseException):
    """Stands for SIGKILL: nothing of ours may run after it."""


def prepared(trickle: Trickle) -> Checked:
    trickle.sql("CREATE TABLE t (k INT, v INT) USING delta")
    trickle.sql("INSERT INTO t VALUES (1,1),(1,1),(2,2),(NULL,3)")
    trickle.create_stream_table("st", QUERY)
    checked = Checked(trickle, "st", QUERY)
    checked.created()
    return checked


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step_the_next_refresh_recovers(
    trickle: Trickle, database: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = prepared(trickle)
    trickle.sql("DELETE FROM t WHERE k = 1")
    trickle.sql("INSERT INTO t VALUES (5,5),(5,5)")
    runtime: Runtime = trickle._runtime

    def die(name: str) -> None:
        if name == step:
            raise Killed

    with monkeypatch.context() as killing:
        killing.setattr(runtime, "on_step", die)
        # A killed process neither records its failure nor gives its lease back.
        killing.setattr(run, "remember_failure", lambda *arguments: arguments[2])
        with pytest.raises(Killed):
            trickle.refresh_stream_table("st")

    committed = step in {"committed", "remember", "done"}
    expected = {Action.NO_DATA} if committed else {Action.DIFFERENTIAL}
    checked_after(checked, expected, committed)
    history = trickle.refresh_history("st")
    assert "RUNNING" not in set(history["status"])
    assert sum(history["rows_inserted"]) == 4 + 2
    assert sum(history["rows_deleted"]) == 2
    if step in {"committed", "remember"}:
        assert "the process ended after its commit" in "".join(history["reason"])


def checked_after(checked: Checked, expected: set[Action], committed: bool) -> None:
    if committed:
        result = checked.trickle.refresh_stream_table("st")
        assert result.action in expected, result
        assert checked.trickle.verify("st").equal
    else:
        checked.refresh(expected)


REAL_KILLS = STEPS if os.environ.get("TRICKLE_TEST_ALL_KILLS") else ["write", "committed"]
"""Every kill is a process with a JVM of its own: `make crash` goes through all steps."""


def test_real_processes_killed_and_two_at_once(tmp_path: Path, trickle: Trickle) -> None:
    """SIGKILL at each step, restart, refresh; then two processes at once, of which one is told to wait."""
    trickle.sql(f"CREATE DATABASE real LOCATION '{tmp_path}/warehouse/real.db'")
    trickle.sql("CREATE TABLE real.t (k INT, v INT) USING delta")
    trickle.sql("INSERT INTO real.t VALUES (0,0),(1,1)")
    with Trickle(trickle.spark, home=tmp_path) as own:
        own.create_stream_table("real.st", "SELECT k, v FROM real.t WHERE v IS NOT NULL")
        for number, step in enumerate(REAL_KILLS, start=1):
            trickle.sql(f"INSERT INTO real.t VALUES ({number},{number})")
            killed = worker(tmp_path, "real.st", "--die-at", step)
            assert killed.wait(timeout=300) == -9
            result = own.refresh_stream_table("real.st")
            committed = step in {"committed", "remember", "done"}
            assert result.action is (Action.NO_DATA if committed else Action.DIFFERENTIAL)
            assert own.verify("real.st").equal
            history = own.refresh_history("real.st")
            assert sum(history["rows_inserted"]) == 2 + number
            assert "RUNNING" not in set(history["status"])
        two_at_once(trickle, own, tmp_path)


def two_at_once(trickle: Trickle, own: Trickle, home: Path) -> None:
    trickle.sql("DELETE FROM real.t WHERE k = 0")
    go = home / "go"
    other = worker(home, "real.st", "--hold-until", str(go))
    wait_for(home / "holding", other)
    mine = own.refresh_stream_table("real.st")
    assert mine.action is Action.SKIP
    assert "being refreshed by" in mine.reason
    go.touch()
    out, _ = other.communicate(timeout=300)
    assert json.loads(out.splitlines()[-1])["action"] == "DIFFERENTIAL"
    assert own.refresh_stream_table("real.st").action is Action.NO_DATA
    assert own.verify("real.st").equal


def worker(home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.worker", str(home), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 180
    while not path.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
