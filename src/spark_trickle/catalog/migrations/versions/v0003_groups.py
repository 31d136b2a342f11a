"""Stream tables that are refreshed together: atomic diamonds, and cycles with their iterations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column(
        "trickle_stream_tables",
        sa.Column("diamond_consistency", sa.String(16), nullable=False, server_default="none"),
    )
    op.add_column(
        "trickle_refreshes", sa.Column("iterations", sa.BigInteger, nullable=False, server_default="0")
    )
