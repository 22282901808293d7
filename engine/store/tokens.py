"""API tokens, with which programs sign in. Only a hash is kept, so a copy of the store grants no access."""

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
SHOWN = 8  # characters of a token that are kept in clear, to tell tokens apart in a list


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
    user_id: Mapped[int | None]  # no foreign keys: a token whose account or project is gone opens nothing
    project_id: Mapped[int | None]
    expires: Mapped[datetime.datetime | None]
    quota: Mapped[int | None] = mapped_column(tables.WIDE)
    month: Mapped[str] = mapped_column(String(7), default="", server_default="")
    month_characters: Mapped[int] = mapped_column(tables.WIDE, default=0, server_default="0")


@dataclass(frozen=True)
class TokenRow:
    """A token without its secret: `shown` is how it begins, `characters` how many it has had translated.

    It opens what the account `user_id` may open, or without one everything; with a `project_id` that project alone. `quota` is
    how many characters it may have translated in a calendar month (UTC), None for any number; `month_characters` are those of
    the `month` of its last use, as 2026-11.
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
    """Tokens: made once, shown once, looked up by their hash, revoked for good."""

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
        """A new token and its secret, which is nowhere else; it opens nothing after `days`,
        and translates at most `quota` characters a month.

        Raises InputError on an empty name, an unknown scope, or a project that is not there.
        """
        wanted = [scope.strip() for scope in scopes]
        for scope in wanted:
            if scope not in SCOPES:
                raise InputError(
                    "{scope} is not a token scope. Use one or more of {scopes}.",
                    scope=scope or "Nothing",
                    scopes=", ".join(SCOPES),
                )
        if not wanted:
            raise InputError("A token needs a scope: one or more of {scopes}.", scopes=", ".join(SCOPES))
        if not name.strip():
            raise InputError("A token needs a name, so that you know later which one to revoke.")
        if project_id is not None:
            self._store.projects.get(project_id)
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise InputError("A token is valid for 1 to {most:,} days. Omit the number for no end.", most=MOST_DAYS)
        if quota is not None and not 1 <= quota <= MOST_QUOTA:
            raise InputError(
                "A token's quota is 1 to {most} characters per month. Omit it for no limit.", most=MOST_QUOTA
            )
        secret = PREFIX + secrets.token_urlsafe(32)
        row = self._add(
            name=name.strip(),
            shown=secret[: len(PREFIX) + SHOWN],
            hash=digest(secret),
            scopes=",".join(scope for scope in SCOPES if scope in wanted),
            user_id=user_id,
            project_id=project_id,
            expires=None if days is None else tables.now() + datetime.timedelta(days=days),
            quota=quota,
        )
        return row, secret

    def list(self, *, revoked: bool = False, user_id: int | None = None) -> builtins.list[TokenRow]:
        """Tokens that were not revoked, of one account or of all, newest first; with `revoked` the others as well."""
        return self._list(
            None if revoked else ApiToken.revoked.is_(None), None if user_id is None else ApiToken.user_id == user_id
        )

    def find(self, secret: str) -> TokenRow | None:
        """The token of a secret; None where it is unknown, was revoked or ran out."""
        wanted = digest(secret)
        with self._store.read() as session:
            record = session.scalar(select(ApiToken).where(ApiToken.hash == wanted, ApiToken.revoked.is_(None)))
            if record is None or not hmac.compare_digest(record.hash, wanted):
                return None
            if record.expires is not None and record.expires <= tables.now():
                return None
            return self._out(record)

    def revoke(self, id: int) -> TokenRow:
        """Let a token open nothing from now on. Raises InputError where there is none."""
        with self._store.write() as session:
            record = self._find(session, id)
            record.revoked = record.revoked or tables.now()
            session.flush()
            return self._out(record)

    def note(self, id: int, characters: int = 0) -> bool:
        """It was used now, for so many characters; fewer than 0 give back what was counted and not translated.

        False, and nothing is counted, where they would pass the token's quota of this month.
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
    """As 2026-11, in UTC."""
    return f"{tables.now():%Y-%m}"


def digest(secret: str) -> str:
    """SHA-256 in hex. A secret of 256 random bits cannot be guessed, so a slow hash would add nothing."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
