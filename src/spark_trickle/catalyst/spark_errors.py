"""Spark's errors, translated once: by error class, never by searching text."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from spark_trickle.errors import QueryError, RefreshError, SetupError, TrickleError

HINTS = {
    "TABLE_OR_VIEW_NOT_FOUND": "Check the spelling and the database; temporary views cannot be used.",
    "UNRESOLVED_COLUMN.WITH_SUGGESTION": "Check the spelling, or qualify the column with its table.",
    "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION": "Check the spelling, or qualify the column with its table.",
    "AMBIGUOUS_REFERENCE": "Qualify the column with its table's name or alias.",
    "UNRESOLVED_ROUTINE": "Check the spelling; temporary functions cannot be used in a stream table.",
    "PARSE_SYNTAX_ERROR": "Correct the SQL at the position shown; one SELECT statement is expected.",
    "PARSE_EMPTY_STATEMENT": "Give one SELECT statement.",
    "SCHEMA_NOT_FOUND": "Create the database first.",
    "MISSING_AGGREGATION": "Add the column to GROUP BY, or aggregate it.",
    "MISSING_GROUP_BY": "Add a GROUP BY clause, or aggregate every column.",
    "DATATYPE_MISMATCH": "Cast one side so that the types agree.",
    "NUM_COLUMNS_MISMATCH": "Give both sides of the set operation equally many columns.",
    "INCOMPATIBLE_COLUMN_TYPE": "Cast the columns of both sides to one type.",
}
"""What to do next, by Spark's error condition or its main class."""

_DATA_STATES = ("21", "22", "38", "39", "P0")
"""Classes of SQLSTATE: cardinality, data, external routines, and what a query raises itself."""


def condition_of(error: BaseException) -> str:
    """Spark's error condition, empty where there is none; of an error wrapped in others, the innermost."""
    conditions = [c for c, _ in _causes(error) if c]
    return conditions[-1] if conditions else ""


def is_data_error(error: BaseException) -> bool:
    """True if an expression met a value it cannot deal with: an overflow, a bad cast, a second row."""
    cause = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while cause is not None:
        if _asked(cause, "getSqlState").startswith(_DATA_STATES):
            return True
        cause = cause.getCause()
    return False


def sentence_of(error: BaseException) -> str:
    """The first sentence of Spark's message, without its code, its plan and its stack."""
    causes = _causes(error)
    text = next((m for c, m in reversed(causes) if c and m), causes[-1][1] if causes else str(error))
    text = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text.strip())
    first, *_, last = [text.split("\n")[0], *(line for line in text.split("\n") if line.strip())]
    text = last.strip() if "Traceback" in first else first  # what a Python function raised comes last
    text = re.sub(r"\s*SQLSTATE: \w+.*$", "", text).strip() or type(error).__name__
    return text if text.endswith((".", "?", "!")) else text + "."


def _causes(error: BaseException) -> list[tuple[str, str]]:
    """Condition and message of an error and of everything that caused it, outermost first."""
    if isinstance(error, Py4JJavaError):
        cause, found = error.java_exception, []
    elif isinstance(error, PySparkException):
        cause, found = getattr(error, "_origin", None), [(error.getCondition() or "", str(error))]
    else:
        return []
    while cause is not None:
        found.append(
            (_asked(cause, "getCondition"), str(cause.getMessage() or cause.getClass().getSimpleName()))
        )
        cause = cause.getCause()
    return found


def _asked(cause: Any, question: str) -> str:
    try:
        return str(getattr(cause, question)() or "")
    except (Py4JError, TypeError):  # not one of Spark's own exceptions
        return ""


def query_error(error: BaseException) -> TrickleError:
    """Why Spark refuses a defining query."""
    condition = condition_of(error)
    hint = HINTS.get(condition) or HINTS.get(condition.split(".")[0], "Correct the query and try again.")
    return QueryError(sentence_of(error), hint=hint, code=condition or "INVALID_QUERY")


def refresh_error(name: str, error: BaseException) -> TrickleError:
    """Why Spark failed while computing or writing."""
    condition = condition_of(error)
    if isinstance(error, ConnectionError):
        return SetupError("Spark is not running any more.", hint="Start again: `with Trickle() as trickle:`.")
    hint = (
        "Mend the data the message names and refresh again; nothing was changed."
        if is_data_error(error)
        else "Nothing was changed; the next refresh starts from the same frontier."
    )
    return RefreshError(
        f"Refreshing `{name}` failed: {sentence_of(error)}", hint=hint, code=condition or "REFRESH_FAILED"
    )
