"""Tidying a stream table: between two refreshes, as nobody's change."""

from __future__ import annotations

from dataclasses import dataclass

from spark_trickle.catalog import StreamTable
from spark_trickle.incremental.maintain import ByKey, ByWeight, Totals
from spark_trickle.refresh.compute import layout_of
from spark_trickle.refresh.runtime import Runtime, lease_on, refreshing
from spark_trickle.storage.locks import write_lock
from spark_trickle.storage.tidy import compact, is_scattered, is_untidy


@dataclass(frozen=True, slots=True)
class _Untidy:
    """What is to be done about a table: its files are compacted, or sorted by a column."""

    by: str = ""


def tidy(table: StreamTable, runtime: Runtime) -> bool:
    """Compact or sort the table's files if they need it and nobody refreshes it; whether that was done."""
    if not runtime.settings.tidy_files or _look(table, runtime) is None:
        return False
    with lease_on(runtime, refreshing(table.id)) as holder:
        found = None if holder is not None else _look(table, runtime)
        if found is None:
            return False
        with write_lock(runtime.locks, table.id):
            compact(runtime.tables, table.location, found.by)
    return True


def _look(table: StreamTable, runtime: Runtime) -> _Untidy | None:
    stored = runtime.tables.latest_snapshot(table.location)
    files, key = stored.by_content.values(), _key(table, runtime)
    if key and is_scattered(files, stored.name_in_files(key)):
        return _Untidy(key)
    return _Untidy() if is_untidy(files, runtime.settings.tidy_files) else None


def _key(table: StreamTable, runtime: Runtime) -> str:
    """The first column by which refreshes look for rows of the table; empty if they look for none."""
    if table.refresh_mode == "FULL":
        return ""
    definition = runtime.definitions.of(table).definition
    match definition.maintenance:
        case ByKey(columns=columns) | Totals(columns=columns):
            found = columns
        case ByWeight():  # by all of them; the first is mostly the one that tells rows apart
            found = tuple(column.id for column in definition.relation.columns)
        case _:
            found = ()
    places = {column.id: place for place, column in enumerate(definition.relation.columns)}
    names = [field.name for field in layout_of(definition).visible.fields]
    return next((names[places[column]] for column in found if places[column] < len(names)), "")
