"""Definitions by functions, and queries whose answer the sources do not decide."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

from spark_trickle import Action, Trickle, TrickleError
from tests.spark import frames
from tests.spark.oracle import Checked, stored
from tests.spark.session import forget_definitions

TOTALS = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM t WHERE 2 * v > 2 GROUP BY k"


@pytest.fixture
def table(trickle: Trickle, database: str) -> Trickle:
    trickle.sql("CREATE TABLE t (k INT, v INT) USING delta")
    trickle.sql("INSERT INTO t VALUES (1, 1), (1, 2), (2, 3), (NULL, NULL)")
    return trickle


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t WHERE 2 * v BETWEEN 1 AND 3",
        "SELECT k, v FROM t WHERE nullif(k + v, 2) IS NOT NULL",
        "SELECT k, transform(array(k, v), x -> x + k) AS x FROM t WHERE k IN (SELECT v FROM t)",
        "SELECT k, k + 1 AS more, more + 1 AS most FROM t WHERE v < (SELECT max(v) FROM t)",
        "SELECT k, count(DISTINCT v) AS n, sum(v) FILTER (WHERE v BETWEEN 1 AND 2) AS s FROM t GROUP BY CUBE (k)",
    ],
)
def test_another_process_understands_the_same(table: Trickle, query: str) -> None:
    table.create_stream_table("st", query)
    table.sql("SELECT 1 WHERE 2 * rand() BETWEEN 0 AND 1").collect()
    forget_definitions(table)
    assert table.refresh_stream_table("st").action is Action.NO_DATA


def test_a_function_defines_a_stream_table_for_every_process(table: Trickle, database: str) -> None:
    table.create_stream_table("st", frames.totals, refresh_mode="DIFFERENTIAL")
    defined_by = table.status().set_index("name")["defined_by"]
    assert defined_by[f"{database}.st"] == "tests.spark.frames:totals"
    check = Checked(table, "st", TOTALS)
    check.created()
    table.sql("INSERT INTO t VALUES (2, 5), (3, 0)")
    check.refresh(Action.DIFFERENTIAL)
    table._runtime.definitions.forget(table._table("st").id)  # as a new process would not know it
    table.sql("UPDATE t SET k = 3 WHERE v = 2")
    check.refresh(Action.DIFFERENTIAL)
    assert table.verify("st").equal


@pytest.mark.parametrize(
    ("query", "code", "says"),
    [
        (lambda spark: spark.table("t"), "FUNCTION_NOT_FOUND", "another process"),
        (frames.nothing, "NOT_A_DATAFRAME", "NoneType"),
    ],
    ids=["lambda", "returns nothing"],
)
def test_a_function_that_cannot_define_is_refused(
    table: Trickle, query: object, code: str, says: str
) -> None:
    with pytest.raises(TrickleError) as caught:
        table.create_stream_table("st", query)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert says in caught.value.message
    assert not table.spark.catalog.tableExists("st")


def _with_policy(trickle: Trickle, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    runtime = trickle._runtime
    monkeypatch.setattr(runtime, "settings", replace(runtime.settings, volatile_function_policy=policy))


def test_policy_warn_recomputes_and_says_so(table: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_policy(table, monkeypatch, "warn")
    with pytest.warns(UserWarning, match=r"rand\(.*every refresh of .* recomputes it"):
        table.create_stream_table("st", "SELECT k, rand() AS r FROM t")
    _with_policy(table, monkeypatch, "reject")  # the definition keeps the policy it was accepted under
    table.sql("INSERT INTO t VALUES (9, 9)")
    result = table.refresh_stream_table("st")
    assert result.action is Action.FULL
    assert "rand(" in result.reason
    assert table.refresh_stream_table("st").action is Action.NO_DATA


def test_policy_allow_keeps_values_of_untouched_rows(table: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_policy(table, monkeypatch, "allow")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        table.create_stream_table("st", "SELECT k, v, uuid() AS ticket FROM t")
    before = stored(table, "st")
    table.sql("INSERT INTO t VALUES (9, 9)")
    table.sql("DELETE FROM t WHERE k = 2")
    assert table.refresh_stream_table("st").action is Action.DIFFERENTIAL
    after = stored(table, "st")
    assert sorted(row[:2] for row in after - before) == [(9, 9)]
    assert sorted(row[:2] for row in before - after) == [(2, 3)]


def test_policy_allow_recomputes_where_chance_decides_about_rows(
    table: Trickle, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_policy(table, monkeypatch, "allow")
    table.create_stream_table("st", "SELECT k FROM t WHERE rand() >= 0")
    table.sql("INSERT INTO t VALUES (9, 9)")
    assert table.refresh_stream_table("st").action is Action.FULL
    assert stored(table, "st").total() == 5
