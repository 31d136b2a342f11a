"""Repository of the stream tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from spark_trickle.catalog.failures import dropped
from spark_trickle.catalog.rows import StreamTable, values
from spark_trickle.catalog.schema import STREAM_TABLES
from spark_trickle.clock import Clock
from spark_trickle.errors import TableNameError

AT_ONCE = 500
"""So many are named in one statement."""


class Outline(NamedTuple):
    """What the graph of all stream tables needs of one."""

    id: str
    name: str
    diamond_consistency: str


def batched(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The values in pieces, the last of which may be shorter."""
    return (values[first : first + size] for first in range(0, len(values), size))


def keep_stream_table(connection: Connection, stream_table_id: str) -> StreamTable:
    """The row, which nobody else drops or changes before this transaction ends.

    Every repository takes this same lock first, so that no two transactions wait for each other.
    """
    query = select(STREAM_TABLES).where(STREAM_TABLES.c.id == stream_table_id)
    row = connection.execute(query.with_for_update(key_share=True)).one_or_none()
    if row is None:
        raise dropped(stream_table_id)
    return StreamTable(**row._asdict())


class StreamTables:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def add(self, row: StreamTable) -> None:
        with self._one_per_name(row.name):
            self._connection.execute(insert(STREAM_TABLES).values(values(row)))

    def get(self, name: str) -> StreamTable | None:
        return self._one(STREAM_TABLES.c.name == name)

    def get_by_id(self, stream_table_id: str) -> StreamTable | None:
        return self._one(STREAM_TABLES.c.id == stream_table_id)

    def all(self) -> list[StreamTable]:
        """Sorted by name, here because the databases disagree about the order of text."""
        return self._sorted(select(STREAM_TABLES))

    def some(self, ids: Sequence[str]) -> list[StreamTable]:
        """Those that have one of the ids, in the same order."""
        pieces = batched(ids, AT_ONCE)
        found = [self._sorted(select(STREAM_TABLES).where(STREAM_TABLES.c.id.in_(piece))) for piece in pieces]
        return sorted((row for rows in found for row in rows), key=lambda row: row.name)

    def outlines(self) -> list[Outline]:
        """All of them, without what takes time to read."""
        table = STREAM_TABLES.c
        rows = self._connection.execute(select(table.id, table.name, table.diamond_consistency))
        return [Outline(*row) for row in rows]

    def names_among(self, names: Iterable[str]) -> frozenset[str]:
        """Those of the names that stream tables have."""
        wanted = select(STREAM_TABLES.c.name).where(STREAM_TABLES.c.name.in_(list(names)))
        return frozenset(self._connection.scalars(wanted))

    def update(self, stream_table_id: str, **fields: Any) -> StreamTable:
        """Write these fields and no others, so that two writers of different fields do not undo each other."""
        if fixed := fields.keys() & {"id", "created_at", "updated_at"}:
            raise TypeError(f"{', '.join(sorted(fixed))} cannot be updated")
        row = keep_stream_table(self._connection, stream_table_id)
        fields["updated_at"] = self._clock()
        changed = replace(row, **fields)
        with self._one_per_name(changed.name):
            self._connection.execute(
                update(STREAM_TABLES).where(STREAM_TABLES.c.id == stream_table_id).values(fields)
            )
        return changed

    def reach(self, reached: Mapping[str, tuple[int, datetime]]) -> frozenset[str]:
        """Move data timestamps on, by id and the sequence that is known; the ids of those that were moved.

        The others were refreshed, altered or dropped by somebody meanwhile.
        """
        moved: set[str] = set()
        for ids in batched(sorted(reached), AT_ONCE):
            found = (
                select(STREAM_TABLES.c.id, STREAM_TABLES.c.sequence, STREAM_TABLES.c.data_timestamp)
                .where(
                    STREAM_TABLES.c.id.in_(ids),
                    STREAM_TABLES.c.status == "ACTIVE",
                    STREAM_TABLES.c.needs_reinit.is_(False),
                )
                .order_by(STREAM_TABLES.c.id)
            )
            by_time: dict[datetime, list[str]] = {}
            for stream_table_id, sequence, last in self._connection.execute(found.with_for_update()):
                known, at = reached[stream_table_id]
                if sequence == known and (last is None or last < at):
                    by_time.setdefault(at, []).append(stream_table_id)
            for at, own in by_time.items():
                self._connection.execute(
                    update(STREAM_TABLES)
                    .where(STREAM_TABLES.c.id.in_(own))
                    .values(data_timestamp=at, updated_at=self._clock())
                )
                moved.update(own)
        return frozenset(moved)

    def remove(self, stream_table_id: str) -> None:
        """Its dependencies and history go with it. Removing what is not there is no error."""
        self._connection.execute(delete(STREAM_TABLES).where(STREAM_TABLES.c.id == stream_table_id))

    def _sorted(self, query: Select[Any]) -> list[StreamTable]:
        rows = self._connection.execute(query)
        return sorted((StreamTable(**row._asdict()) for row in rows), key=lambda row: row.name)

    def _one(self, condition: ColumnElement[bool]) -> StreamTable | None:
        row = self._connection.execute(select(STREAM_TABLES).where(condition)).one_or_none()
        return None if row is None else StreamTable(**row._asdict())

    @contextmanager
    def _one_per_name(self, name: str) -> Iterator[None]:
        """In a savepoint: a caller who catches the error may go on with the transaction."""
        try:
            with self._connection.begin_nested():
                yield
        except IntegrityError:
            if self.get(name) is None:
                raise
            raise TableNameError(
                f"There is already a stream table `{name}`.",
                hint="Choose another name, or drop that one first.",
                code="NAME_TAKEN",
            ) from None
