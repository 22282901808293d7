"""Counts and seeds that outgrow 32 bits on PostgreSQL."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

WIDE = (("api_token", "characters"), ("rating_round", "seed"))


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        return  # its integers have 64 bits
    for table, column in WIDE:
        op.alter_column(table, column, type_=sa.BigInteger(), existing_type=sa.Integer(), existing_nullable=False)
