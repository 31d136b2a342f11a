"""Errors as sentences and exit codes: what, which, what next."""

import json
import os
import re
import sys
import traceback
from dataclasses import dataclass

import typer

from spark_trickle.errors import QueryError, SetupError, TrickleError

FAILED, USAGE, BUG, INTERRUPTED = 1, 2, 70, 130

_SPELLING = (
    (r"trickle\.(\w+)\('([^']*)'\)", r"`trickle \1 \2`"),
    (r"\bcascade=True", "--cascade"),
    (r"\bor_replace=True", "--or-replace"),
    (r"\bif_not_exists=True", "--if-not-exists"),
    (r"\binitialize=False", "--no-initialize"),
    (r"\brefresh_mode\b", "--mode"),
    (r"\bdiamond_consistency\b", "--diamond-consistency"),
    (r"\bGive schedule, (.*) or status\b", r"Give --schedule, \1 or --status"),
)
"""Hints name the options of Python; here are those of the shell."""


@dataclass(frozen=True, slots=True)
class Failure:
    code: str
    message: str
    hint: str
    exit_code: int = FAILED

    def show(self, *, as_json: bool) -> None:
        if as_json:
            error = {"code": self.code, "message": self.message, "hint": self.hint}
            text = json.dumps({"error": error}, ensure_ascii=False)
        else:
            text = f"Error [{self.code}]: {self.message}" + (f"\nHint: {self.hint}" if self.hint else "")
        sys.stderr.write(text + "\n")


def failure_of(error: BaseException) -> Failure:
    match error:
        case TrickleError():
            return Failure(error.code, error.message, _in_shell_words(error.hint))
        case typer.TyperException():
            return _usage(error)
        case KeyboardInterrupt():
            return Failure("INTERRUPTED", "Interrupted.", "", INTERRUPTED)
        case OSError():
            return failure_of(_of_machine(error))
        case _ if hasattr(error, "getCondition"):
            return failure_of(_of_spark(error))
    first = next(iter(str(error).strip().splitlines()), "")
    said = f"{type(error).__name__}: {first}" if first else type(error).__name__
    hint = "Set TRICKLE_DEBUG=1 to see where it comes from, and report it."
    return Failure("BUG", f"{said.rstrip('.')}. This is a bug in spark-trickle.", hint, BUG)


def report(error: BaseException, *, as_json: bool) -> int:
    """Say what went wrong on stderr; returns the exit code."""
    if os.environ.get("TRICKLE_DEBUG"):
        traceback.print_exception(error)
    failure = failure_of(error)
    failure.show(as_json=as_json)
    return failure.exit_code


def _usage(error: typer.TyperException) -> Failure:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "trickle"
    message = " ".join(error.format_message().split())
    return Failure("USAGE", message, f"`{command} --help` shows what it takes.", error.exit_code)


def _of_machine(error: OSError) -> TrickleError:
    what = f"`{error.filename}` cannot be used: " if error.filename else ""
    hint = "Check that the home (--home or TRICKLE_HOME) is a folder you may write to."
    return SetupError(f"{what}{error.strerror or type(error).__name__}.", hint=hint)


def _of_spark(error: BaseException) -> TrickleError:
    """An error of Spark while the rows of `trickle sql` are fetched; it has a condition and a first line."""
    condition = getattr(error, "getCondition")() or ""  # noqa: B009 - a type of pyspark, which is not imported
    first = re.sub(r"^\[[\w.]+\]\s*|\s*SQLSTATE: \w+.*$", "", next(iter(str(error).strip().splitlines()), ""))
    return QueryError(first.strip(), hint="Correct the statement and try again.", code=condition)


def _in_shell_words(hint: str) -> str:
    for pattern, words in _SPELLING:
        hint = re.sub(pattern, words, hint)
    return hint
