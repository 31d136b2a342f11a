"""The time, as an argument: tests and replays pass their own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Now, in UTC, to the microsecond."""
    return datetime.now(UTC)
