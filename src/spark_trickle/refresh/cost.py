"""What the next refresh will take, from what the last ones of the same table took. Pure.

Only the last refreshes count. A table that was recomputed ever since is therefore tried differentially again after
a while, and a measurement that was bad luck is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median, median_low

WINDOW = 20
"""So many of a table's last refreshes are looked at."""
GIVEN_UP = "given up"
"""The step of a refresh under which the time of a differential attempt is recorded that was given up."""
_MARGIN = 1.1
"""Another action than last time must be better by this factor."""
_TRIALS = 2
"""The first differential refresh also compiles what it runs, so it alone says little,"""
_CLEAR = 3.0
"""unless it took so many times what recomputing took."""
_COLD = 5.0
"""What took less than so many seconds may have been mostly compiling; it is tried once more"""
_AGAIN = 3
"""after so many refreshes that recomputed."""
_COMPARED = 2.0
_ALIKE = 1.5
"""Changes whose rows differ by less than this factor take the same,"""
_LATEST = 3
"""as far as the last ones of them tell: code is compiled and files are read for the first time once."""
_SHORT = 60.0
"""A first fill that took less has mostly compiled and read what was not yet at hand."""
_FEW = 10_000
_FEW_ROWS = 1000
"""Up to so many rows take what any refresh takes."""
_PATIENCE = 3.0
"""The first differential refresh of a process may have to evaluate groups that the next ones keep."""
_SHORTEST_LIMIT = 5.0


@dataclass(frozen=True, slots=True)
class Past:
    """A refresh that is over: the seconds it computed and wrote, for so many rows that may have changed."""

    full: bool
    seconds: float
    changed_rows: int | None = None
    given_up: bool = False
    first: bool = False
    """It filled the table for the first time."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds that each way would take, where the past tells."""

    differential: float | None = None
    full: float | None = None
    fulls_since: int = 0
    """How many of the last refreshes recomputed, one after the other."""
    trials: int = 0
    """How many differential refreshes it is told from; one that was given up is as good as two."""
    only_first_fill: bool = False
    """Nothing but the first fill is known of recomputing."""

    @property
    def prefers_full(self) -> bool:
        if self.differential is None or self.full is None:
            return False
        if self.trials < _TRIALS:
            again = self.differential < _COLD and self.fulls_since >= _AGAIN
            return self.differential > self.full * _CLEAR and not again
        return self.differential > self.full * (1 / _MARGIN if self.fulls_since else _MARGIN)

    @property
    def is_to_compare(self) -> bool:
        """Only the first fill is known of recomputing, which says too much; once more, unless that is a long time."""
        if self.differential is None or self.full is None or self.trials < _TRIALS:
            return False
        return self.only_first_fill and self.full < _SHORT and self.differential * _COMPARED > self.full

    @property
    def limit(self) -> float | None:
        """After so many seconds a differential refresh is given up for a full one; None when it never is."""
        return None if self.full is None else max(_SHORTEST_LIMIT, _PATIENCE * self.full)


def predict(past: Sequence[Past], changed_rows: int | None) -> Prediction:
    """`past` has the newest first; `changed_rows` is None where nobody knows them without reading."""
    known = past[:WINDOW]
    whole = [p for p in known if p.full]
    full = [p.seconds for p in whole if not p.first] or [p.seconds for p in whole]
    points = [(p.changed_rows, p.seconds) for p in known if not p.full and p.changed_rows is not None]
    return Prediction(
        _seconds(points, changed_rows) if points and changed_rows is not None else None,
        median(full) if full else None,
        fulls_since=len(list(takewhile(lambda p: p.full, known))),
        trials=sum(_TRIALS if p.given_up else 1 for p in known if not p.full),
        only_first_fill=bool(whole) and all(p.first for p in whole),
    )


def _seconds(points: Sequence[tuple[int, float]], rows: int) -> float:
    """By the last changes of about the same size, else by those nearest to it; the newest are first."""
    alike = [seconds for count, seconds in points if _are_alike(count, rows)]
    return median_low(alike[:_LATEST]) if alike else _at(sorted(points), rows)


def _are_alike(one: int, other: int) -> bool:
    small, large = sorted((max(one, _FEW_ROWS), max(other, _FEW_ROWS)))
    return large <= small * _ALIKE


def _at(points: Sequence[tuple[int, float]], rows: int) -> float:
    """On the line between the nearest measurements; beyond the largest, in proportion.

    A small change takes what any refresh takes, so it says nothing of what a row takes.
    """
    below = [p for p in points if p[0] <= rows]
    above = [p for p in points if p[0] > rows]
    if not below:
        return min(above)[1]
    most = below[-1][0]
    low = median(seconds for count, seconds in below if count == most)
    if not above:
        return low * max(1.0, rows / max(most, _FEW))
    least, high = above[0]
    return low + (high - low) * (rows - most) / (least - most)
