"""Repository of the leases: who may do what, until when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, case, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from spark_trickle.catalog.rows import Lease
from spark_trickle.catalog.schema import LEASES
from spark_trickle.clock import Clock


def never(_owner: str) -> bool:
    """No owner is known to be dead."""
    return False


class Leases:
    """Times are those of the caller's clock: machines that share a catalog need clocks that agree to
    well within the length of a lease.
    """

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def acquire(
        self, name: str, owner: str, seconds: float, is_dead: Callable[[str], bool] = never
    ) -> Lease | None:
        """The lease if it was free, expired, ours already, or of a dead owner; else None.

        Others wait for the end of this transaction, so end it soon and let `is_dead` be quick.
        """
        now = self._clock()
        if self._take_free(name, owner, now, seconds):
            return self.holder(name)
        # The statement above has locked the row even where it changed nothing: what we read stays true.
        held = self._read(name)
        if held is None or not is_dead(held.owner):
            return None
        taken = Lease(name, owner, now, now + timedelta(seconds=seconds))
        takeover = (
            update(LEASES)
            .where(LEASES.c.name == name, LEASES.c.owner == held.owner)
            .values(owner=taken.owner, acquired_at=taken.acquired_at, expires_at=taken.expires_at)
        )
        return taken if self._connection.execute(takeover).rowcount == 1 else None

    def renew(self, name: str, owner: str, seconds: float) -> bool:
        """False when somebody took it meanwhile. One that expired without that is still ours."""
        extension = (
            update(LEASES)
            .where(LEASES.c.name == name, LEASES.c.owner == owner)
            .values(expires_at=self._clock() + timedelta(seconds=seconds))
        )
        return self._connection.execute(extension).rowcount == 1

    def release(self, name: str, owner: str) -> None:
        """Give it back; nothing happens when it is somebody else's by now."""
        self._connection.execute(delete(LEASES).where(LEASES.c.name == name, LEASES.c.owner == owner))

    def holder(self, name: str) -> Lease | None:
        """An expired lease is held by nobody."""
        lease = self._read(name)
        return lease if lease is not None and lease.expires_at > self._clock() else None

    def held(self) -> list[Lease]:
        """Everything that somebody may do right now."""
        rows = self._connection.execute(select(LEASES).where(LEASES.c.expires_at > self._clock()))
        return [Lease(**row._asdict()) for row in rows]

    def _take_free(self, name: str, owner: str, now: datetime, seconds: float) -> bool:
        """One statement, so that of two processes at the same instant the second sees the first's row."""
        dialect = postgresql if self._connection.dialect.name == "postgresql" else sqlite
        new = dialect.insert(LEASES).values(
            name=name, owner=owner, acquired_at=now, expires_at=now + timedelta(seconds=seconds)
        )
        ours, expired = LEASES.c.owner == new.excluded.owner, LEASES.c.expires_at <= now
        since = case((and_(ours, ~expired), LEASES.c.acquired_at), else_=new.excluded.acquired_at)
        statement = new.on_conflict_do_update(
            index_elements=[LEASES.c.name],
            set_={
                "owner": new.excluded.owner,
                "acquired_at": since,
                "expires_at": new.excluded.expires_at,
            },
            where=or_(ours, expired),
        )
        # Of an INSERT the number of rows is forgotten unless asked for.
        counted = statement.execution_options(preserve_rowcount=True)
        return self._connection.execute(counted).rowcount == 1

    def _read(self, name: str) -> Lease | None:
        row = self._connection.execute(select(LEASES).where(LEASES.c.name == name)).one_or_none()
        return None if row is None else Lease(**row._asdict())
