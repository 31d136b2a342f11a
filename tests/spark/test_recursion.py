"""Recursive queries from their stored rows: inserts, deletes, cycles, Spark's own limits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_trickle import Action, Trickle, TrickleError
from tests.spark.oracle import Checked

LEVELS = "spark.sql.cteRecursionLevelLimit"
PATHS = (
    "WITH RECURSIVE r(n, path) AS (SELECT id, CAST(id AS STRING) FROM start UNION ALL "
    "SELECT e.d, concat(r.path, '>', e.d) FROM r JOIN e ON e.s = r.n WHERE e.d <> 99) "
)
QUERIES = {
    "all_columns": PATHS + "SELECT n, path FROM r",
    "fewer_columns": PATHS + "SELECT n FROM r",
    "computed": PATHS + "SELECT path || '!' AS p FROM r",
    "grouped": PATHS + "SELECT n, COUNT(*) AS paths FROM r GROUP BY n",
}


@pytest.fixture
def graph(trickle: Trickle, database: str) -> Trickle:
    trickle.sql("CREATE TABLE start (id INT) USING delta")
    trickle.sql("CREATE TABLE e (s INT, d INT) USING delta")
    trickle.sql("INSERT INTO start VALUES (1)")
    trickle.sql("INSERT INTO e VALUES (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (4, 5), (7, 8), (NULL, 1)")
    return trickle


def test_paths_appear_and_disappear(graph: Trickle) -> None:
    checks = [Checked(graph, name, query) for name, query in QUERIES.items()]
    for check in checks:
        graph.create_stream_table(check.name, check.query, refresh_mode="DIFFERENTIAL")
        check.created()
    batches = [
        ["INSERT INTO e VALUES (5, 6), (6, 99)"],
        ["DELETE FROM e WHERE s = 2", "INSERT INTO e VALUES (5, 7)"],
        ["INSERT INTO start VALUES (7), (7), (NULL)", "UPDATE e SET d = 7 WHERE d = 6"],
        ["DELETE FROM start WHERE id = 1", "INSERT INTO e VALUES (8, 9)"],
        ["DELETE FROM e"],
    ]
    for batch in batches:
        for statement in batch:
            graph.sql(statement)
        for check in checks:
            check.refresh({Action.DIFFERENTIAL, Action.NO_DATA})


@pytest.fixture
def few_levels(trickle: Trickle) -> Iterator[None]:
    trickle.spark.conf.set(LEVELS, "8")
    yield
    trickle.spark.conf.unset(LEVELS)


@pytest.mark.usefixtures("few_levels")
def test_a_cycle_is_an_error_only_when_the_query_reaches_it(graph: Trickle) -> None:
    query = PATHS + "SELECT n FROM r"
    graph.sql("INSERT INTO e VALUES (20, 21), (21, 20)")
    graph.create_stream_table("st", query)
    check = Checked(graph, "st", query)
    check.created()
    # The old rows lead into the cycle by the new edge, and out of it again by the one that is gone, for ever.
    graph.sql("DELETE FROM e WHERE s = 4")
    graph.sql("INSERT INTO e VALUES (5, 20)")
    assert "beyond level 8" in check.refresh(Action.FULL).reason
    graph.sql("INSERT INTO e VALUES (4, 20)")
    with pytest.raises(TrickleError) as caught:
        graph.refresh_stream_table("st")
    assert "RECURSION_LEVEL_LIMIT" in caught.value.code
    graph.sql("DELETE FROM e WHERE s = 21")
    check.refresh(Action.DIFFERENTIAL)


@pytest.mark.parametrize(
    "query",
    [
        PATHS + "SELECT n FROM r WHERE n > 1",
        PATHS + "SELECT n, COUNT(*) OVER () AS c FROM r",
    ],
    ids=["filter above", "whole above"],
)
def test_what_is_not_stored_is_run_again(graph: Trickle, query: str) -> None:
    graph.create_stream_table("st", query)
    check = Checked(graph, "st", query)
    check.created()
    graph.sql("INSERT INTO e VALUES (5, 6)")
    check.refresh(Action.FULL)


def test_a_deep_recursion_fails_where_the_query_fails(graph: Trickle) -> None:
    """Five levels, one more, and one too many: a change of one edge alone would not notice."""
    query = PATHS.replace("AS (SELECT", "MAX RECURSION LEVEL 5 AS (SELECT", 1) + "SELECT n FROM r"
    graph.create_stream_table("st", query)
    check = Checked(graph, "st", query)
    check.created()
    graph.sql("INSERT INTO e VALUES (5, 6)")
    check.refresh(Action.DIFFERENTIAL)
    graph.sql("INSERT INTO e VALUES (6, 7)")
    with pytest.raises(TrickleError) as caught:
        graph.refresh_stream_table("st")
    assert "RECURSION_LEVEL_LIMIT" in caught.value.code
    graph.sql("DELETE FROM e WHERE s = 5")
    check.refresh({Action.DIFFERENTIAL, Action.FULL})


def test_too_many_rows_fail_where_the_query_fails(graph: Trickle) -> None:
    graph.spark.conf.set("spark.sql.cteRecursionRowLimit", "10")
    try:
        query = PATHS + "SELECT n FROM r"
        graph.create_stream_table("st", query)
        check = Checked(graph, "st", query)
        check.created()
        graph.sql("INSERT INTO e VALUES (1, 6), (1, 7)")
        with pytest.raises(TrickleError) as caught:
            graph.refresh_stream_table("st")
        assert "RECURSION_ROW_LIMIT" in caught.value.code
        graph.sql("DELETE FROM e WHERE d = 5")
        check.refresh(Action.DIFFERENTIAL)
    finally:
        graph.spark.conf.unset("spark.sql.cteRecursionRowLimit")
