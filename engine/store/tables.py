"""The tables, in SQLAlchemy's typed declarative form. These classes are not used outside engine/store."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    TypeDecorator,
    false,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from engine.core.json_object import Json
from engine.messages import pack, unpack
from engine.store.records import TrailStep

if TYPE_CHECKING:
    from engine.store.store import Store


def now() -> datetime.datetime:
    """The current time as an aware datetime in UTC."""
    return datetime.datetime.now(datetime.UTC)


class Utc(TypeDecorator[datetime.datetime]):
    """A point in time. SQLite keeps no time zone, so all are stored in UTC and returned aware."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime.datetime | None, dialect: Dialect) -> datetime.datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError("times in the store need a time zone")
        return None if value is None else value.astimezone(datetime.UTC)

    def process_result_value(self, value: datetime.datetime | None, dialect: Dialect) -> datetime.datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)


class Packed(TypeDecorator[Json]):
    """A JSON object that stores the data of the messages in it along with their text."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Json | None, dialect: Dialect) -> Json | None:
        return None if value is None else pack(value)

    def process_result_value(self, value: Json | None, dialect: Dialect) -> Json | None:
        return unpack(value) if isinstance(value, dict) else value


class Base(DeclarativeBase):
    """Names all constraints, so that migrations can address each of them on every database."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's way
        datetime.datetime: Utc,
        Json: Packed,
        list[Json]: JSON,
        list[TrailStep]: JSON,
        list[Any]: JSON,
        str: Text,
    }


class StorePart:
    """Base of the classes that give access to a group of the store's tables."""

    def __init__(self, store: Store) -> None:
        self._store = store


# A 64-bit integer: PostgreSQL's INTEGER has 32 bits, SQLite's is large enough.
WIDE = BigInteger().with_variant(Integer(), "sqlite")

# An id must never be reused, not even after a delete: folders and logs are named after it.
FRESH_NUMBERS = {"sqlite_autoincrement": True}


class SchemaVersion(Base):
    """One row: the number of the last revision (see engine/store/schema.py)."""

    __tablename__ = "schema_version"

    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class Project(Base):
    __tablename__ = "project"
    __table_args__ = FRESH_NUMBERS

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    source: Mapped[str] = mapped_column(String(32))
    target: Mapped[str] = mapped_column(String(32))
    base: Mapped[str]
    created: Mapped[datetime.datetime] = mapped_column(default=now)
    updated: Mapped[datetime.datetime] = mapped_column(default=now, onupdate=now)


class Corpus(Base):
    __tablename__ = "corpus"
    __table_args__ = FRESH_NUMBERS

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    state: Mapped[str] = mapped_column(String(16))
    folder: Mapped[str]
    kept: Mapped[int] = mapped_column(default=0)
    skipped: Mapped[Json] = mapped_column(default=dict)
    report: Mapped[Json] = mapped_column(default=dict)
    created: Mapped[datetime.datetime] = mapped_column(default=now)


class PhraseSet(Base):
    __tablename__ = "phrase_set"
    __table_args__ = FRESH_NUMBERS

    id: Mapped[int] = mapped_column(primary_key=True)
    corpus_id: Mapped[int] = mapped_column(ForeignKey("corpus.id", ondelete="CASCADE"), index=True)
    path: Mapped[str]
    parser: Mapped[str]
    count: Mapped[int]
    created: Mapped[datetime.datetime] = mapped_column(default=now)


class Job(Base):
    __tablename__ = "job"
    __table_args__ = (
        Index("ix_job_state_id", "state", "id"),
        # Two running jobs of one project would write to the same workspace.
        Index(
            "uq_job_running_project",
            "project_id",
            unique=True,
            sqlite_where=text("state = 'running'"),
            postgresql_where=text("state = 'running'"),
        ),
        FRESH_NUMBERS,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int | None] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str] = mapped_column(String(64))
    arguments: Mapped[Json] = mapped_column(default=dict)
    state: Mapped[str] = mapped_column(String(16), default="queued")
    step: Mapped[str] = mapped_column(default="")
    step_index: Mapped[int] = mapped_column(default=0)
    steps: Mapped[int] = mapped_column(default=1)
    done: Mapped[float] = mapped_column(default=0.0)
    total: Mapped[float | None]
    eta: Mapped[float | None]
    note: Mapped[str] = mapped_column(default="")
    metrics: Mapped[Json] = mapped_column(default=dict)
    heartbeat: Mapped[datetime.datetime | None]
    worker: Mapped[str] = mapped_column(default="")
    pid: Mapped[int | None]
    attempt: Mapped[int] = mapped_column(default=1)
    error: Mapped[str] = mapped_column(default="")
    messages: Mapped[list[Any] | None]  # the data of the messages in `error` and `note`
    result: Mapped[Json] = mapped_column(default=dict)
    log_path: Mapped[str] = mapped_column(default="")
    created: Mapped[datetime.datetime] = mapped_column(default=now)
    started: Mapped[datetime.datetime | None]
    finished: Mapped[datetime.datetime | None]
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    owner: Mapped[str] = mapped_column(default="")
    party: Mapped[str] = mapped_column(String(255), default="")  # for fair scheduling: the owner, else the project
    priority: Mapped[int] = mapped_column(default=0)
    device: Mapped[str] = mapped_column(String(16), default="")
    parent_id: Mapped[int | None] = mapped_column(index=True)  # not used
    after: Mapped[list[Any]] = mapped_column(default=list)  # not used
    trail: Mapped[list[TrailStep]] = mapped_column(default=list)
    not_before: Mapped[datetime.datetime | None]
    retries: Mapped[int] = mapped_column(default=0)
    reached: Mapped[float] = mapped_column(default=0.0)


class JobAfter(Base):
    """Not used; part of the schema."""

    __tablename__ = "job_after"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    after_id: Mapped[int] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True, index=True)


class JobTurn(Base):
    """When each party was last served, as a counter, since clocks may be set back."""

    __tablename__ = "job_turn"

    party: Mapped[str] = mapped_column(String(255), primary_key=True)
    served: Mapped[int] = mapped_column(default=0)


class Plugin(Base):
    __tablename__ = "plugin"
    __table_args__ = FRESH_NUMBERS

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), index=True)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id", ondelete="SET NULL"), index=True)
    name: Mapped[str]
    method: Mapped[str] = mapped_column(String(64))
    path: Mapped[str]
    base_fingerprint: Mapped[str] = mapped_column(default="")
    metrics: Mapped[Json] = mapped_column(default=dict)
    created: Mapped[datetime.datetime] = mapped_column(default=now)
    imported: Mapped[bool] = mapped_column(default=False, server_default=false())


class Comparison(Base):
    __tablename__ = "comparison"
    __table_args__ = FRESH_NUMBERS

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), index=True)
    title: Mapped[str]
    rows: Mapped[list[Json]] = mapped_column(default=list)
    created: Mapped[datetime.datetime] = mapped_column(default=now)


class Worker(Base):
    __tablename__ = "worker"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    host: Mapped[str]
    pid: Mapped[int]
    job_id: Mapped[int | None]
    started: Mapped[datetime.datetime] = mapped_column(default=now)
    heartbeat: Mapped[datetime.datetime] = mapped_column(default=now)


class ArtefactSet(Base):
    """The files of one workspace, {path: [SHA-256, bytes]}, as last published."""

    __tablename__ = "artefact_set"

    workspace: Mapped[str] = mapped_column(String(255), primary_key=True)
    project_id: Mapped[int | None] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), index=True)
    version: Mapped[int] = mapped_column(default=0)
    files: Mapped[Json] = mapped_column(default=dict)
    changed: Mapped[datetime.datetime] = mapped_column(default=now)
