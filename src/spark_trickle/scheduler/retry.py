"""After a failure: when to try again, and when to give up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

_TRANSIENT = (
    "ALREADY_REFRESHED",
    "CATALOG_UNAVAILABLE",
    "CONCURRENT_WRITE",
    "UPSTREAM_BUSY",
    "UPSTREAM_NOT_READY",
    "VERSIONS_DISAGREE",
)
"""Failures that say nothing about the table: the next attempt may well succeed."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Waiting doubles with every failure in a row."""

    first_seconds: float = 1.0
    most_seconds: float = 300.0
    most_errors: int = 3

    def again_at(self, failed_at: datetime, failures: int) -> datetime:
        """Not before this."""
        doubled = self.first_seconds * 2.0 ** min(max(failures, 1) - 1, 60)
        return failed_at + timedelta(seconds=min(doubled, self.most_seconds))

    def gives_up(self, failures: int) -> bool:
        """So many failures in a row suspend a table."""
        return failures >= self.most_errors


def is_transient(code: str) -> bool:
    """A failure that does not count towards suspension."""
    return code in _TRANSIENT
