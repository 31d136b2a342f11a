"""Tidying a stream table: between two refreshes, as nobody's change."""

from __future__ import annotations

from spark_trickle.catalog import StreamTable
from spark_trickle.refresh.runtime import Runtime, lease_on, refreshing
from spark_trickle.storage.locks import write_lock
from spark_trickle.storage.tidy import compact, is_untidy


def tidy(table: StreamTable, runtime: Runtime) -> bool:
    """Compact the table's files if they need it and nobody refreshes it; whether that was done."""
    most = runtime.settings.tidy_files
    if not most or not _is_untidy(table, runtime, most):
        return False
    with lease_on(runtime, refreshing(table.id)) as holder:
        if holder is not None or not _is_untidy(table, runtime, most):
            return False
        with write_lock(runtime.locks, table.id):
            compact(runtime.tables, table.location)
    return True


def _is_untidy(table: StreamTable, runtime: Runtime, most: int) -> bool:
    return is_untidy(runtime.tables.latest_snapshot(table.location).by_content.values(), most)
