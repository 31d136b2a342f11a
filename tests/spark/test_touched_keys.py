"""Touched keys, told by each input's own change: by all key columns or by some, with NULLs, below limits too."""

from __future__ import annotations

import random

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.storage.tables import Snapshot
from tests.spark.oracle import Checked

MOVED = {Action.DIFFERENTIAL, Action.NO_DATA}
QUERIES = {
    "joined": "SELECT o.id, o.day, sum(l.f) AS s FROM o JOIN l ON o.id = l.id GROUP BY o.id, o.day",
    "three": "SELECT l.id, o.day, c.name, sum(l.f) AS s FROM o JOIN l ON o.id = l.id"
    " JOIN c ON o.customer = c.customer WHERE coalesce(l.f, 0) + coalesce(c.size, 0) > 0 GROUP BY l.id, o.day, c.name",
    "outer": "SELECT o.id, o.customer, sum(l.f) AS s FROM o LEFT JOIN l ON o.id = l.id GROUP BY o.id, o.customer",
    "right": "SELECT l.id, o.day, sum(l.f) AS s FROM o LEFT JOIN l ON o.id = l.id AND o.day = l.id GROUP BY l.id, o.day",
    "looked_up": "SELECT o.id, o.day, sum(o.f) AS s FROM o WHERE NOT EXISTS"
    " (SELECT 1 FROM l WHERE l.id = o.id AND l.f > 1) OR day IN (SELECT size FROM c) GROUP BY o.id, o.day",
    "above_all": "SELECT customer, sum(f) AS s FROM o WHERE f > (SELECT avg(size) FROM c) GROUP BY customer",
    "top": "SELECT o.id, o.day, sum(l.n) AS s FROM o JOIN l ON o.id = l.id GROUP BY o.id, o.day"
    " ORDER BY s DESC NULLS LAST, o.id, o.day LIMIT 3",
    "top_hidden": "SELECT sum(l.n) AS s FROM o JOIN l ON o.id = l.id GROUP BY o.id, o.day"
    " ORDER BY s NULLS FIRST, o.id, o.day LIMIT 4",
    "top_window": "SELECT id, n, rank() OVER (PARTITION BY id ORDER BY n) AS r FROM l ORDER BY r DESC, id, n LIMIT 5",
}


def fill(trickle: Trickle, chance: random.Random) -> None:
    trickle.sql("CREATE TABLE o (id INT, customer INT, day INT, f DOUBLE) USING delta")
    trickle.sql("CREATE TABLE l (id INT, n INT, f DOUBLE) USING delta")
    trickle.sql("CREATE TABLE c (customer INT, name STRING, size INT) USING delta")
    for statement in inserts(chance, 12):
        trickle.sql(statement)


def inserts(chance: random.Random, rows: int) -> list[str]:
    """Few keys, NULL among them, and each table's first row twice."""

    def some(*kinds: str) -> str:
        drawn = [[draw(chance, kind) for kind in kinds] for _ in range(rows)]
        return ", ".join(f"({', '.join(row)})" for row in [*drawn, drawn[0]])

    return [
        f"INSERT INTO o VALUES {some('id', 'id', 'small', 'float')}",
        f"INSERT INTO l VALUES {some('id', 'small', 'float')}",
        f"INSERT INTO c VALUES {some('id', 'name', 'small')}",
    ]


def draw(chance: random.Random, kind: str) -> str:
    number = chance.randint(0, 6)
    drawn = {"id": str(number), "small": str(number % 3), "float": f"{number}.5D", "name": f"'n{number % 2}'"}
    return drawn[kind] if number else "NULL"


@pytest.mark.parametrize("unique", [True, False], ids=["by some keys", "by all keys"])
def test_random_edits_keep_every_group_equal(
    trickle: Trickle, database: str, unique: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Snapshot, "may_be_unique", lambda _self, _column: unique)
    chance = random.Random(11)
    fill(trickle, chance)
    checks = [Checked(trickle, name, query) for name, query in QUERIES.items()]
    for check in checks:
        trickle.create_stream_table(check.name, check.query, "manual", "AUTO")
        check.created()
    batches = [
        inserts(chance, 2),
        ["UPDATE o SET day = 2, id = 3 WHERE id = 2", "DELETE FROM l WHERE id = 1"],
        ["UPDATE c SET size = size + 1, name = 'other' WHERE customer > 2 OR customer IS NULL"],
        ["UPDATE l SET id = NULL WHERE n = 1", "DELETE FROM o WHERE id IS NULL", *inserts(chance, 1)],
    ]
    for batch in batches:
        for statement in batch:
            trickle.sql(statement)
        for check in checks:
            check.refresh(MOVED)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, sum(d) AS s FROM (SELECT coalesce(k, 0) AS k, d FROM a UNION ALL SELECT k, d FROM b) GROUP BY k",
        "SELECT k, j, sum(d) AS s FROM (SELECT coalesce(k, 0) AS k, 7 AS j, d FROM a"
        " UNION ALL SELECT k, j, d FROM b) GROUP BY k, j",
        "SELECT coalesce(k, 0) AS k, d FROM a UNION SELECT k, d FROM b",
        "SELECT s, count(*) AS n, max(d) AS d FROM (SELECT named_struct('x', coalesce(k, 0)) AS s, d FROM a"
        " UNION ALL SELECT named_struct('x', k), d FROM b) GROUP BY s HAVING max(d) > sum(d) - 100",
    ],
    ids=["one key", "two keys", "distinct", "struct"],
)
def test_a_key_that_is_null_in_one_input_only(trickle: Trickle, database: str, query: str) -> None:
    """The changes of both are merged into one list of keys; it must not forget that NULL may be among them."""
    trickle.sql("CREATE TABLE a (k BIGINT, d DOUBLE) USING delta")
    trickle.sql("CREATE TABLE b (k BIGINT, j INT, d DOUBLE) USING delta")
    trickle.sql("INSERT INTO b VALUES (NULL, NULL, 1), (5, 7, 1)")
    trickle.create_stream_table("st", query)
    check = Checked(trickle, "st", query)
    check.created()
    trickle.sql("INSERT INTO a VALUES (200, 1)")
    trickle.sql("INSERT INTO b VALUES (NULL, NULL, 2)")
    check.refresh(Action.DIFFERENTIAL)
    trickle.sql("UPDATE a SET k = 201")
    trickle.sql("DELETE FROM b WHERE k IS NULL")
    check.refresh(Action.DIFFERENTIAL)
