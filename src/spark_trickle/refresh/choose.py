"""Which action a refresh takes, and why. Pure: EXPLAIN prints the same decision that REFRESH takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from spark_trickle.refresh.cost import Prediction

_LONG = 10.0
"""Seconds after which nobody calls a refresh short, however little has changed."""


class Action(StrEnum):
    NO_DATA = "NO_DATA"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"
    REINITIALIZE = "REINITIALIZE"
    RESTORE = "RESTORE"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True)
class Decision:
    action: Action
    reason: str
    predicted: float | None = None
    """Seconds of computing and writing, by the refreshes before."""
    limit: float | None = None
    """Seconds after which a differential refresh is given up."""


@dataclass(frozen=True, slots=True)
class SourceChange:
    """How much of a source may have changed."""

    name: str
    share: float
    size_in_bytes: int

    @property
    def changed_bytes(self) -> float:
        return self.share * self.size_in_bytes


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a decision depends on."""

    refresh_mode: str
    changed: tuple[SourceChange, ...]
    first_fill: bool = False
    rebuild_reason: str = ""
    """Why the old state cannot be continued from: a source replaced, a definition changed, a foreign write."""
    recomputed_reason: str = ""
    """The operator that needs all of its input."""
    time_passed: bool = False
    """The query asks for the time, and it is later than at the last refresh."""
    full_refresh_threshold: float = 0.5
    full_refresh_min_bytes: int = 0
    full_refresh_min_rows: int = 0
    source_bytes: int = 0
    """The size of all sources."""
    source_rows: int = 0
    changed_rows: int | None = None
    """How many of them may have changed, by what writers and files say; None where those do not."""
    prediction: Prediction = field(default_factory=Prediction)

    @property
    def are_many(self) -> bool:
        return self.changed_rows is not None and self.changed_rows > self.full_refresh_min_rows

    @property
    def is_most(self) -> bool:
        """So much has changed that nobody needs to have tried: of all rows, or of one source's bytes, if rows are unknown."""
        if max(c.share for c in self.changed) <= self.full_refresh_threshold:
            return False
        if self.changed_rows is not None:
            return self.are_many and self.changed_rows > self.full_refresh_threshold * self.source_rows
        return sum(c.changed_bytes for c in self.changed) >= self.full_refresh_min_bytes

    @property
    def is_small(self) -> bool:
        """So little has changed in so small sources that either way takes about the same, as far as is known."""
        short = self.prediction.differential is None or self.prediction.differential <= _LONG
        return short and not self.are_many and self.source_bytes < self.full_refresh_min_bytes


def choose_action(facts: Facts) -> Decision:
    """Hard rules first, then cost."""
    if facts.first_fill:
        return Decision(Action.FULL, "it is filled for the first time")
    if facts.rebuild_reason:
        return Decision(Action.REINITIALIZE, facts.rebuild_reason)
    if not facts.changed and not facts.time_passed:
        return Decision(Action.NO_DATA, "no source has changed")
    expected = facts.prediction
    names = ", ".join(f"`{c.name}`" for c in facts.changed)
    what = f"{names} changed" if names else "time has passed"
    if facts.refresh_mode == "FULL":
        return Decision(Action.FULL, f"refresh_mode is FULL; {what}", expected.full)
    if facts.recomputed_reason:
        return Decision(Action.FULL, f"{what} and {facts.recomputed_reason}", expected.full)
    if facts.refresh_mode == "AUTO" and facts.changed:
        if facts.is_most:
            largest = max(facts.changed, key=lambda c: c.share)
            return Decision(Action.FULL, f"{largest.share:.0%} of `{largest.name}` changed", expected.full)
        if not facts.is_small:
            if expected.prefers_full:
                times = f"about {expected.differential:.1f} s instead of {expected.full:.1f} s for all"
                return Decision(Action.FULL, f"{what}, which would take {times}", expected.full)
            if expected.is_to_compare:
                took = f"differential refreshes take about {expected.differential:.1f} s"
                return Decision(Action.FULL, f"{what}; recomputed once to compare: {took}", expected.full)
            return Decision(Action.DIFFERENTIAL, what, expected.differential, expected.limit)
    return Decision(Action.DIFFERENTIAL, what, expected.differential)
