"""What the state of a stream table allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_trickle.catalog import Catalog, StreamTable
from spark_trickle.errors import DefinitionError, StateError
from spark_trickle.frontier import Frontier
from spark_trickle.names import shown

if TYPE_CHECKING:
    from spark_trickle.catalyst.definition import Definition


def point_of(table: StreamTable, as_of: int | None, catalog: Catalog) -> tuple[int, Frontier]:
    """Version and frontier now, or as of a past refresh."""
    if as_of is None:
        if table.table_version is None or table.frontier is None:
            raise StateError(
                f"`{shown(table.name)}` has not been filled yet.",
                hint="Refresh it first.",
                code="NOT_FILLED",
            )
        return table.table_version, table.frontier
    with catalog.begin(write=False) as now:
        refresh = now.refreshes.get(as_of)
    if refresh is None or refresh.stream_table_id != table.id:
        raise StateError(
            f"`{shown(table.name)}` has no refresh number {as_of}.",
            hint="`trickle history` lists them with their ids.",
            code="UNKNOWN_REFRESH",
        )
    if refresh.version is None or refresh.frontier is None:
        raise StateError(
            f"Refresh {as_of} did not complete, so there is nothing to verify.",
            hint="Choose a refresh whose status is COMPLETED.",
            code="REFRESH_NOT_COMPLETED",
        )
    return refresh.version, refresh.frontier


def check_active(table: StreamTable) -> None:
    """A suspended table is left alone."""
    if table.status == "SUSPENDED":
        raise StateError(
            f"`{shown(table.name)}` is suspended.",
            hint=f"Resume it: trickle.resume('{shown(table.name)}').",
            code="SUSPENDED",
        )


def check_differential(table: StreamTable, definition: Definition) -> None:
    """The mode DIFFERENTIAL promises never to recompute."""
    if definition.recomputed:
        raise DefinitionError(
            f"`{shown(table.name)}` cannot be maintained differentially: {definition.recomputed}.",
            hint="Keep refresh_mode AUTO or FULL.",
            code="NOT_DIFFERENTIAL",
        )
