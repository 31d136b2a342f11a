"""Bring a database to the schema of this version, once, however many processes open it."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, inspect, text

from spark_trickle.catalog.engine import connect
from spark_trickle.catalog.failures import BUSY_SECONDS
from spark_trickle.catalog.schema import REVISION, VERSION_TABLE

_ADVISORY_LOCK = int.from_bytes(b"trickle")
"""The number under which processes wait for each other in PostgreSQL."""


def migrate(engine: Engine, shown: str) -> None:
    """Run the steps that the database lacks, all in one transaction."""
    with connect(engine, write=False) as connection, connection.begin():
        if _revision(connection) == REVISION:
            return
    from spark_trickle.catalog.upgrade import (
        ALEMBIC,
        upgrade,
    )  # Alembic takes as long to import as all the rest

    with ALEMBIC, connect(engine, write=True) as connection, connection.begin():
        _wait_for_others(connection)
        upgrade(connection, _revision(connection), shown)


def _wait_for_others(connection: Connection) -> None:
    """SQLite has waited already, at BEGIN IMMEDIATE. Either lock ends with the transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _ADVISORY_LOCK})


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return None if found is None else str(found)
