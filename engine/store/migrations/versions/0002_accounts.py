"""Accounts, sessions, members of projects, the audit log; tokens that belong to somebody, open one project, run out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

MOMENT = sa.DateTime(timezone=True)
# The log can be added to, and nothing else.
KEEP_SQLITE = tuple(
    f"CREATE TRIGGER audit_no_{act.lower()} BEFORE {act} ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is append only'); END"
    for act in ("UPDATE", "DELETE")
)
KEEP_POSTGRES = (
    "CREATE FUNCTION audit_append_only() RETURNS trigger AS $$ BEGIN "
    "RAISE EXCEPTION 'the audit log is append only'; END $$ LANGUAGE plpgsql",
    "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
    "FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()",
)


def upgrade() -> None:
    op.create_table(
        "app_user",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded", sa.String(320), nullable=False),
        sa.Column("password", sa.Text(), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created", MOMENT, nullable=False),
        sa.Column("signed_in", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_app_user"),
        sa.UniqueConstraint("folded", name="uq_app_user_folded"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "sign_in",
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("created", MOMENT, nullable=False),
        sa.Column("expires", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_sign_in"),
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"], name="fk_sign_in_user_id_app_user", ondelete="CASCADE"),
    )
    op.create_index("ix_sign_in_user_id", "sign_in", ["user_id"])
    op.create_table(
        "project_member",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "user_id", name="pk_project_member"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_project_member_project_id_project", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"], name="fk_project_member_user_id_app_user", ondelete="CASCADE"),
    )
    op.create_index("ix_project_member_user_id", "project_member", ["user_id"])
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("moment", MOMENT, nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    for column in ("moment", "action", "project_id"):
        op.create_index(f"ix_audit_{column}", "audit", [column])
    # No foreign keys: a token of an account or a project that is gone opens nothing, and stays in the list.
    op.add_column("api_token", sa.Column("user_id", sa.Integer(), nullable=True))
    op.add_column("api_token", sa.Column("project_id", sa.Integer(), nullable=True))
    op.add_column("api_token", sa.Column("expires", MOMENT, nullable=True))
    for statement in KEEP_SQLITE if op.get_bind().dialect.name == "sqlite" else KEEP_POSTGRES:
        op.execute(statement)
