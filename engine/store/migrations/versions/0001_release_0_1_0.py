"""The schema of release 0.1.0.

A store that was made before there were revisions is adopted: tables and indexes that it has stay as they are, the others
are added.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TABLES = sa.MetaData()
MOMENT = sa.DateTime(timezone=True)


sa.Table(
    "api_token",
    TABLES,
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("name", sa.Text(), nullable=False),
    sa.Column("shown", sa.String(16), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("scopes", sa.Text(), nullable=False),
    sa.Column("created", MOMENT, nullable=False),
    sa.Column("used", MOMENT, nullable=True),
    sa.Column("revoked", MOMENT, nullable=True),
    sa.Column("characters", sa.Integer(), nullable=False),
    sa.PrimaryKeyConstraint("id", name="pk_api_token"),
    sa.UniqueConstraint("hash", name="uq_api_token_hash"),
    sqlite_autoincrement=True,
)
sa.Table(
    "project",
    TABLES,
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("name", sa.Text(), nullable=False),
    sa.Column("source", sa.String(32), nullable=False),
    sa.Column("target", sa.String(32), nullable=False),
    sa.Column("base", sa.Text(), nullable=False),
    sa.Column("created", MOMENT, nullable=False),
    sa.Column("updated", MOMENT, nullable=False),
    sa.PrimaryKeyConstraint("id", name="pk_project"),
    sqlite_autoincrement=True,
)
sa.Table(
    "schema_version",
    TABLES,
    sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
    sa.PrimaryKeyConstraint("version", name="pk_schema_version"),
)
sa.Table(
    "worker",
    TABLES,
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("host", sa.Text(), nullable=False),
    sa.Column("pid", sa.Integer(), nullable=False),
    sa.Column("job_id", sa.Integer(), nullable=True),
    sa.Column("started", MOMENT, nullable=False),
    sa.Column("heartbeat", MOMENT, nullable=False),
    sa.PrimaryKeyConstraint("name", name="pk_worker"),
)
sa.Table(
    "comparison",
    TABLES,
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("project_id", sa.Integer(), nullable=False),
    sa.Column("title", sa.Text(), nullable=False),
    sa.Column("rows", sa.JSON(), nullable=False),
    sa.Column("created", MOMENT, nullable=False),
    sa.PrimaryKeyConstraint("id", name="pk_comparison"),
    sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_comparison_project_id_project", ondelete="CASCADE"),
    sa.Index("ix_comparison_project_id", "project_id"),
    sqlite_autoincrement=True,
)
sa.Table(
    "corpus",
    TABLES,
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("project_id", sa.Integer(), nullable=False),
    sa.Column("name", sa.Text(), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("folder", sa.Text(), nullable=False),
    sa.Column("kept", sa.Integer(), nullable=False),
    sa.Column("skipped", sa.JSON(), nullable=False),
    sa.Column("report", sa.JSON(), nullable=False),
    sa.Column("created", MOMENT, nullable=False),
    sa.PrimaryKeyConstraint("id", name="pk_corpus"),
    sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_corpus_project_id_project", ondelete="CASCADE"),
    sa.Index("ix_corpus_project_id", "project_id"),
    sqlite_autoincrement=True,
)
sa.Table(
    "job",
    TABLES,
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("project_id", sa.Integer(), nullable=True),
    sa.Column("kind", sa.String(64), nullable=False),
    sa.Column("arguments", sa.JSON(), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("step", sa.Text(), nullable=False),
    sa.Column("step_index", sa.Integer(), nullable=False),
    sa.Column("steps", sa.Integer(), nullable=False),
    sa.Column("done", sa.Double(), nullable=False),
    sa.Column("total", sa.Double(), nullable=True),
    sa.Column("eta", sa.Double(), nullable=True),
    sa.Column("note", sa.Text(), nullable=False),
    sa.Column("metrics", sa.JSON(), nullable=False),
    sa.Column("heartbeat", MOMENT, nullable=True),
    sa.Column("worker", sa.Text(), nullable=False),
    sa.Column("pid", sa.Integer(), nullable=True),
    sa.Column("attempt", sa.Integer(), nullable=False),
    sa.Column("error", sa.Text(), nullable=False),
    sa.Column("result", sa.JSON(), nullable=False),
    sa.Column("log_path", sa.Text(), nullable=False),
    sa.Column("created", MOMENT, nullable=False),
    sa.Column("started", MOMENT, nullable=True),
    sa.Column("finished", MOMENT, nullable=True),
    sa.Column("cancel_requested", sa.Boolean(), nullable=False),
    sa.PrimaryKeyConstraint("id", name="pk_job"),
    sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_job_project_id_project", ondelete="CASCADE"),
    sa.Index("ix_job_project_id", "project_id"),
    sa.Index("ix_job_state_id", "state", "id"),
    sa.Index(
        "uq_job_running_project",
        "project_id",
        unique=True,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    ),
    sqlite_autoincrement=True,
)
sa.Table(
    "comparison_line",
    TABLES,
    sa.Column("comparison_id", sa.Integer(), nullable=False),
    sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
    sa.Column("source", sa.Text(), nullable=False),
    sa.Column("reference", sa.Text(), nullable=True),
    sa.Column("texts", sa.JSON(), nullable=False),
    sa.Column("scores", sa.JSON(), nullable=False),
    sa.Column("done", sa.Boolean(), nullable=False),
    sa.Column("difference", sa.Double(), nullable=True),
    sa.Column("change", sa.Double(), nullable=True),
    sa.PrimaryKeyConstraint("comparison_id", "place", name="pk_comparison_line"),
    sa.ForeignKeyConstraint(
        ["comparison_id"], ["comparison.id"], name="fk_comparison_line_comparison_id_comparison", ondelete="CASCADE"
    ),
    sa.Index("ix_comparison_line_change", "comparison_id", "change"),
    sa.Index("ix_comparison_line_difference", "comparison_id", "difference"),
    sa.Index("ix_comparison_line_done", "comparison_id", "done", "place"),
)
sa.Table(
    "comparison_sheet",
    TABLES,
    sa.Column("comparison_id", sa.Integer(), nullable=False),
    sa.Column("file", sa.Text(), nullable=False),
    sa.Column("lines", sa.Integer(), nullable=False),
    sa.Column("references", sa.Integer(), nullable=False),
    sa.Column("systems", sa.JSON(), nullable=False),
    sa.Column("figures", sa.JSON(), nullable=False),
    sa.Column("job_id", sa.Integer(), nullable=True),
    sa.Column("kept", sa.Boolean(), nullable=False),
    sa.Column("revision", sa.Integer(), nullable=False),
    sa.PrimaryKeyConstraint("comparison_id", name="pk_comparison_sheet"),
    sa.ForeignKeyConstraint(
        ["comparison_id"], ["comparison.id"], name="fk_comparison_sheet_comparison_id_comparison", ondelete="CASCADE"
    ),
    sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_comparison_sheet_job_id_job", ondelete="SET NULL"),
)
sa.Table(
    "job_usage",
    TABLES,
    sa.Column("job_id", sa.Integer(), nullable=False),
    sa.Column("cpu", sa.Double(), nullable=False),
    sa.Column("memory", sa.BigInteger(), nullable=False),
    sa.Column("peak", sa.BigInteger(), nullable=False),
    sa.Column("gpu", sa.BigInteger(), nullable=False),
    sa.Column("gpu_total", sa.BigInteger(), nullable=False),
    sa.Column("measured", MOMENT, nullable=False),
    sa.PrimaryKeyConstraint("job_id", name="pk_job_usage"),
    sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_usage_job_id_job", ondelete="CASCADE"),
)
sa.Table(
    "phrase_set",
    TABLES,
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("corpus_id", sa.Integer(), nullable=False),
    sa.Column("path", sa.Text(), nullable=False),
    sa.Column("parser", sa.Text(), nullable=False),
    sa.Column("count", sa.Integer(), nullable=False),
    sa.Column("created", MOMENT, nullable=False),
    sa.PrimaryKeyConstraint("id", name="pk_phrase_set"),
    sa.ForeignKeyConstraint(["corpus_id"], ["corpus.id"], name="fk_phrase_set_corpus_id_corpus", ondelete="CASCADE"),
    sa.Index("ix_phrase_set_corpus_id", "corpus_id"),
    sqlite_autoincrement=True,
)
sa.Table(
    "plugin",
    TABLES,
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("project_id", sa.Integer(), nullable=False),
    sa.Column("job_id", sa.Integer(), nullable=True),
    sa.Column("name", sa.Text(), nullable=False),
    sa.Column("method", sa.String(64), nullable=False),
    sa.Column("path", sa.Text(), nullable=False),
    sa.Column("base_fingerprint", sa.Text(), nullable=False),
    sa.Column("metrics", sa.JSON(), nullable=False),
    sa.Column("created", MOMENT, nullable=False),
    sa.PrimaryKeyConstraint("id", name="pk_plugin"),
    sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_plugin_job_id_job", ondelete="SET NULL"),
    sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_plugin_project_id_project", ondelete="CASCADE"),
    sa.Index("ix_plugin_job_id", "job_id"),
    sa.Index("ix_plugin_project_id", "project_id"),
    sqlite_autoincrement=True,
)
sa.Table(
    "rating_round",
    TABLES,
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("project_id", sa.Integer(), nullable=False),
    sa.Column("comparison_id", sa.Integer(), nullable=True),
    sa.Column("title", sa.Text(), nullable=False),
    sa.Column("one", sa.Text(), nullable=False),
    sa.Column("two", sa.Text(), nullable=False),
    sa.Column("source", sa.String(32), nullable=False),
    sa.Column("target", sa.String(32), nullable=False),
    sa.Column("seed", sa.Integer(), nullable=False),
    sa.Column("size", sa.Integer(), nullable=False),
    sa.Column("items", sa.JSON(), nullable=False),
    sa.Column("about", sa.JSON(), nullable=False),
    sa.Column("created", MOMENT, nullable=False),
    sa.Column("closed", MOMENT, nullable=True),
    sa.PrimaryKeyConstraint("id", name="pk_rating_round"),
    sa.ForeignKeyConstraint(
        ["comparison_id"], ["comparison.id"], name="fk_rating_round_comparison_id_comparison", ondelete="SET NULL"
    ),
    sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_rating_round_project_id_project", ondelete="CASCADE"),
    sa.Index("ix_rating_round_project_id", "project_id"),
    sqlite_autoincrement=True,
)
sa.Table(
    "default_plugin",
    TABLES,
    sa.Column("project_id", sa.Integer(), nullable=False),
    sa.Column("plugin_id", sa.Integer(), nullable=True),
    sa.PrimaryKeyConstraint("project_id", name="pk_default_plugin"),
    sa.ForeignKeyConstraint(["plugin_id"], ["plugin.id"], name="fk_default_plugin_plugin_id_plugin", ondelete="CASCADE"),
    sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_default_plugin_project_id_project", ondelete="CASCADE"),
)
sa.Table(
    "plugin_tag",
    TABLES,
    sa.Column("plugin_id", sa.Integer(), nullable=False),
    sa.Column("tag", sa.String(40), nullable=False),
    sa.PrimaryKeyConstraint("plugin_id", "tag", name="pk_plugin_tag"),
    sa.ForeignKeyConstraint(["plugin_id"], ["plugin.id"], name="fk_plugin_tag_plugin_id_plugin", ondelete="CASCADE"),
)
sa.Table(
    "rating_rater",
    TABLES,
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("round_id", sa.Integer(), nullable=False),
    sa.Column("name", sa.Text(), nullable=False),
    sa.Column("token", sa.String(64), nullable=False),
    sa.Column("created", MOMENT, nullable=False),
    sa.PrimaryKeyConstraint("id", name="pk_rating_rater"),
    sa.ForeignKeyConstraint(["round_id"], ["rating_round.id"], name="fk_rating_rater_round_id_rating_round", ondelete="CASCADE"),
    sa.UniqueConstraint("round_id", "name", name="uq_rating_rater_round_id_name"),
    sa.UniqueConstraint("token", name="uq_rating_rater_token"),
    sa.Index("ix_rating_rater_round_id", "round_id"),
    sqlite_autoincrement=True,
)
sa.Table(
    "rating_answer",
    TABLES,
    sa.Column("id", sa.Integer(), nullable=False),
    sa.Column("rater_id", sa.Integer(), nullable=False),
    sa.Column("item", sa.Integer(), nullable=False),
    sa.Column("question", sa.String(16), nullable=False),
    sa.Column("choice", sa.String(16), nullable=False),
    sa.Column("moment", MOMENT, nullable=False),
    sa.PrimaryKeyConstraint("id", name="pk_rating_answer"),
    sa.ForeignKeyConstraint(["rater_id"], ["rating_rater.id"], name="fk_rating_answer_rater_id_rating_rater", ondelete="CASCADE"),
    sa.UniqueConstraint("rater_id", "item", "question", name="uq_rating_answer_rater_id_item_question"),
    sa.Index("ix_rating_answer_rater_id", "rater_id"),
    sqlite_autoincrement=True,
)


def upgrade() -> None:
    connection = op.get_bind()
    inspector = sa.inspect(connection)
    existing = set(inspector.get_table_names())
    for table in TABLES.sorted_tables:
        if table.name not in existing:
            table.create(connection)
            continue
        indexes = {index["name"] for index in inspector.get_indexes(table.name)}
        for index in table.indexes:
            if index.name not in indexes:
                index.create(connection)
