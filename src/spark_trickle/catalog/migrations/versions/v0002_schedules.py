"""What the scheduler needs: how fresh a table is, when it failed, and which versions belong to a data timestamp."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("trickle_stream_tables", sa.Column("data_timestamp", sa.DateTime(timezone=True)))
    op.add_column("trickle_stream_tables", sa.Column("failed_at", sa.DateTime(timezone=True)))
    op.create_table(
        "trickle_epochs",
        sa.Column("data_timestamp", sa.DateTime(timezone=True), nullable=False),
        sa.Column("source_name", sa.Text, nullable=False),
        sa.Column("table_id", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("data_timestamp", "source_name", name="pk_trickle_epochs"),
    )
