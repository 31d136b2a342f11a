"""Bad input gets one clear sentence, a hint and a code; nothing is half-created."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_trickle import Settings, Trickle, TrickleError

QUERIES: dict[str, tuple[str, str]] = {
    "unknown table": ("SELECT * FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND"),
    "unknown database": ("SELECT * FROM nowhere.t", "TABLE_OR_VIEW_NOT_FOUND"),
    "unknown column": ("SELECT nope FROM bad.t", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    "ambiguous column": ("SELECT id FROM bad.t JOIN bad.u ON t.id = u.id", "AMBIGUOUS_REFERENCE"),
    "unknown function": ("SELECT frobnicate(id) AS x FROM bad.t", "UNRESOLVED_ROUTINE"),
    "syntax": ("SELEC id FROM bad.t", "PARSE_SYNTAX_ERROR"),
    "two statements": ("SELECT id FROM bad.t; DROP TABLE bad.t", "PARSE_SYNTAX_ERROR"),
    "empty": ("", "EMPTY_QUERY"),
    "blank": ("  ;  ", "EMPTY_QUERY"),
    "drop": ("DROP TABLE bad.t", "NOT_A_SELECT"),
    "insert": ("INSERT INTO bad.t VALUES (9, 9)", "NOT_A_SELECT"),
    "create": ("CREATE TABLE bad.x AS SELECT 1 AS a", "NOT_A_SELECT"),
    "show": ("SHOW TABLES", "NOT_A_SELECT"),
    "set": ("SET spark.sql.ansi.enabled = false", "NOT_A_SELECT"),
    "aggregate mixed with column": ("SELECT id, SUM(v) AS s FROM bad.t", "MISSING_GROUP_BY"),
    "union of different widths": (
        "SELECT id FROM bad.t UNION SELECT id, v FROM bad.t",
        "NUM_COLUMNS_MISMATCH",
    ),
    "type mismatch": ("SELECT id FROM bad.t WHERE id", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
    "rand": ("SELECT id, rand() AS r FROM bad.t", "VOLATILE_FUNCTION"),
    "uuid": ("SELECT id, uuid() AS u FROM bad.t", "VOLATILE_FUNCTION"),
    "current_time": ("SELECT id, current_time() AS n FROM bad.t", "VOLATILE_FUNCTION"),
    "special date": ("SELECT id, DATE'today' AS d FROM bad.t", "VOLATILE_FUNCTION"),
    "chance in a subquery": (
        "SELECT id FROM bad.t WHERE EXISTS (SELECT 1 FROM bad.u WHERE rand() < 0.5)",
        "VOLATILE_FUNCTION",
    ),
    "row ids": ("SELECT monotonically_increasing_id() AS i FROM bad.t", "VOLATILE_FUNCTION"),
    "file names": ("SELECT input_file_name() AS f FROM bad.t", "VOLATILE_FUNCTION"),
    "file metadata": ("SELECT _metadata.file_path AS f FROM bad.t", "VOLATILE_FUNCTION"),
    "sample": ("SELECT * FROM bad.t TABLESAMPLE (50 PERCENT)", "VOLATILE_FUNCTION"),
    "limit without order": ("SELECT id FROM bad.t LIMIT 3", "VOLATILE_FUNCTION"),
    "duplicate columns": ("SELECT id, v AS ID FROM bad.t", "DUPLICATE_COLUMN"),
    "untyped column": ("SELECT id, NULL AS x FROM bad.t", "UNTYPED_COLUMN"),
    "reserved column": ("SELECT id AS __st_x FROM bad.t", "RESERVED_COLUMN"),
    "parquet source": ("SELECT a FROM bad.plain", "NOT_A_DELTA_TABLE"),
    "temporary view": ("SELECT * FROM temporary", "TABLE_OR_VIEW_NOT_FOUND"),
    "reads itself": ("SELECT * FROM bad.broken", "TABLE_OR_VIEW_NOT_FOUND"),
    "interval column": ("SELECT make_interval(1, 2) AS i FROM bad.t", "UNSUPPORTED_TYPE"),
    "data error while filling": ("SELECT 1 / (id - id) AS x FROM bad.t", "DIVIDE_BY_ZERO"),
}

NAMES: dict[str, tuple[Any, str]] = {
    "four parts": ("a.b.c.d", "INVALID_NAME"),
    "empty part": ("bad..x", "INVALID_NAME"),
    "unclosed backtick": ("bad.`x", "INVALID_NAME"),
    "slash": ("bad.`a/b`", "INVALID_NAME"),
    "reserved": ("bad.__st_mine", "INVALID_NAME"),
    "space": ("bad.`my table`", "INVALID_NAME"),
    "dot": ("bad.`a.b`", "INVALID_NAME"),
    "backtick": ("bad.`a``b`", "INVALID_NAME"),
    "empty": ("", "INVALID_NAME"),
    "not text": (7, "INVALID_NAME"),
    "taken by a table": ("bad.t", "NAME_TAKEN"),
    "taken by a view": ("bad.seen", "NAME_TAKEN"),
    "taken by a stream table": ("bad.good", "NAME_TAKEN"),
    "unknown database": ("nowhere.x", "UNKNOWN_DATABASE"),
    "other catalog": ("elsewhere.bad.x", "UNSUPPORTED_CATALOG"),
}

OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "schedule": ({"schedule": "soon"}, "INVALID_SCHEDULE"),
    "zero schedule": ({"schedule": "0s"}, "INVALID_SCHEDULE"),
    "cron": ({"schedule": "61 * * * *"}, "INVALID_SCHEDULE"),
    "mode": ({"refresh_mode": "DIFFERENTAL"}, "INVALID_REFRESH_MODE"),
    "both or_replace and if_not_exists": ({"or_replace": True, "if_not_exists": True}, "INVALID_OPTION"),
    "query of a wrong type": ({"query": 7}, "INVALID_QUERY"),
    "differential impossible": (
        {"query": "SELECT COUNT(DISTINCT id) AS c FROM bad.t", "refresh_mode": "DIFFERENTIAL"},
        "NOT_DIFFERENTIAL",
    ),
}


@pytest.fixture(scope="module")
def bad(trickle: Trickle) -> Iterator[Trickle]:
    trickle.sql("CREATE DATABASE bad")
    trickle.sql("CREATE TABLE bad.t (id INT, v INT) USING delta")
    trickle.sql("INSERT INTO bad.t VALUES (1, 1)")
    trickle.sql("CREATE TABLE bad.u (id INT, at TIMESTAMP) USING delta")
    trickle.sql("CREATE TABLE bad.plain (a INT) USING parquet")
    trickle.sql("CREATE VIEW bad.seen AS SELECT id FROM bad.t")
    trickle.sql("CREATE TEMPORARY VIEW temporary AS SELECT 1 AS a")
    trickle.create_stream_table("bad.good", "SELECT id FROM bad.t")
    yield trickle
    trickle.sql("DROP VIEW temporary")


def refused(trickle: Trickle, name: Any, query: Any, **options: Any) -> TrickleError:
    """Try to create; the error must read well, and nothing may be left behind."""
    before = state(trickle)
    with pytest.raises(TrickleError) as caught:
        trickle.create_stream_table(name, query, **options)
    error = caught.value
    assert state(trickle) == before
    assert error.hint
    assert error.code
    assert error.message.endswith((".", "?"))
    assert "\n" not in error.message
    assert "Exception" not in error.message and "Traceback" not in error.message
    assert len(error.message) < 300
    return error


def state(trickle: Trickle) -> tuple[Any, ...]:
    folder = Path(trickle.spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / "bad.db"
    return (
        sorted(path.name for path in folder.iterdir()),
        sorted(table.name for table in trickle.spark.catalog.listTables("bad")),
        sorted(trickle.status()["name"]),
    )


@pytest.mark.parametrize("case", QUERIES)
def test_bad_query(bad: Trickle, case: str) -> None:
    query, code = QUERIES[case]
    assert refused(bad, "bad.broken", query).code == code


@pytest.mark.parametrize("case", NAMES)
def test_bad_name(bad: Trickle, case: str) -> None:
    name, code = NAMES[case]
    assert refused(bad, name, "SELECT id FROM bad.t").code == code


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_option(bad: Trickle, case: str) -> None:
    options, code = OPTIONS[case]
    query = options.pop("query", "SELECT id FROM bad.t")
    assert refused(bad, "bad.broken", query, **options).code == code


@pytest.mark.parametrize(
    "verb", ["refresh_stream_table", "drop_stream_table", "verify", "suspend", "refresh_history"]
)
def test_a_misspelt_name_is_guessed(bad: Trickle, verb: str) -> None:
    with pytest.raises(TrickleError) as caught:
        getattr(bad, verb)("bad.goood")
    assert caught.value.code == "UNKNOWN_STREAM_TABLE"
    assert caught.value.hint == "Did you mean `bad.good`?"


def test_alter_checks_what_it_is_given(bad: Trickle) -> None:
    for options, code in [
        ({"schedule": "x"}, "INVALID_SCHEDULE"),
        ({"refresh_mode": "x"}, "INVALID_REFRESH_MODE"),
        ({"status": "ERROR"}, "INVALID_STATUS"),
        ({}, "NOTHING_TO_CHANGE"),
    ]:
        with pytest.raises(TrickleError) as caught:
            bad.alter_stream_table("bad.good", **options)
        assert caught.value.code == code


def test_a_missing_refresh_cannot_be_verified(bad: Trickle) -> None:
    with pytest.raises(TrickleError) as caught:
        bad.verify("bad.good", as_of=999_999)
    assert caught.value.code == "UNKNOWN_REFRESH"


def test_columns_may_have_any_name(bad: Trickle) -> None:
    bad.create_stream_table("bad.odd", "SELECT id AS `a b`, COUNT(*) FROM bad.t GROUP BY id")
    assert bad.verify("bad.odd").equal
    bad.drop_stream_table("bad.odd")


def test_a_session_without_delta_is_refused(bad: Trickle) -> None:
    with pytest.raises(TrickleError) as caught:
        Trickle(object())  # type: ignore[arg-type]
    assert caught.value.code == "NO_CLASSIC_SESSION"


def test_settings_are_checked() -> None:
    with pytest.raises(TrickleError) as caught:
        Settings(full_refresh_threshold=3)
    assert caught.value.code == "INVALID_SETTING"
