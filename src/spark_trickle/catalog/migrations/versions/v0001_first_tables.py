"""Stream tables, their dependencies, the history and the leases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _create_stream_tables()
    _create_dependencies()
    _create_refreshes()
    _create_leases()


def _create_stream_tables() -> None:
    op.create_table(
        "trickle_stream_tables",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("definition_kind", sa.String(16), nullable=False),
        sa.Column("catalog_name", sa.Text, nullable=False),
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("session_settings", sa.JSON, nullable=False),
        sa.Column("schedule", sa.Text, nullable=False),
        sa.Column("refresh_mode", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("frontier", sa.Text),
        sa.Column("table_version", sa.BigInteger),
        sa.Column("table_id", sa.Text, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("consecutive_errors", sa.BigInteger, nullable=False),
        sa.Column("last_error", sa.Text, nullable=False),
        sa.Column("needs_reinit", sa.Boolean, nullable=False),
        sa.Column("reinit_reason", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_trickle_stream_tables"),
        sa.UniqueConstraint("name", name="uq_trickle_stream_tables_name"),
    )


def _create_dependencies() -> None:
    op.create_table(
        "trickle_dependencies",
        sa.Column("stream_table_id", sa.String(32), nullable=False),
        sa.Column("source_name", sa.Text, nullable=False),
        sa.Column("source_kind", sa.String(16), nullable=False),
        sa.Column("source_id", sa.Text, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("columns", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("stream_table_id", "source_name", name="pk_trickle_dependencies"),
        sa.ForeignKeyConstraint(
            ["stream_table_id"],
            ["trickle_stream_tables.id"],
            name="fk_trickle_dependencies_stream_table_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_trickle_dependencies_source_name", "trickle_dependencies", ["source_name"])


def _create_refreshes() -> None:
    op.create_table(
        "trickle_refreshes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("stream_table_id", sa.String(32), nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("action", sa.String(16)),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("rows_inserted", sa.BigInteger, nullable=False),
        sa.Column("rows_deleted", sa.BigInteger, nullable=False),
        sa.Column("rows_changed", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger),
        sa.Column("frontier", sa.Text),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("durations", sa.JSON, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("error_code", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_trickle_refreshes"),
        sa.ForeignKeyConstraint(
            ["stream_table_id"],
            ["trickle_stream_tables.id"],
            name="fk_trickle_refreshes_stream_table_id",
            ondelete="CASCADE",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_trickle_refreshes_stream_table_id", "trickle_refreshes", ["stream_table_id", "id"])


def _create_leases() -> None:
    op.create_table(
        "trickle_leases",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("acquired_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_trickle_leases"),
    )
