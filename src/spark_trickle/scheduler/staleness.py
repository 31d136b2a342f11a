"""How late a stream table is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from spark_trickle.scheduler.due import TableState, effective_bounds

_LATE = 2
"""A table is called stale when it is so many times older than its freshness bound allows."""


def stale_tables(tables: Sequence[TableState], now: datetime) -> dict[str, timedelta]:
    """The tables older than twice their freshness bound, suspended ones too, and how old they are."""
    bounds = effective_bounds(tables)
    found: dict[str, timedelta] = {}
    for table in tables:
        bound = bounds[table.name]
        if bound is None or table.reached is None:
            continue
        age = now - table.reached
        if age > timedelta(seconds=_LATE * bound):
            found[table.name] = age
    return found
