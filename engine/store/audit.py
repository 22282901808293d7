"""The audit log. Rows are only added: triggers in the database (revision `0002`) prevent changing or removing them."""

from __future__ import annotations

import builtins
import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import String, insert, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from engine.store import tables
from engine.store.repositories import to_row

if TYPE_CHECKING:
    from engine.core.actor import Actor


class AuditEntry(tables.Base):
    __tablename__ = "audit"
    __table_args__ = tables.FRESH_NUMBERS

    id: Mapped[int] = mapped_column(primary_key=True)
    moment: Mapped[datetime.datetime] = mapped_column(default=tables.now, index=True)
    who: Mapped[str]
    address: Mapped[str] = mapped_column(String(64), default="")
    action: Mapped[str] = mapped_column(String(64), index=True)
    project_id: Mapped[int | None] = mapped_column(index=True)  # no foreign key: it outlives the project
    target: Mapped[str] = mapped_column(default="")
    detail: Mapped[str] = mapped_column(default="")


@dataclass(frozen=True)
class AuditRow:
    """An audited action: `target` is the id of the affected object, `detail` its name or kind."""

    id: int
    moment: datetime.datetime
    who: str
    address: str
    action: str
    project_id: int | None
    target: str
    detail: str


def write_down(session: Session, job: tables.Job, act: str) -> None:
    """Log an action on a job that adds or removes no row, in the transaction that performs it."""
    access: Actor | None = session.info.get("access")
    if access is not None:
        _enter(session, access, f"job {act}", job.project_id, str(job.id), job.kind)


def _enter(session: Session, access: Actor, action: str, project_id: int | None, target: str, detail: str) -> None:
    session.connection().execute(
        insert(AuditEntry).values(
            moment=tables.now(), who=access.who[:200], address=access.address[:64], action=action[:64],
            project_id=project_id, target=target[:200], detail=detail[:200],
        )
    )  # fmt: skip


class Audit(tables.StorePart):
    """The audit log. Added and removed rows are logged by `engine.store.row_access`, all other actions here."""

    def note(self, access: Actor, action: str, *, project_id: int | None = None, target: object = "", detail: str = "") -> None:
        """Log an action that leaves no row: a sign-in, a download, an upload."""
        with self._store.system() as session:
            _enter(session, access, action, project_id, str(target), detail)

    def list(
        self,
        *,
        project_id: int | None = None,
        who: str = "",
        action: str = "",
        since: datetime.datetime | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> builtins.list[AuditRow]:
        """Entries, newest first; `action` matches its beginning, `before` is the id of an entry."""
        table = AuditEntry
        query = select(table).order_by(table.id.desc()).limit(limit)
        if project_id is not None:
            query = query.where(table.project_id == project_id)
        if who:
            query = query.where(table.who == who)
        if action:
            query = query.where(table.action.startswith(action, autoescape=True))
        if since is not None:
            query = query.where(table.moment >= since)
        if before is not None:
            query = query.where(table.id < before)
        with self._store.read() as session:
            return [to_row(AuditRow, record) for record in session.scalars(query)]
