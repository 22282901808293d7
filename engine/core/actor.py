"""The user on whose behalf something is done, and what they may see and change.

Every row of a project, and every file in its folder, is reached through the store or through the project's number, so the
check stands there (`engine.store.row_access`), not in each page or command. A command, a worker and the studio of one person on
their own machine act as `THIS_MACHINE`, which may do everything.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace

from engine.errors import TailorError

ROLES = ("viewer", "member", "admin")  # of an account
PROJECT_ROLES = ("viewer", "member", "owner")  # of somebody in a project


class Forbidden(TailorError):  # noqa: N818 - a refusal, not a fault
    """Whoever asks may not do that."""


@dataclass(frozen=True)
class Actor:
    """What somebody may do. `who` is what the audit log calls them; `user` their account, None for none."""

    who: str
    role: str = "admin"
    user: int | None = None
    project: int | None = None  # the only project that a token opens
    address: str = ""

    @property
    def everything(self) -> bool:
        """Nothing needs to be looked up: every row may be seen and changed."""
        return self.role == "admin" and self.project is None

    @property
    def changes(self) -> bool:
        """May anything be changed at all?"""
        return self.role in ("member", "admin")

    def at(self, address: str) -> Actor:
        return replace(self, address=address)


THIS_MACHINE = Actor("this machine")
NOBODY = Actor("nobody", role="none")

_acting: ContextVar[Actor | None] = ContextVar("who is at work", default=None)


def explicit_actor() -> Actor | None:
    """Whom `act_as` named here; None where it named nobody."""
    return _acting.get()


def current_actor() -> Actor:
    """Who is at work here; `THIS_MACHINE` unless somebody else was named."""
    return _acting.get() or THIS_MACHINE


@contextlib.contextmanager
def act_as(access: Actor) -> Iterator[None]:
    """Everything inside is done by them."""
    token = _acting.set(access)
    try:
        yield
    finally:
        _acting.reset(token)
