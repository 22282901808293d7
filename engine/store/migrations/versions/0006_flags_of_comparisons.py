"""Flags of decoding's guard, beside the translations of a comparison."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("comparison_line", sa.Column("flags", sa.JSON(), nullable=True))
