"""The catalog as the rest of the project sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from sqlalchemy import Engine

from spark_trickle.catalog.engine import connect, open_engine
from spark_trickle.catalog.failures import translated
from spark_trickle.catalog.migrate import migrate
from spark_trickle.catalog.transaction import CatalogTransaction
from spark_trickle.catalog.url import parse_url, shown_url
from spark_trickle.clock import Clock, system_clock


class Catalog:
    """An open metadata database. Threads may share one; a forked process opens its own."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    @classmethod
    def open(cls, url: str, clock: Clock = system_clock) -> Catalog:
        """The database at `url`, created if it is an SQLite file, with the schema of this version."""
        parsed = parse_url(url)
        engine = open_engine(parsed)
        try:
            with translated(shown_url(parsed)):
                migrate(engine, shown_url(parsed))
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, clock)

    @property
    def url(self) -> str:
        """Without the password."""
        return shown_url(self._engine.url)

    @contextmanager
    def begin(self, *, write: bool = True) -> Iterator[CatalogTransaction]:
        """One transaction: committed at the end of the block, undone if the block raises.

        Writers take turns: on SQLite all of them, on PostgreSQL those that change the same stream table
        or lease. What was only read may change there, unless a lease protects it.

        With `write=False` it never waits for writers, sees one state of the database throughout, and
        refuses to change it. Blocks do not nest: on SQLite the inner one would wait for the outer.
        """
        with translated(self.url), connect(self._engine, write=write) as connection, connection.begin():
            yield CatalogTransaction.over(connection, self._clock)

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
