"""What the verbs give back. Importing this starts nothing and loads no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_trickle.frontier import Frontier
from spark_trickle.refresh.choose import Action


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What a refresh did, why, and where the table stands now."""

    name: str
    action: Action
    reason: str
    rows_inserted: int
    rows_deleted: int
    version: int | None
    frontier: Frontier | None
    seconds: float
    durations: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Whether the table equals its query. `missing` and `unexpected` count rows, `examples` show some."""

    name: str
    version: int
    equal: bool
    missing: int
    unexpected: int
    examples: tuple[str, ...]
    not_compared: tuple[str, ...] = ()
    """Columns that two evaluations may compute differently, where only what must agree was compared."""
