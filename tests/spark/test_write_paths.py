"""The ways a change is held and written: small on the driver, large distributed, hidden keys, odd types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.catalyst.plan import Plan, Planner
from spark_trickle.storage import shared_changes
from spark_trickle.storage.commits import read_commit
from tests.spark.oracle import Checked, answer, rows_of, stored


@pytest.fixture
def everything_is_large(trickle: Trickle) -> Iterator[None]:
    runtime = trickle._runtime
    kept = runtime.settings
    runtime.settings = replace(kept, local_change_rows=10)
    yield
    runtime.settings = kept


@pytest.mark.parametrize(
    "query",
    ["SELECT k, v FROM t WHERE v > 10", "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY k"],
    ids=["by_weight", "by_key"],
)
def test_large_changes_never_pass_through_the_driver(
    trickle: Trickle, database: str, everything_is_large: None, query: str
) -> None:
    trickle.sql("CREATE TABLE t (k INT, v INT) USING delta")
    trickle.sql("INSERT INTO t SELECT id % 4000, id FROM range(9000)")
    trickle.create_stream_table("st", query, "manual", "DIFFERENTIAL")
    checked = Checked(trickle, "st", query)
    checked.created()
    trickle.sql("DELETE FROM t WHERE v % 3 = 0")
    trickle.sql("INSERT INTO t SELECT 5, 7777 FROM range(3)")
    result = checked.refresh(Action.DIFFERENTIAL)
    assert result.rows_deleted > 2000
    trickle.sql("DELETE FROM t WHERE v % 3 = 1")
    checked.refresh(Action.DIFFERENTIAL)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, SUM(v) AS s, COUNT(*) AS n, AVG(d) AS a, MAX(v) AS m, BIT_XOR(v) AS x FROM t GROUP BY k",
        "SELECT SUM(v) FILTER (WHERE d > 1) AS s, COUNT(k) AS n FROM t",
    ],
    ids=["groups", "whole"],
)
def test_few_rows_that_stand_for_many_are_counted_by_jobs(
    trickle: Trickle,
    database: str,
    everything_is_large: None,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
) -> None:
    trickle.sql("CREATE TABLE t (k INT, v INT, d DECIMAL(10,2)) USING delta")
    trickle.sql("INSERT INTO t SELECT id % 3, 7, 1.25 FROM range(100)")
    trickle.sql("INSERT INTO t VALUES (NULL, 8, 0.5), (1, NULL, NULL), (1, 9, 2)")
    trickle.create_stream_table("st", query, "manual", "DIFFERENTIAL")
    checked = Checked(trickle, "st", query)
    checked.created()
    spread: list[object] = []
    original = Planner.spread

    def counted(planner: Planner, plan: Plan) -> Plan:
        spread.append(plan)
        return original(planner, plan)

    monkeypatch.setattr(Planner, "spread", counted)
    trickle.sql("INSERT INTO t SELECT id % 2, 7, 1.25 FROM range(41)")
    checked.refresh(Action.DIFFERENTIAL)
    trickle.sql("UPDATE t SET v = v + 1 WHERE k = 0 OR k IS NULL")
    checked.refresh(Action.DIFFERENTIAL)
    assert spread
    trickle.sql("DELETE FROM t WHERE v = 7")
    checked.refresh(Action.DIFFERENTIAL)


def test_large_deletion_vectors_have_a_file_of_their_own(trickle: Trickle, database: str) -> None:
    """Written by the driver, read by Spark, and merged with when more rows go."""
    trickle.sql(
        "CREATE TABLE t (id BIGINT, v INT) USING delta"
        " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
    )
    trickle.sql("INSERT INTO t SELECT /*+ COALESCE(1) */ id, CAST(id % 9 AS INT) FROM range(30000)")
    query = "SELECT id, v FROM t"
    trickle.create_stream_table("st", query, "manual", "DIFFERENTIAL")
    checked = Checked(trickle, "st", query)
    checked.created()
    location, kinds = trickle._table("st").location, []
    for edit in (
        "DELETE FROM t WHERE id < 5",
        "DELETE FROM t WHERE id % 3 = 0",
        "UPDATE t SET v = v + 1 WHERE id % 5 = 1",
        "DELETE FROM t WHERE id < 20000",
    ):
        trickle.sql(edit)
        result = checked.refresh(Action.DIFFERENTIAL)
        assert result.version is not None
        commit = read_commit(trickle._runtime.tables, location, result.version)
        kinds.append({f.vector["storageType"] for f in commit.touched if f.added and f.vector})
    assert kinds[:2] == [{"i"}, {"u"}]
    assert all("u" in found for found in kinds[1:])


def test_exactly_as_many_copies_are_removed_as_the_source_lost(trickle: Trickle, database: str) -> None:
    trickle.sql("CREATE TABLE t (id INT, k STRING) USING delta")
    trickle.sql("INSERT INTO t SELECT id, 'same' FROM range(10)")
    trickle.create_stream_table("st", "SELECT k FROM t")
    checked = Checked(trickle, "st", "SELECT k FROM t")
    checked.created()
    for until, number in ((3, 3), (4, 1), (10, 6)):
        trickle.sql(f"DELETE FROM t WHERE id < {until}")
        result = checked.refresh(Action.DIFFERENTIAL)
        assert (result.rows_deleted, result.rows_inserted) == (number, 0)


@pytest.mark.parametrize(
    ("query", "edit", "removed"),
    [
        ("SELECT k, COUNT(*) OVER (PARTITION BY k) AS n FROM t", "INSERT INTO t VALUES (1, 4)", 3),
        ("SELECT k FROM t EXCEPT ALL SELECT k FROM u", "INSERT INTO u VALUES (1), (1)", 2),
        ("SELECT k, v - v AS d FROM t", "DELETE FROM t WHERE k = 1", 3),
        ("SELECT k, d - d AS n FROM f", "DELETE FROM f WHERE k = 1", 2),
    ],
    ids=["window", "except_all", "by_weight", "not_a_number"],
)
def test_equal_rows_are_removed_each_from_its_own_place(
    trickle: Trickle, database: str, query: str, edit: str, removed: int
) -> None:
    """Several copies of one row go at once; none may be marked in the place of another."""
    trickle.sql("CREATE TABLE t (k INT, v INT) USING delta")
    trickle.sql("INSERT INTO t VALUES (1, 1), (1, 2), (1, 3), (2, 1)")
    trickle.sql("CREATE TABLE u (k INT) USING delta")
    trickle.sql("CREATE TABLE f (k INT, d DOUBLE) USING delta")
    trickle.sql("INSERT INTO f VALUES (1, double('NaN')), (1, double('inf')), (2, 0)")
    trickle.create_stream_table("st", query)
    checked = Checked(trickle, "st", query)
    checked.created()
    trickle.sql(edit)
    assert checked.refresh(Action.DIFFERENTIAL).rows_deleted == removed


def test_a_key_that_is_not_projected_is_kept_in_the_hidden_column(trickle: Trickle, database: str) -> None:
    trickle.sql("CREATE TABLE t (k STRING, f DOUBLE) USING delta")
    trickle.sql("INSERT INTO t VALUES ('a', 0.1), ('a', 0.2), ('b', 1e16), (NULL, 3.0)")
    query = "SELECT SUM(f) AS s FROM t GROUP BY k"
    trickle.create_stream_table("st", query)
    assert trickle.spark.table("st").columns == ["s", "__st"]
    checked = Checked(trickle, "st", query)
    checked.created()
    trickle.sql("INSERT INTO t VALUES ('a', 0.3), (NULL, 1.0), ('c', double('NaN'))")
    trickle.sql("DELETE FROM t WHERE k = 'b'")
    checked.refresh(Action.DIFFERENTIAL)
    assert trickle.verify("st").not_compared == ("s",)
    trickle.create_stream_table("exact", "SELECT DISTINCT k FROM t")
    assert trickle.spark.table("exact").columns == ["k"]


def test_values_that_sql_calls_equal_stay_apart(trickle: Trickle, database: str) -> None:
    schema = "id INT, f DOUBLE, m MAP<STRING,INT>, a ARRAY<FLOAT>, s STRUCT<x: DOUBLE, y: STRING>, v VARIANT"
    trickle.sql(f"CREATE TABLE t ({schema}) USING delta")
    trickle.sql(
        "INSERT INTO t VALUES "
        "(1, -0.0D, map('a', 1, 'b', 2), array(-0.0F), named_struct('x', -0.0D, 'y', 'q'), parse_json('{\"a\": 1}')),"
        "(2, 0.0D, map('b', 2, 'a', 1), array(0.0F), NULL, parse_json('{\"a\": 1.0}')),"
        "(3, double('NaN'), NULL, NULL, named_struct('x', NULL, 'y', NULL), NULL)"
    )
    query = "SELECT f, m, a, s, v FROM t"
    trickle.create_stream_table("st", query)
    trickle.sql("DELETE FROM t WHERE id = 1")
    trickle.sql("UPDATE t SET f = -0.0D WHERE id = 2")
    trickle.sql("UPDATE t SET s = NULL WHERE id = 3")
    assert trickle.refresh_stream_table("st").action is Action.DIFFERENTIAL
    texts = "CAST(f AS STRING) AS f, CAST(m AS STRING) AS m, CAST(a AS STRING) AS a, CAST(s AS STRING) AS s, to_json(v) AS v"
    held = rows_of(trickle.spark.sql(f"SELECT {texts} FROM st"))
    assert held == rows_of(trickle.spark.sql(f"SELECT {texts} FROM t"))
    assert trickle.verify("st").equal


def test_any_reader_sees_exactly_the_query(trickle: Trickle, database: str) -> None:
    """Plain SQL on the table, without anything of ours in between."""
    trickle.sql(
        "CREATE TABLE t (id INT, `odd name (x)` DECIMAL(38,10) COMMENT 'money') USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    trickle.sql("INSERT INTO t VALUES (1, 12345678901234567890.0123456789), (2, NULL)")
    query = "SELECT id, `odd name (x)`, count(*) OVER (PARTITION BY id) FROM t"
    trickle.create_stream_table("st", query)
    trickle.sql("UPDATE t SET `odd name (x)` = 1 WHERE id = 2")
    trickle.refresh_stream_table("st")
    assert rows_of(trickle.spark.sql("SELECT * FROM st")) == rows_of(trickle.spark.sql(query))
    assert trickle.spark.table("st").schema["odd name (x)"].metadata.get("comment") == "money"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, v FROM t",
        "SELECT id, SUM(v) AS s FROM t GROUP BY id",
        "SELECT id, MAX(f) AS m FROM t GROUP BY id",
    ],
    ids=["by_weight", "totals", "by_key"],
)
def test_rows_are_found_where_pieces_of_a_file_are_skipped(
    trickle: Trickle, database: str, query: str
) -> None:
    """A file of several pages, some rows hidden by a deletion vector already: places count from its beginning."""
    trickle.sql("CREATE TABLE t (id BIGINT, v INT, f DOUBLE) USING delta")
    trickle.sql("INSERT INTO t SELECT /*+ COALESCE(1) */ id, CAST(id % 7 AS INT), id / 3 FROM range(90000)")
    trickle.create_stream_table("st", query)
    checked = Checked(trickle, "st", query)
    checked.created()
    for ids in ("5, 31000, 31001, 89999", "0, 31002, 60001", "4, 6, 30999, 45000, 89998"):
        trickle.sql(f"UPDATE t SET v = v + 10, f = f - 1 WHERE id IN ({ids})")
        result = checked.refresh(Action.DIFFERENTIAL)
        assert result.rows_deleted == result.rows_inserted == len(ids.split(","))
    trickle.sql("DELETE FROM t WHERE id IN (5, 31002)")
    assert checked.refresh(Action.DIFFERENTIAL).rows_deleted == 2


def test_keys_of_every_calendar_are_found(trickle: Trickle, database: str) -> None:
    """Key lists and the change feed pass through Java's dates and times, of which the old ones had two calendars.

    Read in a session with Spark's defaults, the feed itself shows 1582-10-10 as another day.
    """
    days = ["0002-01-01", "1582-10-04", "1582-10-10", "1582-10-15", "1899-12-31", "9999-12-31"]
    trickle.sql(
        "CREATE TABLE t (d DATE, at TIMESTAMP, wall TIMESTAMP_NTZ, n DECIMAL(38,2), v INT) USING delta"
        " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    for number, day in enumerate(days):
        time = f"'{day} 23:59:59.123456'"
        trickle.sql(
            f"INSERT INTO t VALUES (DATE'{day}', TIMESTAMP{time}, TIMESTAMP_NTZ{time}, {number}.25, 1)"
        )
    trickle.sql("INSERT INTO t VALUES (NULL, NULL, NULL, NULL, 1)")
    queries = {
        name: f"SELECT {name}, MAX(f) AS m FROM (SELECT {name}, v / 2.0D AS f FROM t) GROUP BY {name}"
        for name in ("d", "at", "wall", "n")
    } | {"every": "SELECT d, at, wall, n, v FROM t"}
    for name, query in queries.items():
        trickle.create_stream_table(f"st_{name}", query)
    trickle.sql("UPDATE t SET v = v + 1 WHERE d IS NULL OR d <> DATE'1899-12-31'")
    for name, query in queries.items():
        result = trickle.refresh_stream_table(f"st_{name}")
        assert (result.action, result.rows_deleted) == (Action.DIFFERENTIAL, len(days)), name
        assert stored(trickle, f"st_{name}") == answer(trickle, f"st_{name}", query)


def test_a_small_change_is_read_once_for_all_who_read_it(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by tables that use other columns: what changes in none of theirs is no change for them."""
    trickle.sql("CREATE TABLE t (k INT, v INT, w INT) USING delta")
    trickle.sql("INSERT INTO t VALUES (1, 1, 1), (1, 1, 2), (2, 5, 3)")
    queries = {"one": "SELECT k, v FROM t", "two": "SELECT k, SUM(w) AS s FROM t GROUP BY k"}
    watched = {name: Checked(trickle, name, query) for name, query in queries.items()}
    for name, query in queries.items():
        trickle.create_stream_table(name, query)
        watched[name].created()
    read: list[Sequence[str]] = []
    original = shared_changes.changes_between

    def counted(*given: Any) -> Any:
        read.append(given[3])
        return original(*given)

    monkeypatch.setattr(shared_changes, "changes_between", counted)
    trickle.sql("UPDATE t SET w = w + 10 WHERE w < 3")
    assert watched["one"].refresh(Action.DIFFERENTIAL).rows_deleted == 0
    assert watched["two"].refresh(Action.DIFFERENTIAL).rows_deleted == 1
    assert read == [["k", "v", "w"]]
