"""The second factor of accounts: the key of an authenticator, and hashes of recovery codes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("app_user", sa.Column("factor", sa.JSON(), nullable=True))
