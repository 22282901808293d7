"""Who a request comes from. The gate finds it out once; the store asks it at every session.

The gate puts a `Guest` into the request's scope and into a context variable. Gradio's queue runs events in tasks of its own,
which know that variable of another request or of none; there the request that brought the event counts, and nothing else.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from engine.access import NOBODY, THIS_MACHINE, Access, chosen

if TYPE_CHECKING:
    from starlette.types import Scope

    from engine.settings import Settings
    from engine.store.accounts import AccountRow

__all__ = [
    "FORWARDED", "KEY", "Guest", "access_of", "from_here", "guest", "headers_of", "is_loopback", "sign_in_needed", "welcome"
]  # fmt: skip

KEY = "tailormt.guest"  # in the scope of a request
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@dataclass
class Guest:
    """Somebody at the door. `access` is None until it is known who they are."""

    address: str = ""
    access: Access | None = None
    account: AccountRow | None = None
    session: str = ""  # the secret of their session


_guest: ContextVar[Guest | None] = ContextVar("who a request comes from", default=None)


def welcome(scope: Scope, found: Guest) -> None:
    """From here on the request is theirs."""
    scope[KEY] = found
    _guest.set(found)


def guest() -> Guest | None:
    """Whose request is being answered; None where none is."""
    context = sys.modules.get("gradio.context")
    event: Any = context.LocalContext.request.get(None) if context is not None else None
    if event is not None:
        scope = getattr(getattr(event, "request", None), "scope", None)
        return scope.get(KEY) if isinstance(scope, dict) else None
    return _guest.get()


def access_of(settings: Settings) -> Callable[[], Access]:
    """What the store of a studio asks at every session. Where people sign in, whoever is not known sees nothing."""
    unknown = NOBODY if sign_in_needed(settings) else THIS_MACHINE

    def access() -> Access:
        named = chosen()
        if named is not None:
            return named
        found = guest()
        return unknown if found is None or found.access is None else found.access

    return access


def sign_in_needed(settings: Settings) -> bool:
    """Do people sign in to this studio?"""
    return settings.sign_in == "on" or (settings.sign_in == "auto" and not is_loopback(settings.host))


def is_loopback(host: str) -> bool:
    """Is it a name or an address of this machine that no other machine can reach?"""
    host = host.strip().strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a request by their lower-case names."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def from_here(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Does it come from this machine to a name of this machine, through no proxy?"""
    client = scope.get("client")
    named = host_name(headers.get("host", ""))
    through = any(name in headers for name in FORWARDED)
    return not through and is_loopback(named) and is_loopback(client[0] if client else "")


def host_name(host: str) -> str:
    """The name in a Host header, without its port; empty for one that cannot be read."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
