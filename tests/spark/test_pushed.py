"""Which conditions of a query a source is read by, and that leaving rows out by them changes no answer."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.algebra.comparisons import Check, Comparison
from spark_trickle.algebra.traverse import scans_of
from spark_trickle.storage import passing
from tests.spark.oracle import Checked
from tests.spark.session import as_in_production

COLUMNS = "i INT, b BIGINT, d DATE, m DECIMAL(12,2), s STRING, f DOUBLE, c CHAR(3), ts TIMESTAMP"
TRANSLATED = {
    "i = 3": (Comparison("i", Check.EQUAL, (3,)),),
    "3 > i AND i >= -1": (Comparison("i", Check.LESS, (3,)), Comparison("i", Check.AT_LEAST, (-1,))),
    "b BETWEEN 2 AND 2 + 2": (Comparison("b", Check.AT_LEAST, (2,)), Comparison("b", Check.AT_MOST, (4,))),
    "i IN (1, 2, 3)": (Comparison("i", Check.ONE_OF, (1, 2, 3)),),
    "d < DATE'1995-12-01' + INTERVAL '1' MONTH": (Comparison("d", Check.LESS, (date(1996, 1, 1),)),),
    "m <= 1.5": (Comparison("m", Check.AT_MOST, (Decimal("1.50"),)),),
    "s = 'x' AND s IS NOT NULL": (Comparison("s", Check.EQUAL, ("x",)), Comparison("s", Check.PRESENT)),
    "s LIKE 'for%'": (Comparison("s", Check.STARTS_WITH, ("for",)),),
    "s < 'x'": (),
    "f > 1.0": (),
    "c = 'a'": (),
    "ts > TIMESTAMP'2024-01-01'": (),
    "i = 3 OR b = 4": (),
    "i + 1 = 4": (),
    "length(s) = 3": (),
    "NOT i = 3": (),
    "i > CAST(NULL AS INT)": (),
    "s = NULLIF('', '')": (),
}
ROWS = (
    "(1, 1, DATE'1995-12-31', 1.50, 'forest', 1.5, 'a', TIMESTAMP'2024-01-01')",
    "(2, 4, DATE'1996-01-01', 1.51, 'for', 0.5, 'ab', TIMESTAMP'2024-01-02')",
    "(3, 5, DATE'1970-01-01', -1, 'x', -0.5, 'abc', NULL)",
    "(-1, 2, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(NULL, NULL, DATE'9999-12-31', 0, '', 2, '', TIMESTAMP'1900-01-01')",
)


@pytest.fixture
def filled(trickle: Trickle, database: str) -> Trickle:
    trickle.sql(f"CREATE TABLE t ({COLUMNS}) USING delta")
    trickle.sql("CREATE TABLE u (i INT, w STRING) USING delta")
    trickle.sql(f"INSERT INTO t VALUES {', '.join(ROWS)}, {ROWS[0]}")
    trickle.sql("INSERT INTO u VALUES (1, 'one'), (2, 'two'), (3, 'three'), (-1, 'less'), (NULL, 'none')")
    return trickle


@pytest.mark.parametrize("condition", TRANSLATED)
def test_conditions_as_spark_would_hand_them_to_a_source(filled: Trickle, condition: str) -> None:
    runtime = filled._runtime
    namespace = (filled.spark.catalog.currentCatalog(), filled.spark.catalog.currentDatabase())
    text = f"SELECT i, s FROM t WHERE {condition}"
    definition = runtime.definitions.of_text(text, runtime.meaning(), *namespace).definition
    (scan,) = scans_of(definition.relation)
    assert scan.only == TRANSLATED[condition]


@pytest.mark.parametrize("wanted", ["i", "b", "d", "m", "s", "c"])
def test_rows_that_conditions_drop_are_not_missed(filled: Trickle, wanted: str) -> None:
    """Rows move into and out of what a condition lets through, by changes of either side of a join."""
    condition = {
        "i": "t.i IN (1, 2, 3)",
        "b": "b BETWEEN 2 AND 2 + 2",
        "d": "d < DATE'1995-12-01' + INTERVAL '1' MONTH",
        "m": "m <= 1.5",
        "s": "s LIKE 'for%'",
        "c": "c = 'ab'",
    }[wanted]
    query = f"SELECT t.*, u.w FROM t JOIN u ON t.i = u.i WHERE {condition}"
    filled.create_stream_table("st", query)
    checked = Checked(filled, "st", query)
    checked.created()
    edits = (
        f"INSERT INTO t VALUES {ROWS[1]}, {ROWS[2]}",
        "UPDATE t SET i = coalesce(i, 0) + 1, b = b - 1, m = m + 0.01, s = concat('for', s), d = d - 1",
        "UPDATE u SET w = concat(w, '!') WHERE i > 0",
        "UPDATE t SET i = NULL, s = NULL, d = NULL, m = NULL, b = NULL, c = 'ab' WHERE i = 2",
        "UPDATE t SET i = 1, s = 'forest', d = DATE'1995-01-01', m = 1, b = 3 WHERE i IS NULL",
    )
    for edit in edits:
        filled.sql(edit)
        with as_in_production(filled):
            checked.refresh({Action.DIFFERENTIAL, Action.NO_DATA})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT i, s FROM t WHERE i < 2 UNION ALL SELECT i, s FROM t WHERE i > 1",
        "SELECT a.i, b.s FROM t a JOIN t b ON a.b = b.b WHERE a.s = 'forest' AND b.i = 2",
        "SELECT i, s FROM t WHERE i IN (SELECT i FROM t WHERE s = 'x') OR i IS NULL",
        "SELECT count(*) AS n FROM (SELECT DISTINCT i, i FROM t)",
        "SELECT i FROM t WHERE i > CAST(NULL AS INT)",
    ],
)
def test_scans_of_one_table_leave_out_their_own_rows_only(filled: Trickle, query: str) -> None:
    filled.create_stream_table("st", query)
    checked = Checked(filled, "st", query)
    checked.created()
    edits = (
        "INSERT INTO t VALUES (12, 7, NULL, 1, 'y', 1, 'a', NULL), (2, 7, NULL, 1, 'forest', 1, 'a', NULL)",
        "INSERT INTO t VALUES (0, 8, NULL, 1, 'x', 1, 'a', NULL)",
        "UPDATE t SET i = 2 WHERE s = 'forest'",
        "DELETE FROM t WHERE i > 1",
    )
    for edit in edits:
        filled.sql(edit)
        checked.refresh({Action.DIFFERENTIAL, Action.NO_DATA})


def test_a_condition_that_drops_too_much_is_noticed(filled: Trickle, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: the greatest value that a condition lets through is left out."""
    monkeypatch.setitem(passing._COMPARED, Check.AT_MOST, passing._COMPARED[Check.LESS])
    query = "SELECT i, m FROM t WHERE m <= 1.5"
    filled.create_stream_table("st", query)
    checked = Checked(filled, "st", query)
    filled.sql(f"INSERT INTO t VALUES {ROWS[0]}")
    with pytest.raises(AssertionError):
        checked.refresh(Action.DIFFERENTIAL)
