"""Who may ask: tokens with scopes, needed as soon as others than this machine's own users can reach the studio.

A token comes as `Authorization: Bearer tmt_…`, as `Authorization: DeepL-Auth-Key tmt_…` from clients of DeepL, or as
`api_key` (LibreTranslate) or `auth_key` (DeepL's old way) in the address, form or JSON.

Without a token a request must come from this machine to a name of this machine, through no proxy and from no web page of
another site: else any page open in the user's browser could send requests to the studio that listens there.
"""

from __future__ import annotations

import ipaddress
import time
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import APIKeyHeader, HTTPBearer

from engine.store.tokens import PREFIX
from studio.api.errors import Problem, style_of

if TYPE_CHECKING:
    from engine.settings import Settings
    from engine.store import Store
    from engine.store.tokens import TokenRow

__all__ = ["Caller", "check", "is_loopback", "may", "secret_of", "tokens_needed"]

BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="`tailormt token create` makes one.")
DEEPL = APIKeyHeader(
    name="Authorization",
    auto_error=False,
    scheme_name="deepl",
    description="`DeepL-Auth-Key tmt_…`, for DeepL's clients.",
)
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
NOTED = 60.0  # seconds between two notes of a token's use
HOW = "Make one with `tailormt token create NAME`"


class Caller:
    """Who asks: `token` is None for a user of this machine without one."""

    def __init__(self, store: Store, token: TokenRow | None) -> None:
        self.store = store
        self.token = token

    def translated(self, characters: int) -> None:
        """Count what was translated for this caller."""
        if self.token is not None and characters:
            self.store.tokens.note(self.token.id, characters)


def is_loopback(host: str) -> bool:
    """Is it a name or an address of this machine that no other machine can reach?"""
    host = host.strip().strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def tokens_needed(settings: Settings) -> bool:
    """Does every request need a token?"""
    return settings.api_tokens == "always" or (settings.api_tokens == "auto" and not is_loopback(settings.host))


def secret_of(request: Request, given: str = "") -> str:
    """The secret that a request shows, in whichever place; empty where it shows none."""
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "deepl-auth-key") and rest.strip():
        return rest.strip()
    return given.strip()


def check(request: Request, scope: str, given: str = "") -> Caller:
    """Let the request in, or raise Problem 401 or 403. `given` is a key from its address, form or JSON."""
    service = request.app.state.desk.service
    settings, store = service.settings, service.store
    secret = secret_of(request, given)
    needed = tokens_needed(settings)
    # On this machine the clients of other services are let pass with any key: they insist on sending one.
    ours = style_of(request.url.path) == "api" and "authorization" in request.headers
    if ours or (secret and (needed or secret.startswith(PREFIX))):
        token = store.tokens.find(secret)
        if token is None:
            raise refused(request, f"This token is unknown or was revoked. {HOW}.")
        if not token.allows(scope):
            raise Problem(403, f"This token lacks the scope {scope}; it has {token.scopes}. {HOW} --scope {scope}.")
        note_use(request.app, store, token)
        return Caller(store, token)
    if needed:
        raise refused(
            request,
            f"A token is needed, since others can reach this studio. {HOW} and send it as Authorization: Bearer.",
        )
    if settings.api_tokens != "never":
        check_local(request)
    check_origin(request)
    return Caller(store, None)


def refused(request: Request, message: str) -> Problem:
    # DeepL answers 403 to a wrong key, and its clients tell it as that.
    status = 403 if style_of(request.url.path) == "deepl" else 401
    return Problem(status, message, code="token_needed", headers={"WWW-Authenticate": "Bearer"})


def check_local(request: Request) -> None:
    """Raises Problem 401 for what comes from or is meant for another machine."""
    client = request.client.host if request.client else ""
    named = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    through = any(name in request.headers for name in FORWARDED)
    if through or not is_loopback(named) or not is_loopback(client):
        raise refused(
            request, f"A token is needed, since this request came through another machine or name than this one. {HOW}."
        )


def check_origin(request: Request) -> None:
    """Raises Problem 403 for requests that a page of another site makes in somebody's browser."""
    origin = request.headers.get("origin", "")
    if origin and urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower():
        raise Problem(403, f"Requests from pages of another site ({origin[:80]}) need a token. {HOW}.")


def note_use(app: Any, store: Store, token: TokenRow) -> None:
    """Write down when a token was last used, at most once a minute."""
    known: dict[int, float] = app.state.desk.seen
    now = time.monotonic()
    if now - known.get(token.id, -NOTED) >= NOTED:
        known[token.id] = now
        store.tokens.note(token.id)


def may(scope: str) -> Any:
    """A dependency that lets in who has the scope; it gives the Caller."""

    def allowed(request: Request, _bearer: Annotated[Any, Depends(BEARER)]) -> Caller:
        return check(request, scope)

    return Depends(allowed)
