"""The identity of a request's sender. The gateway determines it once; the store reads it in every session.

The gateway puts a `RequestIdentity` into the request's scope and into a context variable. Gradio's queue runs events in its own
tasks, in which that variable belongs to another request or is not set. There, only the request that sent the event counts.
"""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.types import Scope

from engine.core.actor import NOBODY, THIS_MACHINE, Actor, explicit_actor
from studio.auth.proxies import KEY as PROXIED

if TYPE_CHECKING:
    from engine.core.settings import Settings
    from engine.store.accounts import AccountRow

KEY = "tailormt.guest"  # in the scope of a request
# Headers that proxies add; a request with one of them does not come directly from a user of this machine.
FORWARDED = re.compile(r"forwarded|x-forwarded-.+|x-real-ip|x-original-.+|x-client-ip|via|true-client-ip|cf-connecting-ip")


@dataclass
class RequestIdentity:
    """The sender of a request. `access` is None until they are identified."""

    address: str = ""
    access: Actor | None = None
    account: AccountRow | None = None
    session: str = ""  # the secret of their session


_guest: ContextVar[RequestIdentity | None] = ContextVar("who a request comes from", default=None)


def welcome(scope: Scope, identity: RequestIdentity) -> None:
    """Set the sender of the current request."""
    scope[KEY] = identity
    _guest.set(identity)


def guest() -> RequestIdentity | None:
    """The sender of the request being handled; None outside a request."""
    context = sys.modules.get("gradio.context")
    event: Any = context.LocalContext.request.get(None) if context is not None else None
    if event is not None:
        scope = getattr(getattr(event, "request", None), "scope", None)
        return scope.get(KEY) if isinstance(scope, dict) else None
    return _guest.get()


def client_of(identity: RequestIdentity | None) -> str:
    """The key by which a request takes turns in shared work: its account, its token, or else its address."""
    if identity is None:
        return ""
    if identity.access is None or identity.access.who == THIS_MACHINE.who:
        return identity.address
    return identity.access.who if identity.access.user is None else f"account {identity.access.user}"


def access_of(settings: Settings) -> Callable[[], Actor]:
    """The function by which a studio's store finds the actor of each session. If users sign in, unknown ones have no access."""
    unknown = NOBODY if sign_in_needed(settings) else THIS_MACHINE

    def access() -> Actor:
        named = explicit_actor()
        if named is not None:
            return named
        result = guest()
        return unknown if result is None or result.access is None else result.access

    return access


def sign_in_needed(settings: Settings) -> bool:
    """Whether users have to sign in to this studio."""
    return settings.sign_in == "on" or (settings.sign_in == "auto" and not is_loopback(settings.host))


def tokens_needed(settings: Settings) -> bool:
    """Whether API requests need a token: always if users sign in, so that a program needs no less than a person."""
    if sign_in_needed(settings) or settings.api_tokens == "always":
        return True
    return settings.api_tokens == "auto" and not is_loopback(settings.host)


def is_loopback(host: str) -> bool:
    """Whether the host is a loopback name or address, which no other machine can reach."""
    host = host.strip().strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a request by lower-case name."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def address_of(scope: Scope) -> str:
    """The address that a request comes from; empty if unknown."""
    client = scope.get("client")
    return client[0] if client else ""


def from_here(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Whether a request comes from this machine, to a loopback name of this machine, and not through a proxy."""
    named = host_name(headers.get("host", ""))
    through = scope.get(PROXIED) or any(FORWARDED.fullmatch(name) for name in headers)
    return not through and is_loopback(named) and is_loopback(address_of(scope))


def host_name(host: str) -> str:
    """The name in a Host header without its port; empty if it cannot be parsed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
