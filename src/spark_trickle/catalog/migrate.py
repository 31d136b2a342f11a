"""Bring a database to the schema of this version, once, however many processes open it."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from spark_trickle.catalog.engine import connect
from spark_trickle.catalog.failures import BUSY_SECONDS
from spark_trickle.catalog.schema import VERSION_TABLE
from spark_trickle.errors import CatalogError

_FOLDER = Path(__file__).with_name("migrations")

_ADVISORY_LOCK = int.from_bytes(b"trickle")
"""The number under which processes wait for each other in PostgreSQL."""

_ALEMBIC = threading.Lock()
"""Alembic keeps the migration under way in module globals."""


def migrate(engine: Engine, shown: str) -> None:
    """Run the steps that the database lacks, all in one transaction."""
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    script = ScriptDirectory.from_config(config)
    with connect(engine, write=False) as connection, connection.begin():
        if _revision(connection) == script.get_current_head():
            return
    with _ALEMBIC, connect(engine, write=True) as connection, connection.begin():
        _wait_for_others(connection)
        _refuse_newer(_revision(connection), script, shown)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _wait_for_others(connection: Connection) -> None:
    """SQLite has waited already, at BEGIN IMMEDIATE. Either lock ends with the transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _ADVISORY_LOCK})


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_revision()


def _refuse_newer(revision: str | None, script: ScriptDirectory, shown: str) -> None:
    if revision is not None and revision not in {known.revision for known in script.walk_revisions()}:
        raise CatalogError(
            f"The catalog `{shown}` has schema `{revision}`, made by a newer spark-trickle than this one.",
            hint="pip install --upgrade spark-trickle",
            code="CATALOG_TOO_NEW",
        )
