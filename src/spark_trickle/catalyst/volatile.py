"""Functions whose value is not decided by the sources: a table cannot be kept equal to them."""

from __future__ import annotations

import re

from spark_trickle.catalyst.analyze import all_plans
from spark_trickle.catalyst.expressions import expressions_in
from spark_trickle.catalyst.plan import Expression, Plan, items, kind_of
from spark_trickle.errors import UnsupportedQueryError

CHANCE = frozenset(
    {
        "InputFileBlockLength",
        "InputFileBlockStart",
        "InputFileName",
        "MonotonicallyIncreasingID",
        "Rand",
        "RandStr",
        "Randn",
        "Shuffle",
        "SparkPartitionID",
        "Uniform",
        "Uuid",
    }
)
CLOCK = frozenset(
    {
        "CurDateExpressionBuilder",
        "CurrentBatchTimestamp",
        "CurrentDate",
        "CurrentTime",
        "CurrentTimestamp",
        "LocalTimestamp",
        "Now",
    }
)
SESSION = frozenset({"CurrentUser", "VariableReference"})
"""Spark's own `deterministic` flag is true for many of these, so the list is ours."""


_CLOCK_LITERAL = re.compile(
    r"\b(DATE|TIMESTAMP(?:_NTZ|_LTZ)?)\s*['\"]\s*(now|today|yesterday|tomorrow)\b", re.IGNORECASE
)


def refuse_clock_literals(query: str) -> None:
    """DATE'today' is a constant once it is analyzed, so it is found in the text."""
    found = _CLOCK_LITERAL.search(query)
    if found:
        literal = f"{found[1]}'{found[2]}'"
        raise _refusal(literal, "would be frozen at the time of creation", "Write the date you mean.")


def refuse_volatile(plan: Plan) -> None:
    """Raise for the first function, sample or limit whose answer the sources do not decide."""
    for node in all_plans(plan):
        kind = kind_of(node)
        if kind == "Sample":
            raise _refusal("TABLESAMPLE", "picks other rows each time", "Filter by a hash of a key instead.")
        if kind in {"LocalLimit", "Offset"} and not _is_ordered(node):
            raise _refusal(
                "LIMIT without ORDER BY", "picks any rows", "Add an ORDER BY that decides every tie."
            )
        for expression in items(node.expressions()):
            for part in expressions_in(expression):
                _refuse_expression(part)


def _refuse_expression(part: Expression) -> None:
    kind = kind_of(part)
    if kind in CHANCE or kind in SESSION:
        raise _refusal(_shown(part), "gives another value each time it is asked", "Remove it from the query.")
    if kind in CLOCK:
        raise _refusal(
            _shown(part),
            "changes although no source does",
            "Compare with a column instead, for example the newest timestamp of a source.",
        )
    if not part.deterministic() and all(c.deterministic() for c in items(part.children())):
        raise _refusal(
            _shown(part), "is not deterministic", "Remove it, or declare your function deterministic."
        )
    if kind == "AttributeReference" and part.metadata().contains("__metadata_col"):
        raise _refusal("_metadata", "tells how rows lie in files", "Remove it from the query.")


def _is_ordered(limit: Plan) -> bool:
    """A Sort below, through operators that keep its order, or a child of at most one row."""
    node = limit.child()
    while kind_of(node) in {"LocalLimit", "GlobalLimit", "Offset", "SubqueryAlias", "Project", "Filter"}:
        node = node.child()
    if kind_of(node) == "Sort":
        return True
    most = node.maxRows()
    return bool(most.isDefined() and int(most.get()) <= 1)


def _shown(part: Expression) -> str:
    return str(part.toString())


def _refusal(what: str, why: str, hint: str) -> UnsupportedQueryError:
    return UnsupportedQueryError(f"`{what}` {why}.", hint=hint, code="VOLATILE_FUNCTION")
