"""Refreshes that have nothing to do, because somebody else does it or has done it."""

from __future__ import annotations

import time

from spark_trickle.catalog import StreamTable
from spark_trickle.names import shown
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.results import RefreshResult
from spark_trickle.refresh.runtime import Runtime, owner_name, who


def skipped(table: StreamTable, holder: str, start: float, runtime: Runtime) -> RefreshResult:
    """Somebody else is refreshing it: recorded, so that nobody wonders."""
    reason = f"it is being refreshed by {who(holder)}"
    with runtime.catalog.begin() as catalog:
        row = catalog.refreshes.start(table.id, table.sequence, owner_name())
        catalog.refreshes.finish(row.id, status="SKIPPED", action="SKIP", reason=reason)
    return _nothing(table, Action.SKIP, reason, start)


def reached_meanwhile(table: StreamTable, start: float) -> RefreshResult:
    return _nothing(table, Action.NO_DATA, "another process has refreshed it meanwhile", start)


def _nothing(table: StreamTable, action: Action, reason: str, start: float) -> RefreshResult:
    seconds = time.monotonic() - start
    return RefreshResult(
        shown(table.name), action, reason, 0, 0, table.table_version, table.frontier, seconds
    )
