"""User accounts, their sessions, and project members. Passwords are stored only as argon2id hashes."""

from __future__ import annotations

import builtins
import datetime
import secrets
from dataclasses import dataclass

from sqlalchemy import ForeignKey, String, delete, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from engine.core.actor import PROJECT_ROLES, ROLES
from engine.core.json_object import Json
from engine.errors import InputError
from engine.messages import mark
from engine.store import tables
from engine.store.account_names import look, mixes_scripts, normal
from engine.store.repositories import Repository, to_row
from engine.store.tokens import digest

LONGEST_NAME = 80
SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1024  # characters: hashing time grows with the length


class AppUser(tables.Base):
    __tablename__ = "app_user"
    __table_args__ = tables.FRESH_NUMBERS

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    folded: Mapped[str] = mapped_column(String(320), unique=True)  # the name in the form used for comparison
    password: Mapped[str]
    role: Mapped[str] = mapped_column(String(16))
    active: Mapped[bool] = mapped_column(default=True)
    created: Mapped[datetime.datetime] = mapped_column(default=tables.now)
    signed_in: Mapped[datetime.datetime | None]
    factor: Mapped[Json | None] = mapped_column(tables.JSON)  # of `engine.store.second_factor`

    @property
    def second_factor(self) -> bool:
        """Whether signing in requires a code."""
        return "secret" in (self.factor or {})


class SignIn(tables.Base):
    __tablename__ = "sign_in"

    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("app_user.id", ondelete="CASCADE"), index=True)
    address: Mapped[str] = mapped_column(default="")
    created: Mapped[datetime.datetime] = mapped_column(default=tables.now)
    expires: Mapped[datetime.datetime]


class ProjectMember(tables.Base):
    __tablename__ = "project_member"

    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("app_user.id", ondelete="CASCADE"), primary_key=True, index=True)
    role: Mapped[str] = mapped_column(String(16))


@dataclass(frozen=True)
class AccountRow:
    """An account without its password; if it is not `active`, it can no longer sign in."""

    id: int
    name: str
    role: str
    active: bool
    created: datetime.datetime
    signed_in: datetime.datetime | None
    second_factor: bool = False


@dataclass(frozen=True)
class MemberRow:
    """A member of a project."""

    project_id: int
    user_id: int
    name: str
    role: str


def check_password(password: str) -> None:
    """Raises InputError if the password is too short or too long."""
    if len(password) < SHORTEST_PASSWORD:
        raise InputError(
            "A password must have at least {shortest_password} characters. A few words make a good one.",
            shortest_password=SHORTEST_PASSWORD,
        )
    if len(password) > LONGEST_PASSWORD:
        raise InputError("A password must have at most {longest_password} characters.", longest_password=LONGEST_PASSWORD)


class Accounts(Repository[AppUser, AccountRow]):
    """Accounts, created by an admin; the last active admin can be neither removed nor demoted."""

    table = AppUser
    row = AccountRow
    noun = mark("account")

    def create(self, name: str, password: str, role: str = "member") -> AccountRow:
        """A new account. Raises InputError for an invalid or taken name, an invalid password or an unknown role."""
        from engine.store.passwords import hashed

        name = normal(name)
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise InputError("An account needs a name of up to {longest_name} characters.", longest_name=LONGEST_NAME)
        if mixes_scripts(name):
            raise InputError("A name must use letters of a single script, so that no account can be mistaken for another.")
        check_role(role, ROLES)
        check_password(password)
        with self._store.write() as session:
            for other in session.scalars(select(AppUser.name)):
                if look(other) == look(name):
                    raise InputError("There is already an account {name}. Choose another name.", name=other)
            record = AppUser(name=name, folded=fold(name), password=hashed(password), role=role)
            session.add(record)
            session.flush()
            return self._out(record)

    def list(self) -> builtins.list[AccountRow]:
        """All accounts, by name."""
        with self._store.read() as session:
            return [self._out(record) for record in session.scalars(select(AppUser).order_by(AppUser.folded))]

    def count(self) -> int:
        """The number of active accounts."""
        with self._store.read() as session:
            return session.scalar(select(func.count(AppUser.id)).where(AppUser.active)) or 0

    def named(self, name: str) -> AccountRow:
        """The account of this name, ignoring case. Raises InputError if there is none."""
        with self._store.read() as session:
            record = session.scalar(select(AppUser).where(AppUser.folded.in_(forms(name))))
            if record is None:
                raise InputError("There is no account {name}. `tailormt user list` shows them.", name=name)
            return self._out(record)

    def signed(self, name: str, password: str) -> AccountRow | None:
        """Verify a password and return its active account; None for a wrong name or password, in the same time."""
        from engine.store.passwords import hashed, matches, worn

        with self._store.read() as session:
            record = session.scalar(select(AppUser).where(AppUser.folded.in_(forms(name)), AppUser.active))
            selected = record.password if record is not None else ""
        if not matches(selected, password) or record is None:
            return None
        with self._store.write() as session:
            result = self._find(session, record.id)
            result.signed_in = tables.now()
            if worn(selected):  # hashed with outdated parameters
                result.password = hashed(password)
            session.flush()
            return self._out(result)

    def set_password(self, id: int, password: str, *, keep: str = "") -> None:
        """Change the password and end all sessions of the account except the one of the secret `keep`. Raises InputError."""
        from engine.store.passwords import hashed

        check_password(password)
        with self._store.write() as session:
            self._find(session, id).password = hashed(password)
            session.execute(delete(SignIn).where(SignIn.user_id == id, SignIn.hash != digest(keep)))

    def change(self, id: int, *, role: str | None = None, active: bool | None = None) -> AccountRow:
        """Change the role, or close or reopen the account. Raises InputError if no admin would be left."""
        if role is not None:
            check_role(role, ROLES)
        with self._store.write() as session:
            record = self._find(session, id)
            if record.role == "admin" and record.active and (active is False or role not in (None, "admin")):
                self._another_admin(session, id)
            record.role = record.role if role is None else role
            record.active = record.active if active is None else active
            if active is False:
                session.execute(delete(SignIn).where(SignIn.user_id == id))
            session.flush()
            return self._out(record)

    def delete(self, id: int) -> None:
        """Remove the account with its memberships and sessions; its tokens become invalid. Projects are kept."""
        with self._store.write() as session:
            record = self._find(session, id)
            if record.role == "admin" and record.active:
                self._another_admin(session, id)
            session.delete(record)

    def _another_admin(self, session: Session, id: int) -> None:
        other_admins = select(func.count(AppUser.id)).where(AppUser.role == "admin", AppUser.active, AppUser.id != id)
        if not session.scalar(other_admins):
            raise InputError("This is the last admin. Make another account an admin first.")


class SignIns(tables.StorePart):
    """Browser sessions. Only a hash of each secret is stored."""

    def open(self, user_id: int, seconds: float, address: str = "") -> str:
        """Open a session valid for `seconds` and return its secret. Expired sessions are removed."""
        secret, moment = secrets.token_urlsafe(32), tables.now()
        expires = moment + datetime.timedelta(seconds=seconds)
        with self._store.write() as session:
            session.execute(delete(SignIn).where(SignIn.expires < moment))
            session.add(SignIn(hash=digest(secret), user_id=user_id, address=address[:64], expires=expires))
        return secret

    def find(self, secret: str) -> AccountRow | None:
        """The account of a session; None if the session has expired or ended, or the account is closed."""
        query = (
            select(AppUser)
            .join(SignIn, SignIn.user_id == AppUser.id)
            .where(SignIn.hash == digest(secret), SignIn.expires > tables.now(), AppUser.active)
        )
        with self._store.read() as session:
            record = session.scalar(query)
            return None if record is None else to_row(AccountRow, record)

    def close(self, secret: str) -> None:
        """Sign out."""
        with self._store.write() as session:
            session.execute(delete(SignIn).where(SignIn.hash == digest(secret)))


class Members(tables.StorePart):
    """Project members. Projects are private to their members."""

    def list(self, project_id: int) -> builtins.list[MemberRow]:
        """The members of a project, sorted by name."""
        query = (
            select(ProjectMember.project_id, ProjectMember.user_id, AppUser.name, ProjectMember.role)
            .join(AppUser, AppUser.id == ProjectMember.user_id)
            .where(ProjectMember.project_id == project_id)
            .order_by(AppUser.folded)
        )
        with self._store.read() as session:
            return [MemberRow(*row) for row in session.execute(query)]

    def set(self, project_id: int, user_id: int, role: str) -> None:
        """Add a member or change the member's role. Raises InputError, Forbidden."""
        check_role(role, PROJECT_ROLES)
        with self._store.write() as session:
            session.merge(ProjectMember(project_id=project_id, user_id=user_id, role=role))

    def remove(self, project_id: int, user_id: int) -> None:
        """Remove a member."""
        with self._store.write() as session:
            record = session.get(ProjectMember, (project_id, user_id))
            if record is not None:
                session.delete(record)


def check_role(role: str, roles: tuple[str, ...]) -> None:
    if role not in roles:
        raise InputError("{role} is not a role. Use one of {known}.", role=role or "Nothing", known=", ".join(roles))


def fold(name: str) -> str:
    """A name in the form used for comparison: Unicode NFKC, case-folded, single spaces."""
    return normal(name).casefold()


def forms(name: str) -> tuple[str, str]:
    """The forms under which a name may be stored: the current one, and one without NFKC."""
    return fold(name)[:320], " ".join(name.split()).casefold()[:320]
