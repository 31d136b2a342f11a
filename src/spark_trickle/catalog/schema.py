"""The tables. Every change here needs a step in `migrations/versions/`; a test compares the two."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

from spark_trickle.catalog.columns import FrontierText, JsonMapping, JsonPairs, Message, UtcDateTime

VERSION_TABLE = "trickle_schema_version"
"""Alembic's own table. Our names start with `trickle_` because a PostgreSQL database may be shared."""

REVISION = "0004"
"""The last step in `migrations/versions/`; a test compares the two."""

METADATA = MetaData(
    # Named constraints can be dropped by a later migration on either database.
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

_COUNTER = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows itself only in a column of the type INTEGER."""


def _stream_table_id() -> Column[str]:
    return Column(
        "stream_table_id",
        String(32),
        ForeignKey("trickle_stream_tables.id", ondelete="CASCADE"),
        nullable=False,
    )


STREAM_TABLES = Table(
    "trickle_stream_tables",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("location", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("definition_kind", String(16), nullable=False),
    Column("catalog_name", Text, nullable=False),
    Column("database_name", Text, nullable=False),
    Column("session_settings", JsonMapping, nullable=False),
    Column("schedule", Text, nullable=False),
    Column("refresh_mode", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("frontier", FrontierText),
    Column("table_version", BigInteger),
    Column("table_id", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("consecutive_errors", BigInteger, nullable=False),
    Column("last_error", Message, nullable=False),
    Column("needs_reinit", Boolean, nullable=False),
    Column("reinit_reason", Message, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("data_timestamp", UtcDateTime),
    Column("failed_at", UtcDateTime),
    Column("diamond_consistency", String(16), nullable=False, server_default="none"),
)

DEPENDENCIES = Table(
    "trickle_dependencies",
    METADATA,
    _stream_table_id(),
    Column("source_name", Text, nullable=False, index=True),
    Column("source_kind", String(16), nullable=False),
    Column("source_id", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("columns", JsonPairs, nullable=False),
    PrimaryKeyConstraint("stream_table_id", "source_name"),
)

REFRESHES = Table(
    "trickle_refreshes",
    METADATA,
    Column("id", _COUNTER, primary_key=True, autoincrement=True),
    _stream_table_id(),
    Column("sequence", BigInteger, nullable=False),
    Column("status", String(16), nullable=False),
    Column("action", String(16)),
    Column("reason", Message, nullable=False),
    Column("rows_inserted", BigInteger, nullable=False),
    Column("rows_deleted", BigInteger, nullable=False),
    Column("rows_changed", BigInteger, nullable=False),
    Column("version", BigInteger),
    Column("frontier", FrontierText),
    Column("started_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    Column("durations", JsonMapping, nullable=False),
    Column("error", Message, nullable=False),
    Column("error_code", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("iterations", BigInteger, nullable=False, server_default="0"),
    Column("predicted_seconds", Float),
    Column("rows_estimated", BigInteger),
    Index(None, "stream_table_id", "id"),
    # Numbers of removed refreshes are not given out again.
    sqlite_autoincrement=True,
)

LEASES = Table(
    "trickle_leases",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("acquired_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)

EPOCHS = Table(
    "trickle_epochs",
    METADATA,
    Column("data_timestamp", UtcDateTime, nullable=False),
    Column("source_name", Text, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("data_timestamp", "source_name"),
)
