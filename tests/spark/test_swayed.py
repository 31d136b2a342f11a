"""Rows that are compared with one value for all: when it changes, only those are looked at that it decides about anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_trickle import Action, Trickle
from spark_trickle.catalyst.build import Builder
from tests.spark.oracle import Checked

TABLES = (
    "CREATE TABLE c (k INT, big BIGINT, money DECIMAL(10,2), day DATE, at TIMESTAMP, name STRING) USING delta",
    "CREATE TABLE o (k INT, big BIGINT, money DECIMAL(10,2), day DATE, at TIMESTAMP, name STRING) USING delta",
)
ROW = "({k}, {k}, {k}.5, DATE'2024-01-{d:02}', TIMESTAMP'1970-01-01 00:00:{d:02}', 'n{k}')"
EDITS = (
    ("INSERT INTO o VALUES (7, 7, 7.5, DATE'2024-01-07', TIMESTAMP'1970-01-01 00:00:07', 'n7')",),
    ("DELETE FROM o WHERE k > 4", "UPDATE c SET money = money + 3, big = big + 3 WHERE k = 2"),
    ("INSERT INTO c SELECT * FROM o", "DELETE FROM c WHERE k = 5"),
    ("DELETE FROM o",),
    ("INSERT INTO o SELECT * FROM c WHERE k > 2", "UPDATE c SET k = NULL WHERE k = 3"),
    ("UPDATE o SET k = k + 1, big = big - 1, money = 0, day = NULL, at = NULL, name = 'n2'",),
)
COMPARED = {
    "decimal": "c.money > (SELECT avg(money) FROM o)",
    "bigint": "c.big >= (SELECT max(big) FROM o)",
    "count": "c.k < (SELECT count(*) FROM o)",
    "date": "c.day <= (SELECT max(day) FROM o WHERE k < 6)",
    "timestamp": "c.at > (SELECT min(at) FROM o)",
    "string": "c.name = (SELECT max(name) FROM o)",
    "or": "c.name = 'n2' OR c.money < (SELECT min(money) FROM o)",
    "null": "coalesce(c.money > (SELECT max(money) FROM o), c.k = 1)",
    "about itself": "c.money > (SELECT avg(money) FROM c WHERE money > 2)",
}
SHAPES = {
    "rows": "SELECT c.k, c.name FROM c WHERE {}",
    "groups": "SELECT c.name, count(*) AS n, sum(c.money) AS s FROM c WHERE {} GROUP BY c.name",
    "no partner": "SELECT c.k FROM c WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.k = c.k) AND ({})",
    "partners": "SELECT c.k, o.big FROM c JOIN o ON o.k = c.k WHERE {}",
    "perhaps partners": "SELECT c.k, o.big FROM c LEFT JOIN o ON o.k = c.k WHERE {}",
    "below": "SELECT name, max(k) AS k FROM (SELECT c.name, c.k FROM c WHERE {}) GROUP BY name",
}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether the values were at hand, whenever they were asked for."""
    asked: list[bool] = []
    right = Builder._constants

    def noted(self, side):
        found = right(self, side)
        asked.append(found is not None)
        return found

    monkeypatch.setattr(Builder, "_constants", noted)
    yield asked


@pytest.mark.parametrize("shape", SHAPES)
def test_only_rows_are_looked_at_that_the_value_decides_about_anew(
    trickle: Trickle, database: str, known: list[bool], shape: str
) -> None:
    for table, statement in zip("co", TABLES, strict=True):
        trickle.sql(statement)
        rows = ", ".join(ROW.format(k=k, d=k) for k in range(1, 7))
        trickle.sql(f"INSERT INTO {table} VALUES {rows}")
        trickle.sql(f"INSERT INTO {table} VALUES (NULL, NULL, NULL, NULL, NULL, NULL)")
    every = {}
    first = list(SHAPES).index(shape)
    for name, condition in list(COMPARED.items())[first % 5 :: 5]:
        query = SHAPES[shape].format(condition)
        own = f"st_{name.replace(' ', '_')}"
        trickle.create_stream_table(own, query)
        every[name] = Checked(trickle, own, query)
        every[name].created()
        assert "decides otherwise now" in str(trickle.explain(own))
    for statements in EDITS:
        for statement in statements:
            trickle.sql(statement)
        for checked in every.values():
            checked.refresh([Action.DIFFERENTIAL, Action.NO_DATA])
    # Each change of each value asks for both of them.
    assert len(known) > 2 * len(every)
    assert all(known)
