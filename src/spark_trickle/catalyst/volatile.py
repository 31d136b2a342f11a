"""Functions whose value is not decided by the sources: a table cannot be kept equal to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from spark_trickle.catalyst.analyze import all_plans
from spark_trickle.catalyst.expressions import expressions_in
from spark_trickle.catalyst.plan import Expression, Plan, items, kind_of
from spark_trickle.errors import UnsupportedQueryError

Policy = Literal["reject", "warn", "allow"]
"""reject: such a query is refused; warn: it is recomputed by every refresh; allow: it is maintained like others."""

POLICIES: tuple[Policy, ...] = get_args(Policy)
POLICY = "trickle.volatile_function_policy"
"""Under this name a policy other than the default is kept with the settings of a definition."""

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
CLOCK = frozenset({"CurrentBatchTimestamp", "CurrentTime"})
"""Functions of the clock that a refresh cannot bind to its own time; the others are in `time.py`."""

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
        why = "would be frozen at the time of creation"
        raise Volatile(literal, why, "Use current_date() or current_timestamp().").refusal()


def policy_in(settings: Mapping[str, str]) -> Policy:
    """The policy a definition was accepted under."""
    found = settings.get(POLICY, "reject")
    return next(policy for policy in POLICIES if policy == found)


@dataclass(frozen=True, slots=True)
class Volatile:
    """A function, sample or limit whose answer the sources do not decide."""

    what: str
    why: str
    hint: str
    in_a_column: bool = False
    """It is part of a computed column and decides about no row."""

    def refusal(self) -> UnsupportedQueryError:
        return UnsupportedQueryError(f"`{self.what}` {self.why}.", hint=self.hint, code="VOLATILE_FUNCTION")


def volatile_parts(plan: Plan) -> list[Volatile]:
    """All of them, subqueries included."""
    found: list[Volatile] = []
    for node in all_plans(plan):
        kind = kind_of(node)
        if kind == "Sample":
            found.append(
                Volatile("TABLESAMPLE", "picks other rows each time", "Filter by a hash of a key instead.")
            )
        if kind in {"LocalLimit", "Offset"} and not _is_ordered(node):
            found.append(
                Volatile(
                    "LIMIT without ORDER BY", "picks any rows", "Add an ORDER BY that decides every tie."
                )
            )
        for expression in items(node.expressions()):
            parts = [_volatile(part, kind == "Project") for part in expressions_in(expression)]
            found += [part for part in parts if part is not None]
    return found


def is_volatile(expression: Expression) -> bool:
    return any(_volatile(part, True) is not None for part in expressions_in(expression))


def _volatile(part: Expression, in_a_column: bool) -> Volatile | None:
    kind = kind_of(part)
    if kind in CHANCE or kind in SESSION:
        return Volatile(
            _shown(part),
            "gives another value each time it is asked",
            "Remove it from the query.",
            in_a_column,
        )
    if kind in CLOCK:
        return Volatile(
            _shown(part), "changes although no source does", "Use current_timestamp() instead.", in_a_column
        )
    if not part.deterministic() and all(c.deterministic() for c in items(part.children())):
        return Volatile(
            _shown(part),
            "is not deterministic",
            "Remove it, or declare your function deterministic.",
            in_a_column,
        )
    if kind == "AttributeReference" and part.metadata().contains("__metadata_col"):
        return Volatile("_metadata", "tells how rows lie in files", "Remove it from the query.", in_a_column)
    return None


def _is_ordered(limit: Plan) -> bool:
    """A Sort below, through operators that keep its order, or a child of at most one row."""
    node = limit.child()
    while kind_of(node) in {"LocalLimit", "GlobalLimit", "Offset", "SubqueryAlias", "Project", "Filter"}:
        node = node.child()
    if kind_of(node) == "Sort":
        return bool(getattr(node, "global")())  # SORT BY orders partitions only
    most = node.maxRows()
    return bool(most.isDefined() and int(most.get()) <= 1)


def _shown(part: Expression) -> str:
    return str(part.toString())
