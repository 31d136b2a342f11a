"""What a refresh was expected to take, beside what it took, and from what that was concluded."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("trickle_refreshes", sa.Column("predicted_seconds", sa.Float))
    op.add_column("trickle_refreshes", sa.Column("rows_estimated", sa.BigInteger))
