"""Alembic's part of bringing a database to the schema of this version; imported only when there is something to do."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from spark_trickle.errors import CatalogError

_FOLDER = Path(__file__).with_name("migrations")

ALEMBIC = threading.Lock()
"""Alembic keeps the migration under way in module globals."""


def upgrade(connection: Connection, revision: str | None, shown: str) -> None:
    """Run the steps that the database lacks."""
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    _refuse_newer(revision, ScriptDirectory.from_config(config), shown)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _refuse_newer(revision: str | None, script: ScriptDirectory, shown: str) -> None:
    if revision is not None and revision not in {known.revision for known in script.walk_revisions()}:
        raise CatalogError(
            f"The catalog `{shown}` has schema `{revision}`, made by a newer spark-trickle than this one.",
            hint="pip install --upgrade spark-trickle",
            code="CATALOG_TOO_NEW",
        )
