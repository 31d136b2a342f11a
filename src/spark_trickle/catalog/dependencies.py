"""Repository of the sources that stream tables read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, Select, delete, insert, select

from spark_trickle.catalog.rows import Dependency, values
from spark_trickle.catalog.schema import DEPENDENCIES
from spark_trickle.catalog.stream_tables import AT_ONCE, batched, keep_stream_table


class Dependencies:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def replace(self, stream_table_id: str, rows: Iterable[Dependency]) -> None:
        """The stream table reads these sources and no others."""
        rows = list(rows)
        if any(row.stream_table_id != stream_table_id for row in rows):
            raise ValueError(f"a dependency does not belong to the stream table {stream_table_id}")
        keep_stream_table(self._connection, stream_table_id)
        self._connection.execute(
            delete(DEPENDENCIES).where(DEPENDENCIES.c.stream_table_id == stream_table_id)
        )
        if rows:
            self._connection.execute(insert(DEPENDENCIES), [values(row) for row in rows])

    def of(self, stream_table_id: str) -> list[Dependency]:
        """Sorted by source name."""
        return self._list(select(DEPENDENCIES).where(DEPENDENCIES.c.stream_table_id == stream_table_id))

    def all(self) -> list[Dependency]:
        return self._list(select(DEPENDENCIES))

    def of_some(self, stream_table_ids: Sequence[str]) -> list[Dependency]:
        """Of several stream tables."""
        owner = DEPENDENCIES.c.stream_table_id
        pieces = batched(stream_table_ids, AT_ONCE)
        return [row for piece in pieces for row in self._list(select(DEPENDENCIES).where(owner.in_(piece)))]

    def edges(self) -> list[tuple[str, str]]:
        """Who reads what: ids of stream tables, and names of sources, in order."""
        rows = self._connection.execute(select(DEPENDENCIES.c.stream_table_id, DEPENDENCIES.c.source_name))
        return sorted((owner, source) for owner, source in rows)

    def dependents_of(self, source_name: str) -> list[str]:
        """Ids of the stream tables that read this source directly."""
        ids = select(DEPENDENCIES.c.stream_table_id).where(DEPENDENCIES.c.source_name == source_name)
        return sorted(self._connection.scalars(ids))

    def _list(self, query: Select[tuple[object, ...]]) -> list[Dependency]:
        rows = [Dependency(**row._asdict()) for row in self._connection.execute(query)]
        return sorted(rows, key=lambda row: (row.stream_table_id, row.source_name))
