"""Repository of the epochs: the version of every base table that belongs to a data timestamp."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from spark_trickle.catalog.schema import EPOCHS
from spark_trickle.frontier import SourceVersion


class Epochs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def resolve(self, at: datetime, newest: Mapping[str, SourceVersion]) -> dict[str, SourceVersion]:
        """The version of each source at a data timestamp: what was agreed on before, else the newest one given.

        Whoever asks first decides for everybody, so that tables refreshed by different processes agree.
        """
        dialect = postgresql if self._connection.dialect.name == "postgresql" else sqlite
        rows = [
            {"data_timestamp": at, "source_name": name, "table_id": v.table_id, "version": v.version}
            for name, v in sorted(newest.items())
        ]
        if rows:
            self._connection.execute(dialect.insert(EPOCHS).on_conflict_do_nothing(), rows)
        agreed = self.of(at)
        for name, version in newest.items():
            if agreed[name].table_id != version.table_id:  # another table by now
                where = (EPOCHS.c.data_timestamp == at) & (EPOCHS.c.source_name == name)
                values = {"table_id": version.table_id, "version": version.version}
                self._connection.execute(update(EPOCHS).where(where).values(values))
        agreed = self.of(at)
        return {name: agreed[name] for name in newest}

    def of(self, at: datetime) -> dict[str, SourceVersion]:
        found = self._connection.execute(select(EPOCHS).where(EPOCHS.c.data_timestamp == at))
        return {row.source_name: SourceVersion(row.table_id, row.version) for row in found}

    def forget_before(self, at: datetime) -> None:
        """No refresh will ask for them any more."""
        self._connection.execute(delete(EPOCHS).where(EPOCHS.c.data_timestamp < at))
