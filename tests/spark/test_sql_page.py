"""Every example of docs/sql.md, run: created, changed, refreshed, equal to Spark's answer, in the way it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_trickle import Action, Trickle
from tests.spark.oracle import answer, rows_of, stored
from tests.spark.session import forget_definitions

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)

FILL = [
    "INSERT INTO customers VALUES (1, 'Ann', 'gold'), (2, 'Bern', 'silver'), (3, 'Cem', NULL), (NULL, 'Nobody', 'gold')",
    "INSERT INTO orders VALUES (1, 1, 'Bern', 10.50, TIMESTAMP'2026-03-01 10:00:00', array('a', 'b')), "
    "(2, 2, 'Bern', 20.00, TIMESTAMP'2026-03-09 10:00:00', array()), (3, 1, 'Rome', 5.25, NULL, NULL), "
    "(4, NULL, NULL, 99.99, TIMESTAMP'2026-03-05 10:00:00', array('c', NULL)), (4, NULL, NULL, 99.99, NULL, array('c'))",
    "INSERT INTO readings VALUES (1, TIMESTAMP'2026-03-01 10:00:00', 0.5D, map('unit', 'C'), named_struct('x', 1, 'y', 2)), "
    "(1, NULL, double('NaN'), NULL, NULL), (2, NULL, 1.25D, map('unit', 'F', 'k', NULL), named_struct('x', NULL, 'y', 0))",
    "INSERT INTO parts VALUES (1, NULL, 'root'), (2, 1, 'a'), (3, 2, 'b'), (4, 1, 'c')",
]
EDITS = [
    "INSERT INTO orders VALUES (5, 3, 'Rome', 7.75, TIMESTAMP'2026-03-10 11:00:00', array('z')), (2, 1, 'Bern', 1.00, NULL, NULL)",
    "UPDATE orders SET city = 'Oslo', amount = 30 WHERE id = 2 AND customer = 2",
    "DELETE FROM orders WHERE id = 1",
    "UPDATE customers SET tier = 'gold', id = 4 WHERE name = 'Bern'",
    "INSERT INTO customers VALUES (5, 'Oslo', 'gold')",
    "DELETE FROM customers WHERE id IS NULL",
    "UPDATE readings SET value = 2.5D, info = map('unit', 'K') WHERE sensor = 2",
    "INSERT INTO readings VALUES (3, NULL, -0.0D, map(), NULL)",
    "DELETE FROM parts WHERE id = 2",
    "INSERT INTO parts VALUES (5, 4, 'd'), (6, 5, 'e')",
]


@dataclass(frozen=True)
class Example:
    section: str
    construct: str
    query: str
    support: str


def examples() -> list[Example]:
    """The rows of the page's tables of constructs."""
    text = PAGE.read_text(encoding="utf-8")
    page = text[text.index("## Constructs") : text.index("## Chance")]
    found = []
    for part in page.split("\n### ")[1:]:
        section = part.split("\n", 1)[0]
        for construct, query, support in re.findall(
            r"^\| (.+?) \| `(.+?)` \| ([a-z ]+?) \| .*\|$", part, re.M
        ):
            found.append(Example(section, construct, query.replace(r"\|", "|"), support))
    return found


SECTIONS = sorted({e.section for e in examples()})


def test_the_page_has_examples_and_no_row_without_one() -> None:
    text = PAGE.read_text(encoding="utf-8")
    page = text[text.index("## Constructs") : text.index("## Chance")]
    rows = [line for line in page.splitlines() if line.startswith("|") and not line.startswith("|--")]
    headers = page.count("| construct | example |")
    assert len(examples()) == len(rows) - headers > 50


@pytest.mark.parametrize("section", SECTIONS)
def test_section(trickle: Trickle, database: str, section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [NOW]
    monkeypatch.setattr(trickle._runtime, "clock", lambda: now[0])
    text = PAGE.read_text(encoding="utf-8")
    for table in re.findall(r"^(\w+\(.*\))$", text, re.M):
        name, columns = table.split("(", 1)
        trickle.sql(f"CREATE TABLE {name} ({columns} USING delta")
    for statement in FILL:
        trickle.sql(statement)
    chosen = {f"e{i}": e for i, e in enumerate(examples()) if e.section == section}
    for name, example in chosen.items():
        trickle.create_stream_table(name, example.query)
        said = trickle.explain(name).support
        assert said.split(":")[0] == example.support, f"{example.construct}: {said}"
    now[0] += timedelta(days=2)
    for statement in EDITS:
        trickle.sql(statement)
    forget_definitions(trickle)
    for name, example in chosen.items():
        result = trickle.refresh_stream_table(name)
        expected = Action.FULL if example.support == "recomputed" else Action.DIFFERENTIAL
        unchanged = {Action.NO_DATA} if "VERSION AS OF" in example.query else {expected}
        assert result.action in unchanged, f"{example.construct}: {result}"
        full = _full_answer(trickle, name, example, now[0])
        assert stored(trickle, name) == full, f"{example.construct}: {result}"
        assert full, f"{example.construct}: an empty answer proves nothing"


def _full_answer(trickle: Trickle, name: str, example: Example, now: datetime):  # type: ignore[no-untyped-def]
    instant = f"TIMESTAMP'{now:%Y-%m-%d %H:%M:%S}Z'"
    query = re.sub(r"now\(\)", instant, example.query)
    query = re.sub(r"current_date\(\)", f"CAST({instant} AS DATE)", query)
    if "VERSION AS OF" in query:
        return rows_of(trickle.sql(query))
    return answer(trickle, name, query)
