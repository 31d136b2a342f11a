"""The command line over Spark: one story in the session of the tests, one in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_trickle import Trickle
from spark_trickle.cli import main
from spark_trickle.cli import place as places


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        assert self.out, self.err
        return json.loads(self.out)


Command = Callable[..., Ended]


@pytest.fixture
def command(
    trickle: Trickle, database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """`trickle` in the session of the tests."""

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[Trickle]:
        yield trickle

    monkeypatch.setattr(places, "open_trickle", opened)

    def run(*arguments: str) -> Ended:
        code = main(list(arguments))
        return Ended(code, *capsys.readouterr())

    return run


def test_a_stream_table_from_its_creation_to_its_end(command: Command, database: str, tmp_path: Path) -> None:
    assert command("sql", "CREATE TABLE t (a INT, b INT) USING delta").code == 0
    assert command("sql", "INSERT INTO t VALUES (1, 10), (1, 5), (2, 7)", "--json").code == 0
    query = tmp_path / "totals.sql"
    query.write_text("SELECT a, sum(b) AS total FROM t GROUP BY a;\n")
    created = command("create", "totals", "--file", str(query), "--schedule", "5m")
    assert created.out.startswith(f"Created {database}.totals: FULL, +2 rows, version 1, "), created.err
    assert created.out.endswith(" s — because it is filled for the first time\n")

    command("sql", "UPDATE t SET b = 8 WHERE a = 2")
    explained = command("explain", "totals", "--json").data
    assert (explained["support"], explained["decision"]["action"]) == ("incremental", "DIFFERENTIAL")
    refreshed = command("refresh", "totals", "--json").data
    assert (refreshed["action"], refreshed["rows_inserted"], refreshed["rows_deleted"]) == (
        "DIFFERENTIAL",
        1,
        1,
    )
    assert "NO_DATA" in command("refresh", "totals").out
    assert command("verify", "totals").out == f"{database}.totals: equal to its query at version 2\n"
    assert command("sql", "SELECT a, total FROM totals ORDER BY a", "--json").data == [
        {"a": 1, "total": 15},
        {"a": 2, "total": 8},
    ]

    command("create", "large", "SELECT * FROM totals WHERE total > 10", "--no-initialize")
    refused = command("drop", "totals")
    assert refused.code == 1
    assert "Drop those first, or use --cascade." in refused.err
    assert command("drop", "totals", "--cascade", "--json").data == {"name": "totals", "dropped": True}
    assert command("sql", "SHOW TABLES", "--json").data == [
        {"namespace": database, "tableName": "t", "isTemporary": False}
    ]


def test_verify_ends_with_1_and_shows_what_differs(command: Command, database: str, trickle: Trickle) -> None:
    command("sql", "CREATE TABLE t USING delta AS SELECT 1 AS a")
    command("create", "copy", "SELECT a FROM t")
    table = trickle._table("copy")
    command("sql", f"INSERT INTO delta.`{table.location}` VALUES (2)")
    with trickle._catalog.begin() as catalog:  # as if the stray row had come with a refresh
        catalog.stream_tables.update(table.id, table_version=2)
    said = command("verify", "copy")
    assert said.code == 1
    assert said.out.splitlines() == [
        f"{database}.copy: differs from its query at version 2: 0 rows missing, 1 unexpected",
        "  unexpected: (2,)",
        f"Mend it: trickle verify {database}.copy --repair",
    ]
    assert command("verify", "copy", "--repair").code == 1
    assert command("verify", "copy", "--json").data["equal"] is True


def test_sql_prints_rows_of_any_type_up_to_the_limit(command: Command) -> None:
    values = "SELECT NULL AS n, 1.10BD AS n, double('NaN') AS x, map('k', date'2025-01-02') AS m"
    assert command("sql", values, "--json").data == [
        {"n": None, "n (2)": "1.10", "x": "nan", "m": {"k": "2025-01-02"}}
    ]
    drawn = command("sql", "SELECT id, if(id = 1, NULL, '[red]') AS word FROM range(9)", "--limit", "2")
    assert [line.split() for line in drawn.out.splitlines()][2:] == [
        ["0", "[red]"],
        ["1", "NULL"],
        ["2", "rows,", "and", "more:", "--limit", "shows", "them"],
    ]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("SELEC 1", "PARSE_SYNTAX_ERROR"),
        ("SELECT * FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT 1 / (id - id) FROM range(3)", "DIVIDE_BY_ZERO"),
    ],
    ids=["syntax", "names", "data"],
)
def test_a_refused_statement_is_one_error(command: Command, statement: str, code: str) -> None:
    said = command("sql", statement)
    assert (said.code, said.out) == (1, "")
    error, hint = said.err.splitlines()
    assert error.startswith(f"Error [{code}]: ")
    assert hint.startswith("Hint: ")
    assert json.loads(command("sql", statement, "--json").err)["error"]["code"] == code


def test_processes_share_a_home_and_say_nothing_but_the_answer(tmp_path: Path) -> None:
    """Two starts of Spark: what one process creates, the next finds by name."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "TRICKLE_HOME": str(tmp_path / "home"),
            "TRICKLE_MASTER": "local[2]",
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        done = subprocess.run(
            [sys.executable, "-m", "spark_trickle", *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done

    run("sql", "CREATE TABLE orders USING delta AS SELECT id, id % 3 AS city FROM range(10)")
    created = json.loads(
        run("create", "sizes", "SELECT city, count(*) AS n FROM orders GROUP BY city", "--json").stdout
    )
    assert (created["name"], created["action"], created["rows_inserted"]) == ("sizes", "FULL", 3)
    assert "sizes" in run("status").stdout
    assert run("graph").stdout.split() == ["orders", "└──", "sizes"]
