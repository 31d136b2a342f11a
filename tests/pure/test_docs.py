"""What exists is documented, what is documented exists. Reads source files and pages; starts nothing."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

import spark_trickle
from spark_trickle import Action, RefreshResult, Settings, Trickle, VerifyResult, errors
from spark_trickle.api import results
from spark_trickle.api.explain import Explanation
from spark_trickle.catalyst.spark_errors import HINTS
from spark_trickle.cli.app import app

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*(\.[A-Z_]+)?")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """From a heading to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert found, f"there is no section {title!r}"
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def first_cells(text: str) -> set[str]:
    """The names in backticks in the first column of the tables of a text."""
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)


# Errors


@cache
def trees() -> list[ast.Module]:
    return [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES]


def strings(node: ast.expr) -> Iterator[str]:
    """What an expression may evaluate to, as far as it is written down: `condition or "X"` gives X."""
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.BoolOp(values=parts):
            yield from (text for part in parts for text in strings(part))
        case ast.IfExp(body=one, orelse=other):
            yield from strings(one)
            yield from strings(other)


def arguments_of(tree: ast.Module, function: str) -> Iterator[str]:
    """The texts passed as first argument to a function of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
            yield from strings(node.args[0])


def composed(tree: ast.Module) -> Iterator[str]:
    """Codes written as f"PREFIX_{name.upper()}" in a function whose first parameter is `name`."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.keyword) and node.arg == "code" and isinstance(node.value, ast.JoinedStr):
                prefix, inserted = node.value.values
                assert isinstance(prefix, ast.Constant)
                assert isinstance(inserted, ast.FormattedValue)
                assert ast.unparse(inserted.value) == f"{function.args.args[0].arg}.upper()"
                yield from (f"{prefix.value}{name.upper()}" for name in arguments_of(tree, function.name))


def assigned(node: ast.Assign) -> Iterator[str]:
    """`code = "X"`, also as one of several names."""
    for target in node.targets:
        if isinstance(target, ast.Name) and target.id == "code":
            yield from strings(node.value)
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for name, value in zip(target.elts, node.value.elts, strict=True):
                if isinstance(name, ast.Name) and name.id == "code":
                    yield from strings(value)


@cache
def codes_in_source() -> set[str]:
    found: set[str] = set()
    for tree in trees():
        found |= set(composed(tree)) | set(arguments_of(tree, "Failure"))
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg in {"code", "error_code"}:
                found |= set(strings(node.value))
            elif isinstance(node, ast.Assign):
                found |= set(assigned(node))
    return {code for code in found if CODE.fullmatch(code)}


def test_the_search_for_codes_finds_every_way_they_are_written() -> None:
    assert codes_in_source() >= {
        "INVALID_NAME",  # of a class
        "CYCLE",  # of one error
        "REFRESH_FAILED",  # where Spark has none
        "INVALID_STATUS",  # composed
        "INTERRUPTED",  # beside a message
        "PROCESS_ENDED",  # in the history
        "BUG",  # of the command line
    }


def test_every_error_code_is_documented_and_every_documented_one_exists() -> None:
    assert first_cells(section(page("errors.md"), "Codes")) == codes_in_source()


def test_every_code_is_documented_once() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", section(page("errors.md"), "Codes"), re.MULTILINE)
    assert len(rows) == len(set(rows))


DATA_ERRORS = {
    "DIVIDE_BY_ZERO", "ARITHMETIC_OVERFLOW", "CAST_INVALID_INPUT", "SCALAR_SUBQUERY_TOO_MANY_ROWS",
}  # fmt: skip
"""Examples of errors that the data are to blame for; Spark has many more, known by their SQLSTATE."""


def test_the_conditions_of_spark_with_a_hint_are_documented() -> None:
    documented = first_cells(section(page("errors.md"), "Spark's own conditions"))
    assert documented == HINTS.keys() | DATA_ERRORS


def test_every_class_of_errors_is_documented() -> None:
    classes = {
        c.__name__ for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__
    }
    documented = first_cells(page("errors.md").split("## Codes")[0])
    assert documented == classes


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_pages_name_no_code_that_does_not_exist(path: Path) -> None:
    """Words in backticks that look like a code of ours; those of Spark and Delta are theirs to change."""
    ours = re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", FENCE.sub("", path.read_text(encoding="utf-8")))
    known = codes_in_source() | HINTS.keys() | DATA_ERRORS | set(Action) | environment_in_source()
    theirs = {"UNRESOLVED_COLUMN", "WINDOW_FUNCTION_FRAME_NOT_ORDERED", "JAVA_HOME"}
    assert {c for c in ours if not c.startswith(("DELTA_", "TRICKLE_TEST_"))} <= known | theirs


# Configuration


def test_every_setting_is_documented_with_its_default() -> None:
    table = section(page("configuration.md"), "Settings")
    assert first_cells(table) == {field.name for field in fields(Settings)}
    for field in fields(Settings):
        written = {"": '""', False: "false"}.get(field.default, field.default)
        assert f"| `{field.name}` | `{written}`" in table


@cache
def environment_in_source() -> set[str]:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    read = re.findall(r"environ(?:ment)?(?:\.get\(|\[)\"(\w+)\"", texts)
    return set(read) | {name for name in re.findall(r"TRICKLE_[A-Z_]+", texts) if name != "TRICKLE_ERROR"}


def test_every_environment_variable_is_documented_and_every_documented_one_is_read() -> None:
    assert first_cells(section(page("configuration.md"), "Environment variables")) == environment_in_source()


def test_variables_of_the_tests_are_documented_for_contributors() -> None:
    texts = [
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)
    ]
    used = {name for text in texts for name in re.findall(r"TRICKLE_TEST_[A-Z_]*[A-Z]", text)}
    assert used == set(re.findall(r"TRICKLE_TEST_[A-Z_]*[A-Z]", (ROOT / "CONTRIBUTING.md").read_text()))


# Python


def public_members() -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(Trickle) if not name.startswith("_")}


def test_every_verb_is_documented_and_every_documented_one_exists() -> None:
    verbs = {h.strip("`") for h in headings(section(page("api.md"), "Trickle"))}
    assert verbs == set(public_members())


def test_the_parameters_of_every_verb_are_documented() -> None:
    text = page("api.md")
    for name, member in public_members().items():
        if callable(member):
            described = section(text, f"`{name}`")
            for parameter in list(inspect.signature(member).parameters)[1:]:
                assert re.search(rf"\b{parameter}\b", described), f"{name}({parameter})"
    constructor = first_cells(section(text, "Trickle").split("###")[0])
    assert constructor >= set(inspect.signature(Trickle).parameters)


@pytest.mark.parametrize("result", [RefreshResult, VerifyResult, Explanation], ids=lambda c: c.__name__)
def test_every_field_of_a_result_is_documented(result: Any) -> None:
    documented = first_cells(section(page("api.md"), result.__name__))
    assert documented == {field.name for field in fields(result)}


@pytest.mark.parametrize(
    ("verb", "columns"),
    [("status", results.STATUS), ("refresh_history", results.HISTORY), ("graph", results.GRAPH)],
    ids=["status", "refresh_history", "graph"],
)
def test_every_column_of_a_frame_is_documented(verb: str, columns: tuple[str, ...]) -> None:
    assert first_cells(section(page("api.md"), f"`{verb}`")) == set(columns)


def test_every_action_is_documented() -> None:
    assert set(Action) <= first_cells(section(page("operations.md"), "History"))
    assert set(re.findall(r"`([A-Z_]+)`", section(page("api.md"), "Action"))) == set(Action)


def blocks(language: str) -> list[tuple[str, str]]:
    """The code of one language in all pages, with the page's name."""
    found = []
    for path in PAGES:
        for indent, written_in, text in FENCE.findall(path.read_text(encoding="utf-8")):
            if written_in == language:
                lines = [line.removeprefix(indent) for line in text.splitlines()]
                found.append((path.name, "\n".join(lines)))
    return found


@pytest.mark.parametrize(("name", "example"), blocks("python"), ids=lambda text: str(text)[:30])
def test_examples_call_what_exists_as_it_is_defined(name: str, example: str) -> None:
    for node in ast.walk(ast.parse(example)):
        if isinstance(node, ast.ImportFrom) and node.module == "spark_trickle":
            assert {alias.name for alias in node.names} <= set(spark_trickle.__all__)
        if not isinstance(node, ast.Call):
            continue
        positional, named = [None] * len(node.args), {k.arg: None for k in node.keywords if k.arg}
        match node.func:
            case ast.Name(id="Trickle"):
                inspect.signature(Trickle).bind(*positional, **named)
            case ast.Attribute(value=ast.Name(id="trickle"), attr=verb):
                inspect.signature(public_members()[verb]).bind(None, *positional, **named)


@pytest.mark.parametrize(("name", "written"), blocks("py"), ids=lambda text: str(text)[:30])
def test_signatures_are_those_of_the_code(name: str, written: str) -> None:
    """Parameters, their kinds and their defaults; `...` stands for "as it is"."""
    (function,) = ast.parse(f"def {written}: pass").body
    assert isinstance(function, ast.FunctionDef)
    verb = Trickle.__init__ if function.name == "Trickle" else public_members()[function.name]
    _, *parameters = inspect.signature(verb).parameters.values()
    asked = function.args
    assert [a.arg for a in asked.args] == [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [a.arg for a in asked.kwonlyargs] == [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    defaults = [p.default for p in parameters if p.default is not p.empty]
    for given, default in zip([*asked.defaults, *asked.kw_defaults], defaults, strict=True):
        assert given is not None
        if isinstance(given, ast.Constant):
            assert given.value in {default, ...}
        else:
            assert ast.unparse(given) == default.__name__


# The command line


def commands() -> dict[str, Any]:
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def options_of(command: Any) -> set[str]:
    return {option for p in command.params for option in p.opts if option.startswith("--")}


def test_every_command_is_documented_and_every_documented_one_exists() -> None:
    documented = [h for h in headings(page("cli.md")) if h.startswith("`trickle ")]
    assert sorted(documented) == sorted(f"`trickle {name}`" for name in commands())


@pytest.mark.parametrize("name", commands())
def test_every_option_of_a_command_is_documented_and_no_other(name: str) -> None:
    shared = options_of(typer.main.get_command(app))
    documented = first_cells(section(page("cli.md"), f"`trickle {name}`"))
    assert documented == options_of(commands()[name]) - shared


def test_the_options_every_command_shares_are_documented() -> None:
    shared = options_of(typer.main.get_command(app)) | {"--help"}
    options = re.findall(
        r"^\| `(--[\w-]+)`", section(page("cli.md"), "Options of every command"), re.MULTILINE
    )
    assert set(options) == shared


@pytest.mark.parametrize("name", commands())
def test_defaults_of_options_are_documented(name: str) -> None:
    described = section(page("cli.md"), f"`trickle {name}`")
    for parameter in commands()[name].params:
        if parameter.default and not isinstance(parameter.default, bool):
            row = re.search(rf"^\| `{parameter.opts[0]}`.*$", described, re.MULTILINE)
            assert row
            assert str(parameter.default) in row[0]


def test_examples_in_a_shell_use_commands_and_options_that_exist() -> None:
    known = options_of(typer.main.get_command(app)) | {"--help"}
    for path in PAGES:
        for _, language, text in FENCE.findall(path.read_text(encoding="utf-8")):
            for line in (
                re.findall(r"^(?:\.venv/bin/)?trickle (.+)$", text, re.MULTILINE) if language == "sh" else ()
            ):
                verb, *words = line.split("#")[0].split()
                assert verb in commands(), line
                used = {word for word in words if word.startswith("--")}
                assert used <= options_of(commands()[verb]) | known, line


def test_targets_of_make_are_those_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for path in PAGES:
        named = set(re.findall(r"(?:`|^)make ([a-z]+)", path.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= targets, path.name


# The world


def names_of_tests(name: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / "spark" / name).read_text(encoding="utf-8"))
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")}


def test_everything_that_can_happen_is_documented_with_its_test() -> None:
    named = set(re.findall(r"`(test_\w+)`", page("world.md")))
    assert named >= names_of_tests("test_world.py")
    files = ("test_world.py", "test_api.py", "test_crash.py", "test_data_errors.py")
    assert named <= set[str]().union(*map(names_of_tests, files))


# Pages


def anchors(path: Path) -> set[str]:
    """Headings as links call them."""
    titles = headings(path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_relative_links_resolve(path: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", FENCE.sub("", path.read_text(encoding="utf-8")))
    for link in (link for link in links if not link.startswith("https://")):
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), link
        assert file.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(file), link


def test_the_readme_links_every_page_and_fits_a_screen() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 100
    for path in PAGES[1:]:
        assert f"({path.relative_to(ROOT)})" in readme, path.name


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_pages_are_about_the_project_only(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(work|root|home/\w)\b", text)
    assert not re.search(r"\b(TODO|FIXME|TBD)\b", text)


def test_files_named_by_the_maintainers_page_exist() -> None:
    package = ROOT / "src" / "spark_trickle"
    for name in ("maintainers.md", "how-it-works.md"):
        for path in re.findall(r"`(\w+/\w+\.py)`", page(name)):
            assert (package / path).is_file(), path
    for path in re.findall(r"`(tests/[\w/]+\.\w+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        assert (ROOT / path).is_file(), path
