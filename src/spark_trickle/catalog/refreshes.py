"""Repository of the history: every refresh that was started, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, insert, select, update

from spark_trickle.catalog.failures import dropped
from spark_trickle.catalog.rows import Refresh, StreamTable, values
from spark_trickle.catalog.schema import REFRESHES
from spark_trickle.catalog.stream_tables import keep_stream_table
from spark_trickle.clock import Clock


class Refreshes:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def start(self, stream_table_id: str, sequence: int, owner: str) -> Refresh:
        """A running refresh that will commit as transaction number `sequence`."""
        keep_stream_table(self._connection, stream_table_id)
        row = Refresh(
            id=0,
            stream_table_id=stream_table_id,
            sequence=sequence,
            status="RUNNING",
            started_at=self._clock(),
            owner=owner,
        )
        fields = values(row)
        del fields["id"]  # the database numbers it
        key = self._connection.execute(insert(REFRESHES).values(fields)).inserted_primary_key
        return replace(row, id=cast("tuple[int]", key)[0])

    def add_idle(self, tables: Iterable[StreamTable], owner: str, reason: str) -> None:
        """Refreshes that found nothing to do, over as soon as they began."""
        now = self._clock()
        rows = [
            values(
                Refresh(
                    id=0,
                    stream_table_id=table.id,
                    sequence=table.sequence + 1,
                    status="COMPLETED",
                    action="NO_DATA",
                    reason=reason,
                    version=table.table_version,
                    frontier=table.frontier,
                    started_at=now,
                    finished_at=now,
                    owner=owner,
                )
            )
            for table in tables
        ]
        for row in rows:
            del row["id"]  # the database numbers it
        if rows:
            self._connection.execute(insert(REFRESHES), rows)

    def finish(self, refresh_id: int, **fields: Any) -> Refresh:
        """Needs a `status` other than RUNNING; sets `finished_at`."""
        if fixed := fields.keys() & {"id", "stream_table_id", "started_at", "finished_at"}:
            raise TypeError(f"{', '.join(sorted(fixed))} cannot be updated")
        row = self.get(refresh_id)
        if row is None:
            raise dropped(f"refresh {refresh_id}")
        fields["finished_at"] = self._clock()
        finished = replace(row, **fields)
        self._connection.execute(update(REFRESHES).where(REFRESHES.c.id == refresh_id).values(fields))
        return finished

    def get(self, refresh_id: int) -> Refresh | None:
        return next(iter(self._newest(REFRESHES.c.id == refresh_id)), None)

    def of(self, stream_table_id: str, limit: int | None = None) -> list[Refresh]:
        """Newest first."""
        return self._newest(REFRESHES.c.stream_table_id == stream_table_id, limit=limit)

    def all(self, limit: int | None = None) -> list[Refresh]:
        """Of every stream table, newest first."""
        return self._newest(limit=limit)

    def running(self, stream_table_id: str) -> list[Refresh]:
        """Under way, or left behind by a process that died."""
        return self._newest(REFRESHES.c.stream_table_id == stream_table_id, REFRESHES.c.status == "RUNNING")

    def unfinished(self) -> frozenset[str]:
        """Ids of the stream tables that have such a row."""
        rows = select(REFRESHES.c.stream_table_id).where(REFRESHES.c.status == "RUNNING").distinct()
        return frozenset(self._connection.scalars(rows))

    def last_completed(self, stream_table_id: str) -> Refresh | None:
        completed = self._newest(
            REFRESHES.c.stream_table_id == stream_table_id, REFRESHES.c.status == "COMPLETED", limit=1
        )
        return next(iter(completed), None)

    def measured(self, stream_table_id: str, limit: int) -> list[Refresh]:
        """Those that have changed the table, newest first: what they took is what the next one may take."""
        return self._newest(
            REFRESHES.c.stream_table_id == stream_table_id,
            REFRESHES.c.status == "COMPLETED",
            REFRESHES.c.action.in_(("DIFFERENTIAL", "FULL", "REINITIALIZE")),
            limit=limit,
        )

    def _newest(self, *conditions: ColumnElement[bool], limit: int | None = None) -> list[Refresh]:
        query = select(REFRESHES).where(*conditions).order_by(REFRESHES.c.id.desc()).limit(limit)
        return [Refresh(**row._asdict()) for row in self._connection.execute(query)]
