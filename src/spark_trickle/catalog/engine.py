"""Connections to the catalog: the settings both databases need, and how a transaction begins."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

from spark_trickle.catalog.failures import BUSY_SECONDS
from spark_trickle.catalog.url import shown_url
from spark_trickle.errors import CatalogError

_CONNECT_SECONDS = 10
"""libpq would wait for an unreachable server as long as the operating system does: minutes."""


def open_engine(url: URL) -> Engine:
    """Connections on demand; none is made yet."""
    return _open_sqlite(url) if url.get_backend_name() == "sqlite" else _open_postgres(url)


def connect(engine: Engine, *, write: bool) -> Connection:
    """A connection whose transactions may write, or only read, one consistent state."""
    connection = engine.connect()
    if engine.dialect.name == "sqlite":
        return connection.execution_options(write=write)
    return connection.execution_options(
        isolation_level="READ COMMITTED" if write else "REPEATABLE READ", postgresql_readonly=not write
    )


def _open_sqlite(url: URL) -> Engine:
    folder = Path(url.database or "").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CatalogError(
            f"The folder `{folder}` for the catalog cannot be created: {error.strerror}.",
            hint="Choose a folder that you may write to.",
        ) from error
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Python's driver would begin transactions by itself, late and without IMMEDIATE.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        # The switch, needed once in the life of the file, does not wait for other processes. Who loses
        # against one that is doing the same works on in the old mode; the next connection tries again.
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise


def _begin_sqlite(connection: Connection) -> None:
    """A transaction that read first and wants to write later can deadlock; IMMEDIATE waits at the start."""
    write = connection.get_execution_options()["write"]
    connection.exec_driver_sql(f"PRAGMA query_only = {'OFF' if write else 'ON'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _open_postgres(url: URL) -> Engine:
    arguments: dict[str, Any] = {}
    if "connect_timeout" not in url.query:
        arguments["connect_timeout"] = _CONNECT_SECONDS
    try:
        return create_engine(url, connect_args=arguments, pool_pre_ping=True)
    except ImportError as error:
        raise CatalogError(
            f"The catalog `{shown_url(url)}` needs the PostgreSQL driver, which is not installed.",
            hint="pip install 'spark-trickle[postgres]'",
        ) from error
