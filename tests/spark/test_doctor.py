"""What the doctor finds, a catalog rebuilt from the tables, and versions that may soon be gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.scheduler.daemon import Daemon
from spark_trickle.scheduler.events import Event
from tests.spark.oracle import Checked, answer, stored

QUERY = "SELECT k, SUM(v) AS s FROM t GROUP BY k"
READER = "SELECT k FROM sums WHERE s > 3"
ODD = "SELECT k, 'it\\'s \"x\" \\\\ é' AS q\nFROM t -- the end"
"""Quotes, backslashes and a line break, as a text may have them."""


@pytest.fixture(autouse=True)
def tables(own: Trickle) -> None:
    own.sql("CREATE TABLE t (k INT, v INT) USING delta")
    own.sql("INSERT INTO t VALUES (1, 1), (1, 2), (2, 9), (NULL, 4)")
    own.create_stream_table("sums", QUERY)
    own.create_stream_table("reader", READER, "5m", diamond_consistency="atomic")


def found(trickle: Trickle, database: str, **options: bool) -> list[dict[str, Any]]:
    every: list[dict[str, Any]] = trickle.doctor(**options).to_dict("records")
    return [one for one in every if database in one["subject"]]


def test_a_healthy_place_has_no_findings(own: Trickle, database: str) -> None:
    assert found(own, database) == []


def test_it_finds_what_is_wrong_and_says_what_to_do(own: Trickle, database: str) -> None:
    own.sql("ALTER TABLE sums SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    own.sql("INSERT INTO sums (k, s) VALUES (7, 7)")
    own.suspend("reader")
    own.sql("DROP TABLE t")
    findings = {
        (f["severity"], f["subject"].rpartition(".")[2]): f["what"] + f["hint"] for f in found(own, database)
    }
    assert "trickle resume" in findings["warning", "reader"]
    assert "any more" in findings["error", "t"]
    texts = [f["what"] for f in found(own, database) if f["subject"].endswith("sums")]
    assert any("somebody else wrote" in text for text in texts)
    assert any("change data feed is off" in text for text in texts)


def test_a_lost_catalog_is_rebuilt_from_the_tables(
    own: Trickle, database: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    own.create_stream_table("odd", ODD)
    own.alter_stream_table("odd", schedule="2m")
    own.alter_stream_table("sums", schedule="10m")
    own.sql("INSERT INTO t VALUES (3, 5)")
    own.refresh_stream_table("reader")
    own.refresh_stream_table("odd")
    with Trickle(own.spark, home=tmp_path_factory.mktemp("new")) as other:
        assert {f["subject"].rpartition(".")[2] for f in found(other, database)} == {"sums", "reader", "odd"}
        assert found(other, database, rebuild=True) == []
        for name in ("sums", "reader", "odd"):
            before, after = own._table(name), other._table(name)
            for field in ("id", "query", "frontier", "table_version", "schedule", "diamond_consistency"):
                assert getattr(before, field) == getattr(after, field), field
        assert other.verify("odd").equal
        other.sql("DELETE FROM t WHERE k = 2")
        checked = Checked(other, "reader", READER, stored(other, "reader"))
        checked.refresh(Action.DIFFERENTIAL)
        assert stored(other, "sums") == answer(other, "sums", QUERY)
        assert set(other.graph()["source_kind"]) == {"delta", "stream_table"}
        assert found(other, database, rebuild=True) == []


def test_a_version_that_may_soon_be_gone_is_told_before(own: Trickle, database: str) -> None:
    own.sql("INSERT INTO t VALUES (5, 5)")
    now = datetime.now(UTC)
    events: list[Event] = []
    runtime = own._runtime
    own.alter_stream_table("sums", schedule="MANUAL")
    own.alter_stream_table("reader", schedule="MANUAL")

    def told(later: timedelta) -> list[str]:
        runtime.clock = lambda: now + later
        Daemon(runtime, events.append).tick()
        return [e.message for e in events if e.kind == "retention" and database in e.name]

    assert told(timedelta(days=5)) == []
    assert found(own, database) == []
    (message,) = told(timedelta(days=6))
    assert "of `" in message
    assert "VACUUM" in message
    (finding,) = found(own, database)
    assert finding["hint"].startswith("trickle refresh")
    runtime.clock = lambda: now
    own.refresh_stream_table("reader")
    runtime.clock = lambda: now + timedelta(days=6)
    assert found(own, database) == []


def test_a_version_that_is_gone_means_a_rebuild_and_no_wrong_row(own: Trickle) -> None:
    own.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    own.sql("DELETE FROM t WHERE k = 1")
    own.sql("INSERT INTO t VALUES (6, 6)")
    own.sql("OPTIMIZE t")
    own.sql("VACUUM t RETAIN 0 HOURS")
    result = own.refresh_stream_table("sums")
    assert stored(own, "sums") == answer(own, "sums", QUERY)
    if result.action is not Action.DIFFERENTIAL:  # the change feed may have survived where files have not
        assert result.action is Action.REINITIALIZE
        assert "gone" in result.reason or "cannot be read any more" in result.reason
