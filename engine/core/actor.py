"""The user on whose behalf an action is performed, and what that user may see and change.

Every row of a project, and every file in its folder, is reached through the store or through the project's number. The check is
therefore there (`engine.store.row_access`), not in each page or command. A command, a worker and the studio of a single user on
their own machine act as `THIS_MACHINE`, which has all permissions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace

from engine.errors import TailorError

ROLES = ("viewer", "member", "admin")  # of an account
PROJECT_ROLES = ("viewer", "member", "owner")  # of a user in a project


class Forbidden(TailorError):  # noqa: N818 - a refusal, not a fault
    """The user lacks permission for an action."""


@dataclass(frozen=True)
class Actor:
    """A user's permissions. `who` is the name in the audit log, `user` the account or None."""

    who: str
    role: str = "admin"
    user: int | None = None
    project: int | None = None  # the only project that a token gives access to
    address: str = ""

    @property
    def everything(self) -> bool:
        """Whether every row may be seen and changed without looking up permissions."""
        return self.role == "admin" and self.project is None

    @property
    def changes(self) -> bool:
        """Whether the user may change anything at all."""
        return self.role in ("member", "admin")

    def at(self, address: str) -> Actor:
        return replace(self, address=address)


THIS_MACHINE = Actor("this machine")
NOBODY = Actor("nobody", role="none")

_acting: ContextVar[Actor | None] = ContextVar("who is at work", default=None)


def explicit_actor() -> Actor | None:
    """The actor set by `act_as` in this context, or None."""
    return _acting.get()


def current_actor() -> Actor:
    """The current actor; `THIS_MACHINE` unless `act_as` set another one."""
    return _acting.get() or THIS_MACHINE


@contextlib.contextmanager
def act_as(access: Actor) -> Iterator[None]:
    """Perform everything within the block as this actor."""
    token = _acting.set(access)
    try:
        yield
    finally:
        _acting.reset(token)
