"""The definition of a stream table, told by the table itself."""

from __future__ import annotations

from spark_trickle.catalog import StreamTable
from spark_trickle.refresh.runtime import Runtime
from spark_trickle.storage.describe import PROPERTY, describe, written_definition
from spark_trickle.storage.locks import write_lock


def properties_of(table: StreamTable) -> dict[str, str]:
    """The property that a new table is created with."""
    return {PROPERTY: written_definition(_definition_of(table))}


def keep_described(table: StreamTable, runtime: Runtime) -> None:
    """Tell again what the table says about itself, if it was altered or defined anew since."""
    if not table.location or not runtime.tables.exists(table.location) or is_described(table, runtime):
        return
    with write_lock(runtime.locks, table.id):
        describe(runtime.spark, table.location, written_definition(_definition_of(table)))


def is_described(table: StreamTable, runtime: Runtime) -> bool:
    """The table says of itself what the catalog says of it."""
    text = written_definition(_definition_of(table))
    return runtime.tables.setting(table.location, PROPERTY) == text


def _definition_of(table: StreamTable) -> dict[str, object]:
    """What the table itself is to say about how it is defined."""
    return {
        "id": table.id,
        "name": table.name,
        "query": table.query,
        "definition_kind": table.definition_kind,
        "catalog_name": table.catalog_name,
        "database_name": table.database_name,
        "session_settings": dict(table.session_settings),
        "schedule": table.schedule,
        "refresh_mode": table.refresh_mode,
        "diamond_consistency": table.diamond_consistency,
        "created_at": table.created_at.isoformat(),
    }
