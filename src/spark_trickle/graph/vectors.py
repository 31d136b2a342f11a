"""Versions of several stream tables that belong together: they agree on everything they have read in common."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_trickle.errors import StateError
from spark_trickle.frontier import Frontier
from spark_trickle.names import shown


@dataclass(frozen=True, slots=True)
class Point:
    """A version of a stream table, and what it has read. One version may have several points: nothing had changed."""

    version: int
    frontier: Frontier


def common_points(history: Mapping[str, Sequence[Point]]) -> dict[str, Point]:
    """The newest points of some stream tables that agree; `history` has those of each, newest first.

    Whatever disagrees is taken back as little as possible, which never passes over an agreement: going back in
    time, the versions that a table has read only become older.
    """
    places = dict.fromkeys(history, 0)
    while True:
        for name, place in places.items():
            if place >= len(history[name]):
                raise _nothing_in_common(name, history)
        chosen = {name: history[name][place] for name, place in places.items()}
        behind = _newer_side(chosen)
        if behind is None:
            return chosen
        places[behind] += 1


def _newer_side(chosen: Mapping[str, Point]) -> str | None:
    """The table of some disagreement that has read the newer version; None when all agree."""
    for one, other in itertools.permutations(chosen, 2):
        frontier = chosen[other].frontier
        read = frontier.through.get(one) or frontier.inputs.get(one)
        if read is not None and read.version != chosen[one].version:
            return one if chosen[one].version > read.version else other
    for one, other in itertools.combinations(chosen, 2):
        first, second = chosen[one].frontier.ancestors, chosen[other].frontier.ancestors
        for base in first.keys() & second.keys():
            if first[base] != second[base]:
                return one if first[base].version >= second[base].version else other
    return None


def _nothing_in_common(name: str, history: Mapping[str, Sequence[Point]]) -> StateError:
    others = ", ".join(f"`{shown(other)}`" for other in sorted(history) if other != name)
    if not history[name]:
        return StateError(
            f"`{shown(name)}` has no version that could be read: it was never filled.",
            hint=f"Refresh `{shown(name)}` first.",
            code="NO_COMMON_VERSION",
        )
    return StateError(
        f"No version of `{shown(name)}` that is left goes with those of {others}.",
        hint="Refresh the table at the end of the graph: what it reads is then brought to the same versions.",
        code="NO_COMMON_VERSION",
    )
