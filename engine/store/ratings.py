"""Blind ratings: rounds with their items, raters with their links, and one row per answer."""

from __future__ import annotations

import builtins
import datetime
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Required, TypedDict, Unpack

from sqlalchemy import JSON, ForeignKey, String, UniqueConstraint, case, delete, func, select
from sqlalchemy.orm import Mapped, mapped_column

from engine.core.json_object import Json
from engine.errors import InputError
from engine.messages import mark
from engine.store import tables
from engine.store.repositories import Repository, to_row

SKIP = "skip"  # instead of a question: the rater skipped the item
ASKED = 3  # questions per item


class RatingItem(TypedDict):
    """A sentence and its two translations."""

    source: str
    one: str
    two: str


class NewRound(TypedDict, total=False):
    """The content of a new round; the fields have the same names as in `RoundRow`."""

    one: Required[str]
    two: Required[str]
    source: Required[str]
    target: Required[str]
    seed: Required[int]
    items: Required[list[RatingItem]]
    about: Json
    comparison_id: int | None


class RatingRound(tables.Base):
    __tablename__ = "rating_round"
    __table_args__ = tables.FRESH_NUMBERS

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), index=True)
    comparison_id: Mapped[int | None] = mapped_column(ForeignKey("comparison.id", ondelete="SET NULL"))
    title: Mapped[str]
    one: Mapped[str]
    two: Mapped[str]
    source: Mapped[str] = mapped_column(String(32))
    target: Mapped[str] = mapped_column(String(32))
    seed: Mapped[int] = mapped_column(tables.WIDE)
    size: Mapped[int]
    items: Mapped[list[RatingItem]] = mapped_column(JSON, default=list)
    about: Mapped[Json] = mapped_column(JSON, default=dict)
    created: Mapped[datetime.datetime] = mapped_column(default=tables.now)
    closed: Mapped[datetime.datetime | None]


class RatingRater(tables.Base):
    __tablename__ = "rating_rater"
    __table_args__ = (UniqueConstraint("round_id", "name"), tables.FRESH_NUMBERS)

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("rating_round.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    token: Mapped[str] = mapped_column(String(64), unique=True)
    created: Mapped[datetime.datetime] = mapped_column(default=tables.now)


class RatingAnswer(tables.Base):
    __tablename__ = "rating_answer"
    __table_args__ = (UniqueConstraint("rater_id", "item", "question"), tables.FRESH_NUMBERS)

    id: Mapped[int] = mapped_column(primary_key=True)  # grows with every answer, so that the last one can be undone
    rater_id: Mapped[int] = mapped_column(ForeignKey("rating_rater.id", ondelete="CASCADE"), index=True)
    item: Mapped[int]
    question: Mapped[str] = mapped_column(String(16))
    choice: Mapped[str] = mapped_column(String(16))
    moment: Mapped[datetime.datetime] = mapped_column(default=tables.now)


@dataclass(frozen=True)
class RoundRow:
    """A rating round: sentences translated by two systems, `one` and `two`, and the seed that hides which is which.

    `about` holds the creator's details on the systems and on excluded sentences.
    """

    id: int
    project_id: int
    comparison_id: int | None
    title: str
    one: str
    two: str
    source: str  # languages
    target: str
    seed: int
    size: int
    items: list[RatingItem]
    about: Json
    created: datetime.datetime
    closed: datetime.datetime | None


@dataclass(frozen=True)
class RaterRow:
    """A rater; anyone with the token rates under this name."""

    id: int
    round_id: int
    name: str
    token: str
    created: datetime.datetime


@dataclass(frozen=True)
class AnswerRow:
    """A decision of a rater: `choice` is win, tie or lose for system one, or empty for a skipped item."""

    id: int
    rater_id: int
    item: int
    question: str
    choice: str
    moment: datetime.datetime


class Ratings(Repository[RatingRound, RoundRow]):
    """Rounds, their raters and the answers."""

    table = RatingRound
    row = RoundRow
    noun = mark("rating round")
    changeable = ("title", "closed")

    def create(self, project_id: int, title: str, **round_: Unpack[NewRound]) -> RoundRow:
        """A new round."""
        return self._add(**{"about": {}, **round_}, project_id=project_id, title=title, size=len(round_["items"]))

    def list(self, project_id: int | None = None) -> builtins.list[RoundRow]:
        """Rounds of one project or of all, newest first."""
        return self._list(None if project_id is None else RatingRound.project_id == project_id)

    # -- raters

    def add_rater(self, round_id: int, name: str) -> RaterRow:
        """Add a rater with a separate link. Raises InputError if the name is empty or taken in this round."""
        name = " ".join(name.split())[:80]
        if not name:
            raise InputError("A rater needs a name.")
        with self._store.write() as session:
            self._find(session, round_id)
            same = select(RatingRater.id).where(RatingRater.round_id == round_id, RatingRater.name == name)
            if session.scalar(same) is not None:
                raise InputError("This round already has a rater named {name}. Choose another name.", name=name)
            record = RatingRater(round_id=round_id, name=name, token=secrets.token_urlsafe(24))
            session.add(record)
            session.flush()
            return to_row(RaterRow, record)

    def raters(self, round_id: int) -> builtins.list[RaterRow]:
        """The raters of a round, in the order in which they were added."""
        query = select(RatingRater).where(RatingRater.round_id == round_id).order_by(RatingRater.id)
        with self._store.read() as session:
            return [to_row(RaterRow, record) for record in session.scalars(query)]

    def rater(self, token: str) -> RaterRow | None:
        """The rater of a link's token; None if it is unknown."""
        with self._store.read() as session:
            record = session.scalar(select(RatingRater).where(RatingRater.token == token))
            return None if record is None else to_row(RaterRow, record)

    def remove_rater(self, id: int) -> None:
        """Remove a rater and all answers; the link becomes invalid. Raises InputError if there is no such rater."""
        with self._store.write() as session:
            record = session.get(RatingRater, id)
            if record is None:
                raise InputError("There is no rater {id}: it may have been removed.", id=id)
            session.delete(record)

    # -- answers

    def answer(self, rater_id: int, item: int, question: str, choice: str) -> AnswerRow:
        """Store a decision; replaces an earlier one on the same question of the item."""
        with self._store.write() as session:
            session.execute(
                delete(RatingAnswer).where(
                    RatingAnswer.rater_id == rater_id, RatingAnswer.item == item, RatingAnswer.question == question
                )
            )
            record = RatingAnswer(rater_id=rater_id, item=item, question=question, choice=choice)
            session.add(record)
            session.flush()
            return to_row(AnswerRow, record)

    def undo(self, rater_id: int) -> AnswerRow | None:
        """Remove and return the rater's last decision; None if there is none."""
        last = select(RatingAnswer).where(RatingAnswer.rater_id == rater_id).order_by(RatingAnswer.id.desc()).limit(1)
        with self._store.write() as session:
            record = session.scalar(last)
            if record is None:
                return None
            row = to_row(AnswerRow, record)
            session.delete(record)
            return row

    def ask_again(self, rater_id: int) -> None:
        """Clear the items that the rater skipped, so that they are asked again."""
        with self._store.write() as session:
            session.execute(delete(RatingAnswer).where(RatingAnswer.rater_id == rater_id, RatingAnswer.question == SKIP))

    def answers(self, round_id: int | None = None, *, rater_id: int | None = None) -> builtins.list[AnswerRow]:
        """The decisions of a round or of a rater, in the order in which they were made."""
        query = select(RatingAnswer).order_by(RatingAnswer.id)
        if rater_id is not None:
            query = query.where(RatingAnswer.rater_id == rater_id)
        if round_id is not None:
            query = query.join(RatingRater).where(RatingRater.round_id == round_id)
        with self._store.read() as session:
            return [to_row(AnswerRow, record) for record in session.scalars(query)]

    def done(self, round_id: int) -> dict[int, int]:
        """{rater id: number of items decided or skipped}, without raters who have none."""
        finished = self._done(round_id).subquery()
        with self._store.read() as session:
            counts = select(finished.c.rater_id, func.count()).group_by(finished.c.rater_id)
            return {row[0]: row[1] for row in session.execute(counts)}

    def version(self, round_id: int) -> tuple[int, int, int]:
        """A value that changes whenever an answer or a rater of the round does."""
        answers = select(func.count(), func.coalesce(func.max(RatingAnswer.id), 0)).select_from(RatingAnswer)
        raters = select(func.count()).select_from(RatingRater).where(RatingRater.round_id == round_id)
        with self._store.read() as session:
            count, last = session.execute(answers.join(RatingRater).where(RatingRater.round_id == round_id)).one()
            return session.scalar(raters) or 0, count, last

    def progress(self, project_id: int) -> tuple[int, int] | None:
        """(items decided or skipped, items to be rated) over all raters of a project's newest round; None without raters."""
        newest = (
            select(RatingRound.id, RatingRound.size)
            .where(RatingRound.project_id == project_id)
            .order_by(RatingRound.id.desc())
            .limit(1)
        )
        with self._store.read() as session:
            result = session.execute(newest).first()
            if result is None:
                return None
            raters = select(func.count()).select_from(RatingRater).where(RatingRater.round_id == result.id)
            count = session.scalar(raters) or 0
            done = session.scalar(select(func.count()).select_from(self._done(result.id).subquery())) or 0
            return (done, count * result.size) if count else None

    def _done(self, round_id: int) -> Any:
        """A query for (rater id, item) of all items decided or skipped."""
        skipped = func.max(case((RatingAnswer.question == SKIP, 1), else_=0)) == 1
        return (
            select(RatingAnswer.rater_id, RatingAnswer.item)
            .join(RatingRater)
            .where(RatingRater.round_id == round_id)
            .group_by(RatingAnswer.rater_id, RatingAnswer.item)
            .having((func.count() >= ASKED) | skipped)
        )


def decided(answers: Sequence[AnswerRow]) -> dict[int, dict[str, str]]:
    """{item: {question: choice}}; a skipped item has no question."""
    result: dict[int, dict[str, str]] = {}
    for row in answers:
        item = result.setdefault(row.item, {})
        if row.question != SKIP:
            item[row.question] = row.choice
    return result
