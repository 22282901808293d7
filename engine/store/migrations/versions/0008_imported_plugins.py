"""Whether a plugin was imported: such a one is a project's default only where it was chosen."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("plugin", sa.Column("imported", sa.Boolean(), nullable=False, server_default=sa.false()))
