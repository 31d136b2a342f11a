"""Rows on which an expression fails: a refresh fails where the full query fails, and nowhere else."""

from __future__ import annotations

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.errors import RefreshError
from tests.spark.oracle import Checked, stored

NEVER_MET = {
    # Each query raises on (6, 5)-like pairs; the edits move both sides so that old and new rows would form one.
    "inner join": "SELECT l.k, 10 / (l.x - r.y) AS q FROM l JOIN r ON l.k = r.k",
    "inner join without an equality": "SELECT l.k, 10 / (l.x - r.y) AS q FROM l JOIN r ON l.k <= r.k",
    "in the condition": "SELECT l.k, r.y FROM l JOIN r ON l.k = r.k AND 10 / (l.x - r.y) > 0",
    "left join": "SELECT l.k, 10 / (l.x - coalesce(r.y, 0)) AS q FROM l LEFT JOIN r ON l.k = r.k",
    "full join": "SELECT l.k, r.k AS o, 10 / (coalesce(l.x, 50) - coalesce(r.y, 0)) AS q FROM l FULL JOIN r ON l.k = r.k",
    "three tables": """
        SELECT l.k, 10 / (l.x - r.y) AS q, 10 / (r.y - m.z) AS p FROM l JOIN r ON l.k = r.k JOIN m ON r.k = m.k""",
    "three tables, joined on the right": """
        SELECT l.k, 10 / (l.x - s.y) AS q, s.p
        FROM l JOIN (SELECT r.k, r.y, 10 / (r.y - m.z) AS p FROM r JOIN m ON r.k = m.k) s ON l.k = s.k""",
    "scalar subquery": "SELECT l.k, (SELECT y FROM r WHERE r.k = l.k AND r.y < l.x) AS y FROM l",
    "below an aggregate": "SELECT l.k, SUM(10 DIV (l.x - r.y)) AS q FROM l JOIN r ON l.k = r.k GROUP BY l.k",
    "above an aggregate": """
        SELECT l.k, 10 / (l.x - s.y) AS q FROM l JOIN (SELECT k, MAX(y) AS y FROM r GROUP BY k) s ON l.k = s.k""",
    "self-join": "SELECT a.k, 10 / (a.x - b.x) AS q FROM l a JOIN l b ON a.k = b.k - 1",
}

FAILS = {
    "division by zero": ("SELECT k, 10 / x AS q FROM l", "UPDATE l SET x = 0 WHERE k = 1", "DIVIDE_BY_ZERO"),
    "overflow of a sum": (
        "SELECT k, SUM(CAST(x AS BIGINT) * 3000000000000000000) AS q FROM l GROUP BY k",
        "UPDATE l SET x = 4 WHERE k = 1",
        "ARITHMETIC_OVERFLOW",
    ),
    "a bad cast": (
        "SELECT k, CAST(s AS INT) AS q FROM l",
        "UPDATE l SET s = 'x' WHERE k = 1",
        "CAST_INVALID_INPUT",
    ),
    "a scalar subquery with two rows": (
        "SELECT k, (SELECT y FROM r WHERE r.k = l.k) AS q FROM l",
        "INSERT INTO r VALUES (1, 7)",
        "SCALAR_SUBQUERY_TOO_MANY_ROWS",
    ),
    "an index out of bounds": (
        "SELECT k, array(1, 2)[x] AS q FROM l",
        "UPDATE l SET x = 4 WHERE k = 1",
        "INVALID_ARRAY_INDEX",
    ),
    "in a join": (
        "SELECT l.k, 10 / (l.x - r.y) AS q FROM l JOIN r ON l.k = r.k",
        "UPDATE r SET y = 1 WHERE k = 1",
        "DIVIDE_BY_ZERO",
    ),
    "in the argument of an aggregate": (
        "SELECT r.k, COUNT(10 DIV l.x) AS q FROM l JOIN r ON l.k = r.k GROUP BY r.k",
        "UPDATE l SET x = 0 WHERE k = 2",
        "DIVIDE_BY_ZERO",
    ),
    "in HAVING": (
        "SELECT k, COUNT(*) AS n FROM l GROUP BY k HAVING 10 / MIN(x) > 1",
        "UPDATE l SET x = 0 WHERE k = 2",
        "DIVIDE_BY_ZERO",
    ),
    "in a window": (
        "SELECT k, SUM(10 DIV x) OVER (PARTITION BY k) AS q FROM l",
        "UPDATE l SET x = 0 WHERE k = 2",
        "DIVIDE_BY_ZERO",
    ),
}


def tables(trickle: Trickle, *rows: str) -> None:
    for name, columns in (("l", "k INT, x INT, s STRING"), ("r", "k INT, y INT"), ("m", "k INT, z INT")):
        trickle.sql(f"CREATE TABLE {name} ({columns}) USING delta")
    for statement in rows:
        trickle.sql(statement)


def test_pairs_that_never_met_do_not_fail_a_refresh(trickle: Trickle, database: str) -> None:
    tables(
        trickle,
        "INSERT INTO l VALUES (1, 5, 'a'), (1, 8, 'a'), (2, 7, 'a'), (3, 40, 'a'), (NULL, 5, 'a')",
        "INSERT INTO r VALUES (1, 4), (2, 3), (NULL, 4)",
        "INSERT INTO m VALUES (1, 3), (2, 2)",
    )
    checks = {}
    for number, (what, query) in enumerate(NEVER_MET.items()):
        trickle.create_stream_table(f"st{number}", query, refresh_mode="DIFFERENTIAL")
        checks[what] = Checked(trickle, f"st{number}", query)
        checks[what].created()
    # Every row goes up by one: 6 − 5 and 5 − 4 are fine, the old 5 with the new 5 is not.
    for table, column in (("l", "x"), ("r", "y"), ("m", "z")):
        trickle.sql(f"UPDATE {table} SET {column} = {column} + 1")
    careful = {
        what
        for what, check in checks.items()
        if "never have met" in check.refresh(Action.DIFFERENTIAL).reason
    }
    assert careful >= {"inner join", "in the condition", "left join", "three tables", "self-join"}
    trickle.sql("DELETE FROM l WHERE x = 9")
    trickle.sql("UPDATE r SET y = 9 WHERE k = 1")
    trickle.sql("UPDATE m SET z = 8 WHERE k = 1")
    for check in checks.values():
        check.refresh({Action.DIFFERENTIAL, Action.NO_DATA})


@pytest.mark.parametrize("what", FAILS)
def test_a_refresh_fails_where_the_query_fails_and_goes_on_when_the_data_is_mended(
    trickle: Trickle, database: str, what: str
) -> None:
    query, edit, code = FAILS[what]
    tables(
        trickle,
        "INSERT INTO l VALUES (1, 1, '1'), (2, 1, '2'), (2, 1, '3')",
        "INSERT INTO r VALUES (1, 5), (2, 3)",
    )
    trickle.create_stream_table("st", query)
    checked = Checked(trickle, "st", query)
    checked.created()
    before = trickle._table("st")
    trickle.sql(edit)
    for _ in range(2):
        with pytest.raises(RefreshError) as failed:
            trickle.refresh_stream_table("st")
        assert failed.value.code == code
    after = trickle._table("st")
    assert (after.frontier, after.table_version) == (before.frontier, before.table_version)
    assert stored(trickle, "st") == checked.held
    trickle.sql("DELETE FROM l WHERE k = 1")
    trickle.sql("UPDATE l SET x = 1")
    trickle.sql("INSERT INTO l VALUES (7, 1, '7')")
    checked.refresh(Action.DIFFERENTIAL)
