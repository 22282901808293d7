"""The data of a job's sentences, beside them: template and values, so that they can be shown in another language."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("job", sa.Column("messages", sa.JSON(), nullable=True))
