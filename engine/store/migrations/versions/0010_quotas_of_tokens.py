"""Monthly quotas of tokens: how many characters a token may have translated a month, and how many it had in its last one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

WIDE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("api_token", sa.Column("quota", WIDE, nullable=True))
    op.add_column("api_token", sa.Column("month", sa.String(7), nullable=False, server_default=""))
    op.add_column("api_token", sa.Column("month_characters", WIDE, nullable=False, server_default="0"))
