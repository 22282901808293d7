"""The data of a job's sentences, beside them: template and values, so that a reader of another language is told them too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("job", sa.Column("messages", sa.JSON(), nullable=True))
