"""Catalog rows as data frames: what people print and programs filter."""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_trickle.catalog import Dependency, Refresh, StreamTable
from spark_trickle.names import shown

if TYPE_CHECKING:
    import pandas as pd

    from spark_trickle.graph.diamonds import DiamondGroup
    from spark_trickle.refresh.doctor import Finding

STATUS = (
    "name", "status", "refresh_mode", "schedule", "data_timestamp", "last_action", "last_refresh", "version",
    "consecutive_errors", "last_error", "defined_by",
)  # fmt: skip
HISTORY = (
    "id", "name", "status", "action", "reason", "rows_changed", "rows_inserted", "rows_deleted", "version",
    "started_at", "seconds", "predicted_seconds", "error", "frontier",
)  # fmt: skip
_DEFINED_BY = {"sql": "SQL", "dataframe": "DataFrame of one process"}
DIAMONDS = ("group", "members", "ends", "sources", "consistency")
FINDINGS = ("severity", "subject", "what", "hint")
CYCLES = ("cycle", "members", "status", "iterations", "last_refresh", "last_error")
GRAPH = ("source", "source_kind", "stream_table", "columns")


def status_frame(tables: list[StreamTable], last: dict[str, Refresh | None]) -> pd.DataFrame:
    rows = []
    for table in tables:
        refresh = last.get(table.id)
        rows.append(
            (
                shown(table.name),
                table.status,
                table.refresh_mode,
                table.schedule,
                table.data_timestamp,
                refresh.action if refresh else None,
                refresh.finished_at if refresh else None,
                table.table_version,
                table.consecutive_errors,
                table.last_error,
                _DEFINED_BY.get(table.definition_kind, table.query),
            )
        )
    return _frame(rows, STATUS)


def history_frame(refreshes: list[Refresh], names: dict[str, str]) -> pd.DataFrame:
    rows = [
        (
            r.id,
            shown(names[r.stream_table_id]),
            r.status,
            r.action,
            r.reason,
            r.rows_changed,
            r.rows_inserted,
            r.rows_deleted,
            r.version,
            r.started_at,
            _seconds(r.started_at, r.finished_at),
            r.predicted_seconds,
            r.error,
            r.frontier.to_json() if r.frontier else None,
        )
        for r in refreshes
    ]
    return _frame(rows, HISTORY)


def graph_frame(dependencies: list[Dependency], names: dict[str, str]) -> pd.DataFrame:
    rows = [
        (
            shown(d.source_name),
            d.source_kind,
            shown(names[d.stream_table_id]),
            ", ".join(n for n, _ in d.columns),
        )
        for d in dependencies
    ]
    return _frame(sorted(rows), GRAPH)


def _seconds(start: datetime, end: datetime | None) -> float | None:
    return round((end - start).total_seconds(), 3) if end else None


def diamonds_frame(groups: list[DiamondGroup], atomic: Set[str]) -> pd.DataFrame:
    rows = []
    for number, group in enumerate(groups, 1):
        listed = (", ".join(map(shown, names)) for names in (group.members, group.ends, group.sources))
        rows.append((number, *listed, "atomic" if atomic & set(group.members) else "none"))
    return _frame(rows, DIAMONDS)


def cycles_frame(cycles: list[list[StreamTable]], last: dict[str, Refresh | None]) -> pd.DataFrame:
    rows = []
    for number, members in enumerate(cycles, 1):
        refreshes = [found for table in members if (found := last[table.id]) is not None]
        newest = max(refreshes, key=lambda refresh: refresh.id, default=None)
        failed = next((table for table in members if table.last_error), None)
        rows.append(
            (
                number,
                ", ".join(shown(table.name) for table in members),
                next((t.status for t in members if t.status != "ACTIVE"), "ACTIVE"),
                newest.iterations if newest else None,
                newest.finished_at if newest else None,
                failed.last_error if failed else "",
            )
        )
    return _frame(rows, CYCLES)


def findings_frame(findings: list[Finding]) -> pd.DataFrame:
    rows = [(found.severity, found.subject, found.what, found.hint) for found in findings]
    return _frame(rows, FINDINGS)


def _frame(rows: list[Any], columns: tuple[str, ...]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame.from_records(rows, columns=list(columns))
    # A table that was never filled has no version; the others stay whole numbers.
    return frame.astype({"version": "Int64"}) if "version" in columns else frame
