"""The command line where no Spark is needed: looking, options, errors and exit codes."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from spark_trickle import Action, RefreshResult, __version__
from spark_trickle.catalog import Catalog, Dependency
from spark_trickle.cli import main
from spark_trickle.cli import place as places
from spark_trickle.cli.answers import plain, refresh_line
from spark_trickle.cli.failures import failure_of
from spark_trickle.cli.place import Given, Place
from spark_trickle.cli.progress import Spinner
from spark_trickle.errors import StateError
from spark_trickle.storage.embedded import start_session
from tests.catalog.samples import NOON, FakeClock, frontier, stream_table

NAMESPACE = "spark_catalog.default."


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        assert self.out, self.err
        return json.loads(self.out)


Trickled = Callable[..., Ended]


@pytest.fixture
def trickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Trickled:
    """The command, run in an empty folder in which Spark must not start."""
    monkeypatch.chdir(tmp_path)
    for name in ("TRICKLE_HOME", "TRICKLE_CATALOG", "TRICKLE_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("spark_trickle.storage.embedded.start_session", _no_spark)

    def run(*arguments: str) -> Ended:
        code = main(list(arguments))
        return Ended(code, *capsys.readouterr())

    return run


def _no_spark(_home: Path) -> None:
    raise AssertionError("Spark was started")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """orders and customers → paid_orders → revenue; one refresh that failed, two that completed."""
    folder, clock = tmp_path / ".trickle", FakeClock()
    with Catalog.open(f"sqlite:///{folder}/catalog.db", clock) as catalog, catalog.begin() as rows:
        paid = stream_table(NAMESPACE + "paid_orders", status="ACTIVE", frontier=frontier(), table_version=4)
        revenue = stream_table(NAMESPACE + "revenue", status="ERROR", last_error="`paid` [x] is gone.")
        rows.stream_tables.add(paid)
        rows.stream_tables.add(revenue)
        reads = [
            Dependency(paid.id, NAMESPACE + name, "delta", "id", f"/tables/{name}", (("id", "bigint"),))
            for name in ("customers", "orders")
        ]
        rows.dependencies.replace(paid.id, reads)
        above = Dependency(revenue.id, NAMESPACE + "paid_orders", "stream_table", "id", "/tables/paid_orders")
        rows.dependencies.replace(revenue.id, [above])
        for sequence, action in enumerate(("FULL", "DIFFERENTIAL"), start=1):
            started = rows.refreshes.start(paid.id, sequence, "host:1:1:1")
            clock.advance(0.84)
            done = {
                "status": "COMPLETED",
                "action": action,
                "reason": "`orders` changed",
                "version": sequence,
            }
            rows.refreshes.finish(started.id, **done, rows_inserted=3, rows_deleted=2, frontier=frontier())
        failed = rows.refreshes.start(revenue.id, 1, "host:1:1:1")
        rows.refreshes.finish(failed.id, status="FAILED", error="`paid` is gone.", error_code="X")
    return folder


# Looking


@pytest.mark.parametrize("command", ["status", "history", "graph"])
def test_looking_where_there_is_no_home_finds_nothing_and_leaves_nothing(
    trickle: Trickled, tmp_path: Path, command: str
) -> None:
    said, data = trickle(command), trickle(command, "--json")
    assert (said.code, said.err, data.code, data.data) == (0, "", 0, [])
    assert said.out.startswith("No ")
    assert list(tmp_path.iterdir()) == []


def test_status_is_a_table_of_whole_lines(trickle: Trickled, home: Path) -> None:
    said = trickle("status")
    paid = next(line for line in said.out.splitlines() if "paid_orders" in line)
    assert paid.split()[:4] == ["paid_orders", "ACTIVE", "AUTO", "5m"]
    assert "DIFFERENTIAL" in paid
    assert "`paid` [x] is gone." in said.out


def test_status_as_json_has_iso_times_whole_versions_and_nulls(trickle: Trickled, home: Path) -> None:
    paid, revenue = trickle("status", "--json").data
    assert (paid["name"], paid["version"], paid["last_action"]) == ("paid_orders", 4, "DIFFERENTIAL")
    assert datetime.fromisoformat(paid["last_refresh"]) > NOON
    assert (revenue["version"], revenue["last_refresh"], revenue["last_error"]) == (
        None,
        None,
        "`paid` [x] is gone.",
    )


def test_history_is_newest_first_and_limited(trickle: Trickled, home: Path) -> None:
    assert [row["name"] for row in trickle("history", "--json").data] == [
        "revenue",
        "paid_orders",
        "paid_orders",
    ]
    (newest,) = trickle("history", "paid_orders", "--limit", "1", "--json").data
    assert (newest["action"], newest["version"], newest["seconds"]) == ("DIFFERENTIAL", 2, 0.84)
    assert newest["frontier"]["inputs"] == {"spark_catalog.default.orders": ["delta-1", 7]}
    said = trickle("history").out
    assert "+3 −2" in said
    assert "`orders` changed" in said
    assert "`paid` is gone." in said


def test_graph_is_a_tree_that_draws_shared_branches_once(trickle: Trickled, home: Path) -> None:
    assert [line.rstrip() for line in trickle("graph").out.splitlines()] == [
        "customers",
        "└── paid_orders",
        "    └── revenue",
        "orders",
        "└── paid_orders (see above)",
    ]
    assert trickle("graph", "--json").data[0] == {
        "source": "customers", "source_kind": "delta", "stream_table": "paid_orders", "columns": "id",
    }  # fmt: skip


def test_looking_does_not_even_import_spark(home: Path) -> None:
    program = (
        "import sys; from spark_trickle.cli import main\n"
        f"assert main(['status', '--home', {str(home)!r}]) == 0\n"
        "sys.exit('pyspark was imported' if 'pyspark' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# Changing


def test_suspend_and_resume_change_the_status(trickle: Trickled, home: Path) -> None:
    def status() -> str:
        return str(trickle("status", "--json").data[0]["status"])

    assert trickle("suspend", "paid_orders").out == "`paid_orders` is suspended.\n"
    assert status() == "SUSPENDED"
    assert trickle("resume", "paid_orders", "--json").data == {"name": "paid_orders", "status": "ACTIVE"}
    assert status() == "ACTIVE"


def test_alter_changes_what_is_given(trickle: Trickled, home: Path) -> None:
    said = trickle("alter", "paid_orders", "--schedule", "1h30m", "--mode", "full")
    assert (said.code, said.out) == (0, "`paid_orders` has schedule 1h30m, refresh mode full now.\n")
    changed = trickle("status", "--json").data[0]
    assert (changed["schedule"], changed["refresh_mode"]) == ("1h30m", "FULL")


# Places


def test_options_are_understood_before_and_after_the_command(trickle: Trickled, home: Path) -> None:
    elsewhere = home.rename(home.parent / "elsewhere")
    for arguments in (
        ["--home", str(elsewhere), "--json", "status"],
        ["status", "--home", str(elsewhere), "--json"],
        ["--json", "status", "--catalog", f"sqlite:///{elsewhere}/catalog.db"],
    ):
        assert len(trickle(*arguments).data) == 2


def test_options_win_over_the_environment_and_that_over_the_default() -> None:
    environment = {"TRICKLE_HOME": "/a", "TRICKLE_CATALOG": "sqlite:////c.db"}
    assert Place.of(Given(), environment) == Place(Path("/a"), "sqlite:////c.db")
    assert Place.of(Given(Path("/b")), environment).home == Path("/b")
    assert Place.of(Given(), {"TRICKLE_HOME": ""}) == Place(Path(".trickle"), None)
    assert Given(Path("/b")).over(Given(Path("/a"), "url", True)) == Given(Path("/b"), "url", True)


def test_the_environment_names_the_home(
    trickle: Trickled, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRICKLE_HOME", str(home.rename(home.parent / "elsewhere")))
    assert len(trickle("status", "--json").data) == 2


# Errors


def test_an_unknown_name_is_one_sentence_with_a_guess(trickle: Trickled, home: Path) -> None:
    for command in ("suspend", "history", "refresh", "verify", "drop"):
        said = trickle(command, "paid_order")
        assert (said.code, said.out) == (1, "")
        assert said.err == (
            "Error [UNKNOWN_STREAM_TABLE]: There is no stream table `paid_order`.\n"
            "Hint: Did you mean `paid_orders`?\n"
        ), command


def test_an_error_as_json_is_one_document_on_stderr(trickle: Trickled, home: Path) -> None:
    for arguments in (["resume", "paid_order", "--json"], ["--json", "resume", "paid_order"]):
        said = trickle(*arguments)
        assert (said.code, said.out) == (1, "")
        assert json.loads(said.err) == {
            "error": {
                "code": "UNKNOWN_STREAM_TABLE",
                "message": "There is no stream table `paid_order`.",
                "hint": "Did you mean `paid_orders`?",
            }
        }


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["statsu"], 2, "Did you mean 'status'?"),
        (["status", "--jason"], 2, "--json"),
        (["history", "--limit", "none"], 2, "--limit"),
        (["history", "--limit", "0"], 2, "--limit"),
        (["create"], 2, "NAME"),
        (["create", "x", "--file", "missing.sql"], 2, "missing.sql"),
        (["create", "x"], 1, "--file"),
        (["create", "x", "SELECT 1", "--file", "q.sql"], 1, "one query"),
        (["create", "x", "--file", "latin.sql"], 1, "UTF-8"),
        (["create", "x", "SELECT 1", "--or-replace", "--if-not-exists"], 1, "exclude each other"),
        (["create", "x", "SELECT 1", "--schedule", "soon"], 1, "INVALID_SCHEDULE"),
        (["create", "x", "SELECT 1", "--mode", "FULLL"], 1, "Did you mean `FULL`?"),
        (["create", "a.b.c.d", "SELECT 1"], 1, "at most three"),
        (["create", "paid_orders", "SELECT 1"], 1, "Use --or-replace to define it anew"),
        (["alter", "paid_orders"], 1, "Give --schedule, --mode, --diamond-consistency or --status."),
        (["alter", "paid_orders", "--status", "ACTIV"], 1, "Did you mean `ACTIVE`?"),
        (["verify", "paid_orders", "--as-of", "1", "--repair"], 1, "--as-of"),
        (["verify", "paid_orders", "--as-of", "99"], 1, "no refresh number 99"),
        (["verify", "revenue"], 1, "has not been filled yet"),
        (["explain"], 1, "--query"),
        (["status", "--catalog", "mysql://x/y"], 1, "mysql"),
        (["status", "--home", "q.sql"], 1, "cannot be created"),
    ],
)
def test_bad_input_is_one_error_and_one_hint(
    trickle: Trickled, home: Path, arguments: list[str], code: int, words: str
) -> None:
    Path("q.sql").write_text("SELECT 1")
    Path("latin.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    said = trickle(*arguments)
    assert (said.code, said.out) == (code, "")
    assert words in said.err
    error, hint = said.err.splitlines()
    assert error.startswith("Error [")
    assert hint.startswith("Hint: ")
    assert json.loads(trickle(*arguments, "--json").err).keys() == {"error"}


def test_refreshing_what_is_suspended_names_the_command_to_resume(trickle: Trickled, home: Path) -> None:
    trickle("suspend", "paid_orders")
    said = trickle("refresh", "paid_orders")
    assert said.code == 1
    assert "Hint: Resume it: `trickle resume paid_orders`." in said.err


def test_a_missing_java_is_one_sentence(trickle: Trickled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_trickle.storage.embedded.start_session", start_session)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    said = trickle("sql", "SELECT 1")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(
        "Error [JAVA_MISSING]: Spark needs Java 17, and no `java` is on the PATH.\nHint: "
    )
    assert len(said.err.splitlines()) == 2


def test_what_nobody_expected_is_called_a_bug(trickle: Trickled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "open_trickle", _raising(ZeroDivisionError("a\nb")))
    said = trickle("status")
    assert said.code == 70
    assert said.err.splitlines()[0] == "Error [BUG]: ZeroDivisionError: a. This is a bug in spark-trickle."
    assert "TRICKLE_DEBUG=1" in said.err
    assert "Traceback" not in said.err
    monkeypatch.setenv("TRICKLE_DEBUG", "1")
    assert "Traceback" in trickle("status").err


def test_an_interruption_is_one_line(trickle: Trickled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "open_trickle", _raising(KeyboardInterrupt()))
    said = trickle("status")
    assert (said.code, said.out, said.err) == (130, "", "Error [INTERRUPTED]: Interrupted.\n")


def test_a_folder_that_cannot_be_used_is_one_sentence() -> None:
    failure = failure_of(PermissionError(13, "Permission denied", "/home/spark.log"))
    assert (failure.exit_code, failure.message) == (1, "`/home/spark.log` cannot be used: Permission denied.")


def test_hints_name_options_of_the_shell() -> None:
    assert failure_of(StateError("x", hint="Drop those first, or use cascade=True.")).hint == (
        "Drop those first, or use --cascade."
    )


def _raising(error: BaseException) -> Callable[..., None]:
    def raising(*_: object, **__: object) -> None:
        raise error

    return raising


# Words


def test_the_version_is_that_of_the_package(trickle: Trickled) -> None:
    assert trickle("--version") == Ended(0, f"spark-trickle {__version__}\n", "")


def test_without_a_command_help_lists_them_all(trickle: Trickled) -> None:
    said = trickle()
    assert said.code == 0
    listed = {line.split()[0] for line in said.out.split("Commands:")[1].splitlines() if line.strip()}
    assert listed == {
        "create", "alter", "drop", "suspend", "resume", "refresh", "verify", "sql", "status", "history",
        "graph", "diamonds", "cycles", "snapshot", "explain", "run", "doctor",
    }  # fmt: skip
    for command in listed:
        assert "--json" in trickle(command, "--help").out


def test_a_refresh_is_one_line() -> None:
    did = RefreshResult("totals", Action.DIFFERENTIAL, "`orders` changed", 3, 2, 4, None, 0.8412)
    assert (
        refresh_line(did) == "totals: DIFFERENTIAL, +3 −2 rows, version 4, 0.84 s — because `orders` changed"
    )
    idle = RefreshResult("totals", Action.NO_DATA, "no source has changed", 0, 0, 4, None, 0.051)
    assert refresh_line(idle) == "totals: NO_DATA, version 4, 0.05 s — because no source has changed"


def test_every_value_has_a_form_in_json() -> None:
    values = {
        "exact": Decimal("1.10"), "nan": float("nan"), "bytes": b"\x01\xff", "time": datetime(2025, 1, 2, tzinfo=UTC),
        "nested": [{1: (None, True)}], "action": Action.FULL, "other": Path("/x"),
    }  # fmt: skip
    assert json.dumps(plain(values), allow_nan=False)
    assert plain(values) == {
        "exact": "1.10", "nan": "nan", "bytes": "01ff", "time": "2025-01-02T00:00:00+00:00",
        "nested": [{"1": [None, True]}], "action": "FULL", "other": "/x",
    }  # fmt: skip


def test_the_spinner_turns_on_a_terminal_even_while_stderr_is_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    watched, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stderr, (tmp_path / "spark.log").open("w") as log:
        monkeypatch.setattr(sys, "stderr", stderr)
        monkeypatch.setenv("TERM", "xterm")
        with Spinner("Refreshing `x`…") as spinner:
            os.dup2(log.fileno(), terminal)
            _wait_for("Starting Spark…", watched)
            spinner.step("measure")
            _wait_for("Refreshing `x`…", watched)
    os.close(watched)
    assert (tmp_path / "spark.log").read_text() == ""


def _wait_for(text: str, terminal: int) -> None:
    seen = b""
    while text.encode() not in seen:
        assert select.select([terminal], [], [], 10)[0], f"{text!r} does not appear in {seen!r}"
        seen += os.read(terminal, 10_000)


def test_the_spinner_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with Spinner("Refreshing `x`…") as spinner:
        spinner.step("measure")
    assert capsys.readouterr() == ("", "")
