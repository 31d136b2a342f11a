"""ORDER BY … LIMIT from the stored rows: merged, untouched, refilled, always Spark's own answer."""

from __future__ import annotations

import random

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.refresh import top_rows
from tests.spark.oracle import Checked

MOVED = {Action.DIFFERENTIAL, Action.NO_DATA}
QUERIES = {
    "by_key": "SELECT id, score FROM p ORDER BY score DESC, id LIMIT 4",
    "hidden_key": "SELECT id FROM p ORDER BY score NULLS LAST, id LIMIT 4",
    "by_expression": "SELECT upper(name) AS n, id FROM p ORDER BY length(name) DESC NULLS FIRST, name, id LIMIT 5",
    "offset": "SELECT id, score FROM p ORDER BY score NULLS FIRST, id LIMIT 3 OFFSET 2",
    "duplicates": "SELECT score FROM p ORDER BY score LIMIT 5",
    "grouped": "SELECT score, COUNT(*) AS n FROM p GROUP BY score ORDER BY n DESC, score LIMIT 3",
    "joined": "SELECT p.id, q.w FROM p JOIN q ON p.id = q.id ORDER BY q.w DESC, p.id LIMIT 3",
    "floats": "SELECT f, id FROM p ORDER BY f DESC, id LIMIT 4",
}


def test_random_edits_keep_every_limit_equal(trickle: Trickle, database: str) -> None:
    """Scores collide, are NULL, cross the boundary, and whole tops are deleted."""
    chance = random.Random(7)
    trickle.sql("CREATE TABLE p (id INT, score INT, name STRING, f DOUBLE) USING delta")
    trickle.sql("CREATE TABLE q (id INT, w DATE) USING delta")
    trickle.sql(_insert(chance, 12))
    trickle.sql("INSERT INTO q SELECT id, date_add(DATE'2024-01-01', id % 4) FROM p")
    checks = [Checked(trickle, name, query) for name, query in QUERIES.items()]
    for check in checks:
        trickle.create_stream_table(check.name, check.query, refresh_mode="DIFFERENTIAL")
        check.created()
    batches = [
        ["UPDATE p SET score = 9, f = 'NaN' WHERE id % 5 = 1"],
        ["DELETE FROM p WHERE score > 3 OR id < 3"],
        [_insert(chance, 8), "UPDATE p SET score = -1, name = NULL WHERE id > 25"],
        ["DELETE FROM p"],
        [_insert(chance, 9)],
    ]
    for batch in batches:
        for statement in batch:
            trickle.sql(statement)
        for check in checks:
            check.refresh(MOVED)


SCORES = ["NULL", "1", "2", "3", "5"]
NAMES = ["NULL", "'a'", "'B'", "'long'"]
FLOATS = ["0.0D", "double('-0.0')", "NULL", "1.5D", "2.5D"]


def _insert(chance: random.Random, rows: int) -> str:
    """Some rows, the first of them twice."""
    drawn = [[str(chance.randint(1, 40)), *map(chance.choice, (SCORES, NAMES, FLOATS))] for _ in range(rows)]
    values = [f"({', '.join(row)})" for row in [*drawn, drawn[0]]]
    return f"INSERT INTO p VALUES {', '.join(values)}"


def test_only_a_change_that_empties_places_reads_on(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trickle.sql("CREATE TABLE p (id INT, score INT) USING delta")
    trickle.sql("INSERT INTO p SELECT id, id FROM range(1, 10)")
    query = "SELECT id, score FROM p ORDER BY score LIMIT 3"
    trickle.create_stream_table("first", query)
    check = Checked(trickle, "first", query)
    check.created()
    reads: list[bool] = []
    right = top_rows.Race._read
    monkeypatch.setattr(
        top_rows.Race, "_read", lambda self, b, beyond: reads.append(beyond) or right(self, b, beyond)
    )
    trickle.sql("INSERT INTO p VALUES (20, 20)")
    assert check.refresh(Action.DIFFERENTIAL).rows_inserted == 0
    trickle.sql("INSERT INTO p VALUES (0, 0)")
    check.refresh(Action.DIFFERENTIAL)
    trickle.sql("UPDATE p SET score = 1 WHERE id = 2")
    check.refresh(Action.DIFFERENTIAL)
    assert not reads
    trickle.sql("DELETE FROM p WHERE id < 2")
    check.refresh(Action.DIFFERENTIAL)
    assert reads == [True]


def test_rows_that_move_and_stay_need_no_job_and_groups_that_leave_one_evaluation(
    trickle: Trickle, database: str
) -> None:
    feed = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
    trickle.sql(f"CREATE TABLE p (id INT, k INT, v INT) USING delta {feed}")
    trickle.sql("INSERT INTO p SELECT id, id % 10, id FROM range(100)")
    query = "SELECT k, SUM(v) AS s FROM p GROUP BY k ORDER BY s DESC LIMIT 3"
    trickle.create_stream_table("most", query)
    check = Checked(trickle, "most", query)
    check.created()

    def jobs() -> int:
        return int(trickle.spark.sparkContext._jsc.sc().dagScheduler().nextJobId())

    trickle.sql("UPDATE p SET v = v + 5 WHERE id = 9")
    before = jobs()
    assert trickle.refresh_stream_table("most").action is Action.DIFFERENTIAL
    assert jobs() == before
    check.created()
    trickle.sql("DELETE FROM p WHERE k = 9")
    check.refresh(Action.DIFFERENTIAL)
    trickle.sql("UPDATE p SET v = 0 WHERE k = 8 AND id > 20")
    trickle.sql("UPDATE p SET v = NULL WHERE k = 7")
    check.refresh(Action.DIFFERENTIAL)


def test_a_broken_boundary_is_noticed(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A negative control: without reading on, the check must fail."""
    trickle.sql("CREATE TABLE p (id INT) USING delta")
    trickle.sql("INSERT INTO p SELECT id FROM range(1, 10)")
    query = "SELECT id FROM p ORDER BY id LIMIT 3"
    trickle.create_stream_table("first", query)
    check = Checked(trickle, "first", query)
    check.created()
    nothing = lambda self, boundary, beyond: self.read().limit(0)  # noqa: E731
    monkeypatch.setattr(top_rows.Race, "_read", nothing)
    trickle.sql("DELETE FROM p WHERE id = 1")
    with pytest.raises(AssertionError, match="missing"):
        check.refresh(Action.DIFFERENTIAL)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT id FROM (SELECT id, score FROM p ORDER BY id LIMIT 3) WHERE score > 1", "LIMIT"),
        ("SELECT id FROM p ORDER BY id OFFSET 2", "LIMIT"),
        ("SELECT score, SUM(f) AS t FROM p GROUP BY score ORDER BY t LIMIT 2", "LIMIT"),
    ],
    ids=["filter above", "no limit", "unrepeatable order"],
)
def test_what_cannot_be_continued_is_recomputed(
    trickle: Trickle, database: str, query: str, why: str
) -> None:
    trickle.sql("CREATE TABLE p (id INT, score INT, f DOUBLE) USING delta")
    trickle.sql("INSERT INTO p VALUES (1, 1, 1.5D), (2, 2, 2.5D), (3, 3, 0.5D), (4, 4, 9.5D)")
    trickle.create_stream_table("st", query)
    check = Checked(trickle, "st", query)
    check.created()
    trickle.sql("DELETE FROM p WHERE id = 2")
    assert why in check.refresh(Action.FULL).reason
