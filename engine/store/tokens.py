"""API tokens, with which programs sign in. Only hashes are stored, so a copy of the store grants no access."""

from __future__ import annotations

import builtins
import datetime
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import String, select
from sqlalchemy.orm import Mapped, mapped_column

from engine.errors import InputError
from engine.messages import mark
from engine.store import tables
from engine.store.repositories import Repository

PREFIX = "tmt_"
SCOPES = ("read", "translate", "write", "admin", "metrics")
MOST_QUOTA = 10**15  # characters a month
MOST_DAYS = 36_500
SHOWN = 8  # characters stored in clear text, to distinguish tokens in a list


class ApiToken(tables.Base):
    __tablename__ = "api_token"
    __table_args__ = tables.FRESH_NUMBERS

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    shown: Mapped[str] = mapped_column(String(16))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[str]
    created: Mapped[datetime.datetime] = mapped_column(default=tables.now)
    used: Mapped[datetime.datetime | None]
    revoked: Mapped[datetime.datetime | None]
    characters: Mapped[int] = mapped_column(tables.WIDE, default=0)
    user_id: Mapped[int | None]  # no foreign keys: a token of a deleted account or project is invalid
    project_id: Mapped[int | None]
    expires: Mapped[datetime.datetime | None]
    quota: Mapped[int | None] = mapped_column(tables.WIDE)
    month: Mapped[str] = mapped_column(String(7), default="", server_default="")
    month_characters: Mapped[int] = mapped_column(tables.WIDE, default=0, server_default="0")


@dataclass(frozen=True)
class TokenRow:
    """A token without its secret: `shown` is its beginning, `characters` the number of characters translated with it.

    It grants the access of the account `user_id`, or full access without one; with a `project_id`, only to that project.
    `quota` is the number of characters per calendar month (UTC), None if unlimited; `month_characters` are the characters in
    the `month` of its last use, such as 2026-11.
    """

    id: int
    name: str
    shown: str
    scopes: str  # joined by commas
    created: datetime.datetime
    used: datetime.datetime | None
    revoked: datetime.datetime | None
    characters: int
    user_id: int | None = None
    project_id: int | None = None
    expires: datetime.datetime | None = None
    quota: int | None = None
    month: str = ""
    month_characters: int = 0

    @property
    def this_month(self) -> int:
        """Characters translated in the current month."""
        return self.month_characters if self.month == current_month() else 0

    def allows(self, scope: str) -> bool:
        return scope in self.scopes.split(",")


class Tokens(Repository[ApiToken, TokenRow]):
    """Tokens: shown once on creation, looked up by their hash, revoked permanently."""

    table = ApiToken
    row = TokenRow
    noun = mark("token")

    def create(
        self,
        name: str,
        scopes: Iterable[str] = ("read", "translate"),
        *,
        user_id: int | None = None,
        project_id: int | None = None,
        days: int | None = None,
        quota: int | None = None,
    ) -> tuple[TokenRow, str]:
        """A new token and its secret, which is not stored; it expires after `days` and translates up to `quota` characters a month.

        Raises InputError for an empty name, a missing or unknown scope, a missing project, or `days` or `quota` out of range.
        """
        requested = [scope.strip() for scope in scopes]
        for scope in requested:
            if scope not in SCOPES:
                raise InputError(
                    "{scope} is not a token scope. Use one or more of {scopes}.", scope=scope or "Nothing", scopes=", ".join(SCOPES)
                )
        if not requested:
            raise InputError("A token needs a scope: one or more of {scopes}.", scopes=", ".join(SCOPES))
        if not name.strip():
            raise InputError("A token needs a name, so that you know later which one to revoke.")
        if project_id is not None:
            self._store.projects.get(project_id)
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise InputError("A token is valid for 1 to {most:,} days. Omit the number for no end.", most=MOST_DAYS)
        if quota is not None and not 1 <= quota <= MOST_QUOTA:
            raise InputError("A token's quota is 1 to {most} characters per month. Omit it for no limit.", most=MOST_QUOTA)
        secret = PREFIX + secrets.token_urlsafe(32)
        row = self._add(
            name=name.strip(),
            shown=secret[: len(PREFIX) + SHOWN],
            hash=digest(secret),
            scopes=",".join(scope for scope in SCOPES if scope in requested),
            user_id=user_id,
            project_id=project_id,
            expires=None if days is None else tables.now() + datetime.timedelta(days=days),
            quota=quota,
        )
        return row, secret

    def list(self, *, revoked: bool = False, user_id: int | None = None) -> builtins.list[TokenRow]:
        """Tokens of one account or of all, newest first; revoked ones only with `revoked`."""
        return self._list(None if revoked else ApiToken.revoked.is_(None), None if user_id is None else ApiToken.user_id == user_id)

    def find(self, secret: str) -> TokenRow | None:
        """The token of a secret; None if it is unknown, revoked or expired."""
        secret_hash = digest(secret)
        with self._store.read() as session:
            record = session.scalar(select(ApiToken).where(ApiToken.hash == secret_hash, ApiToken.revoked.is_(None)))
            if record is None or not hmac.compare_digest(record.hash, secret_hash):
                return None
            if record.expires is not None and record.expires <= tables.now():
                return None
            return self._out(record)

    def revoke(self, id: int) -> TokenRow:
        """Revoke a token. Raises InputError if there is none."""
        with self._store.write() as session:
            record = self._find(session, id)
            record.revoked = record.revoked or tables.now()
            session.flush()
            return self._out(record)

    def note(self, id: int, characters: int = 0) -> bool:
        """Record a use with this number of characters; a negative number refunds characters that were not translated.

        Returns False, without counting them, if they would exceed the token's quota of this month.
        """
        month = current_month()
        with self._store.write() as session:
            record = session.get(ApiToken, id)
            if record is None:
                return True
            spent = (record.month_characters if record.month == month else 0) + characters
            if characters > 0 and record.quota is not None and spent > record.quota:
                return False
            record.used, record.characters = tables.now(), record.characters + characters
            record.month, record.month_characters = month, max(0, spent)
        return True


def current_month() -> str:
    """The current month in UTC, such as 2026-11."""
    return f"{tables.now():%Y-%m}"


def digest(secret: str) -> str:
    """SHA-256 in hex. A secret of 256 random bits cannot be guessed, so a slow hash would add nothing."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
