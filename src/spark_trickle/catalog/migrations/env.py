"""What Alembic executes for a migration, over the connection that `migrate` hands it."""

from __future__ import annotations

from alembic import context

from spark_trickle.catalog.schema import METADATA, VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite alters a table by copying it
)
with context.begin_transaction():
    context.run_migrations()
