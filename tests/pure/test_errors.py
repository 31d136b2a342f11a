"""Errors say what, which and what next."""

import inspect
import re

import pytest

from spark_trickle import errors
from spark_trickle.errors import TrickleError

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, TrickleError)]


def drawn_tree() -> dict[str, str | None]:
    """Every class in the module's drawing, with the one it hangs from."""
    parents: dict[str, str | None] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        drawn = re.match(r"(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w*Error)\b", line)
        if drawn:
            depth = len(drawn["branch"]) // 4
            above[depth:] = [drawn["name"]]
            parents[drawn["name"]] = above[depth - 1] if depth else None
    return parents


@pytest.mark.parametrize("error", CLASSES)
def test_every_error_is_drawn_below_a_class_it_is_one_of(error: type[TrickleError]) -> None:
    parent = drawn_tree()[error.__name__]
    assert parent is None or issubclass(error, getattr(errors, parent))


def test_every_drawn_error_exists() -> None:
    assert set(drawn_tree()) == {error.__name__ for error in CLASSES}


def test_every_error_has_its_own_code() -> None:
    codes = [error.code for error in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[A-Z]+(_[A-Z]+)*", code) for code in codes)


def test_an_error_reads_as_code_message_and_hint() -> None:
    error = errors.SourceError("`orders` is not a Delta table.", hint="Convert it first.")
    assert str(error) == "[INVALID_SOURCE] `orders` is not a Delta table.\nHint: Convert it first."
    assert (error.message, error.hint) == ("`orders` is not a Delta table.", "Convert it first.")


def test_an_error_without_a_hint_is_one_line() -> None:
    assert str(errors.RefreshError("It failed.")) == "[REFRESH_FAILED] It failed."


def test_a_code_can_be_made_more_precise_for_one_error_only() -> None:
    assert errors.DefinitionError("x", code="INVALID_SETTING").code == "INVALID_SETTING"
    assert errors.DefinitionError("x").code == "INVALID_DEFINITION"
