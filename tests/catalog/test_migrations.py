from __future__ import annotations

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect

from spark_trickle.catalog import Catalog, migrate
from spark_trickle.catalog.schema import METADATA, REVISION, VERSION_TABLE
from spark_trickle.catalog.url import parse_url


def test_the_migrated_schema_is_the_schema_of_the_code(url: str) -> None:
    Catalog.open(url).close()
    engine = create_engine(parse_url(url))
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True},
        )
        assert compare_metadata(context, METADATA) == []
        # Alembic does not compare primary keys, nor the names and rules of foreign keys on SQLite.
        for table in METADATA.sorted_tables:
            found = inspect(connection)
            assert found.get_pk_constraint(table.name)["constrained_columns"] == [
                column.name for column in table.primary_key
            ]
            assert [key["options"] for key in found.get_foreign_keys(table.name)] == [
                {"ondelete": "CASCADE"} for _ in table.foreign_key_constraints
            ]
    engine.dispose()


def test_the_revision_of_the_code_is_the_last_step() -> None:
    folder = Path(migrate.__file__).with_name("migrations")
    assert ScriptDirectory(str(folder)).get_current_head() == REVISION


def test_opening_again_changes_nothing(url: str) -> None:
    Catalog.open(url).close()
    engine = create_engine(parse_url(url))
    with engine.connect() as connection:
        before = sorted(inspect(connection).get_table_names())
    Catalog.open(url).close()
    with engine.connect() as connection:
        assert sorted(inspect(connection).get_table_names()) == before
    engine.dispose()
    assert before == sorted([*METADATA.tables, VERSION_TABLE])
