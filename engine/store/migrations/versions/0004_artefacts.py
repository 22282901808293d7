"""The files of each workspace, by content."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "artefact_set",
        sa.Column("workspace", sa.String(255), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("changed", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("workspace", name="pk_artefact_set"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_artefact_set_project_id_project", ondelete="CASCADE"),
    )
    op.create_index("ix_artefact_set_project_id", "artefact_set", ["project_id"])
