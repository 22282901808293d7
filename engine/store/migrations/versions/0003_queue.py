"""Jobs have priorities, owners, devices, jobs they wait for, steps, and retries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for column in (
        sa.Column("owner", sa.Text(), nullable=False, server_default=""),
        sa.Column("party", sa.String(255), nullable=False, server_default=""),
        sa.Column("priority", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("device", sa.String(16), nullable=False, server_default=""),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("after", sa.JSON(), nullable=False, server_default="[]"),
        sa.Column("trail", sa.JSON(), nullable=False, server_default="[]"),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("retries", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("reached", sa.Double(), nullable=False, server_default="0"),
    ):
        op.add_column("job", column)
    op.create_index("ix_job_parent_id", "job", ["parent_id"])
    op.create_table(
        "job_after",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("after_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "after_id", name="pk_job_after"),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_after_job_id_job", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["after_id"], ["job.id"], name="fk_job_after_after_id_job", ondelete="CASCADE"),
    )
    op.create_index("ix_job_after_after_id", "job_after", ["after_id"])
    op.create_table(
        "job_turn",
        sa.Column("party", sa.String(255), nullable=False),
        sa.Column("served", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("party", name="pk_job_turn"),
    )
    op.execute("UPDATE job SET party = 'project ' || project_id WHERE project_id IS NOT NULL")
    # What was interrupted long ago goes on when somebody says so, not because the program is newer.
    op.execute("UPDATE job SET retries = -1 WHERE state = 'interrupted'")
