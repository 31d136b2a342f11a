"""The five repositories over one transaction."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from spark_trickle.catalog.dependencies import Dependencies
from spark_trickle.catalog.epochs import Epochs
from spark_trickle.catalog.leases import Leases
from spark_trickle.catalog.refreshes import Refreshes
from spark_trickle.catalog.stream_tables import StreamTables
from spark_trickle.clock import Clock


@dataclass(frozen=True, slots=True)
class CatalogTransaction:
    """What is done through its repositories happens together or not at all."""

    stream_tables: StreamTables
    dependencies: Dependencies
    refreshes: Refreshes
    leases: Leases
    epochs: Epochs

    @classmethod
    def over(cls, connection: Connection, clock: Clock) -> CatalogTransaction:
        return cls(
            StreamTables(connection, clock),
            Dependencies(connection),
            Refreshes(connection, clock),
            Leases(connection, clock),
            Epochs(connection),
        )
