"""Permissions of the REST API: tokens with scopes, required if other machines can reach the studio.

A token is sent as `Authorization: Bearer tmt_…`, as `Authorization: DeepL-Auth-Key tmt_…` by clients of DeepL, or as `api_key`
(LibreTranslate) or `auth_key` (older DeepL clients) in the address, form or JSON.

A request without a token must come from this machine, to a name of this machine, not through a proxy and not from a page of
another site. Otherwise, any page open in the user's browser could send requests to the studio. If users sign in, a browser's
session is also accepted, with the permissions of its account.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.core.actor import THIS_MACHINE, Actor, act_as
from engine.core.numerals import whole_number
from engine.errors import InputError
from engine.store import Store
from engine.store.tokens import PREFIX, TokenRow
from studio.api.errors import Problem, shaped, style_of
from studio.auth.gateway import SAFE, from_own_site
from studio.auth.identity import KEY, RequestIdentity, address_of, from_here, headers_of, tokens_needed, welcome
from studio.auth.wellformed import refusal
from studio.services.service import Service

BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="`tailormt token create` makes one.")
DEEPL = APIKeyHeader(
    name="Authorization", auto_error=False, scheme_name="deepl", description="`DeepL-Auth-Key tmt_…`, for DeepL's clients."
)
NOTED = 60.0  # seconds between two records of a token's use
HOW = "Make one with `tailormt token create NAME`"


class Caller:
    """The caller of a request and the format of its errors; `token` is None for a local user or a browser session."""

    def __init__(self, store: Store, token: TokenRow | None, style: str = "api") -> None:
        self.store = store
        self.token = token
        self.style = style

    def spend(self, characters: int) -> None:
        """Count characters to be translated for this caller; a negative number is a refund. Raises Problem over the quota."""
        if self.token is None or not characters:
            return
        with act_as(THIS_MACHINE):
            counted = self.store.tokens.note(self.token.id, characters)
        if counted:
            return
        if self.style == "deepl":  # DeepL's status and message, which its clients expect
            raise Problem(456, "Quota for this billing period has been exceeded.", code="quota")
        raise Problem(429, f"This token may translate {self.token.quota:,} characters a month, and these are more.", code="quota")


class AuthMiddleware:
    """Identifies and checks requests if the API runs without the studio's gateway. Plain ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and KEY not in scope:
            welcome(scope, RequestIdentity(address_of(scope)))
            why = refusal(scope)
            if why is not None:
                await shaped(scope["path"], *why)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def secret_of(request: Request, key: str = "") -> str:
    """The token in a request's Authorization header, else `key`; empty if none."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "deepl-auth-key") and credentials.strip():
        return credentials.strip()
    return key.strip()


def check(request: Request, scope: str, key: str = "") -> Caller:
    """Admit the request and return its caller, or raise Problem 401, 403 or 404. `key` is the one from address, form or JSON."""
    service = request.app.state.deps.service
    settings, store = service.settings, service.store
    guest: RequestIdentity = request.scope[KEY]
    secret = secret_of(request, key)
    needed = tokens_needed(settings)
    # On this machine, clients of other services are admitted with any key, since they always send one.
    ours = style_of(request.url.path) == "api" and "authorization" in request.headers
    if ours or (secret and (needed or secret.startswith(PREFIX))):
        with act_as(THIS_MACHINE):
            token = store.tokens.find(secret)
            access = None if token is None else access_of_token(store, token, guest.address)
        if token is None or access is None:
            raise refused(request, f"This token is unknown, ran out or was revoked. {HOW}.")
        if not token.allows(scope):
            raise Problem(403, f"This token lacks the scope {scope}; it has {token.scopes}. {HOW} --scope {scope}.")
        guest.access = access
        with act_as(THIS_MACHINE):
            note_use(request.app, store, token)
    elif guest.account is not None:
        token = None
        if scope in ("admin", "metrics") and guest.account.role != "admin":
            raise Problem(403, "Only an admin can do that.")
    else:
        token = None
        if needed:
            raise refused(
                request, f"A token is needed, since others can reach this studio. {HOW} and send it as Authorization: Bearer."
            )
        if settings.api_tokens != "never":
            check_local(request)
        check_origin(request)
        guest.access = THIS_MACHINE.at(guest.address)
    check_project(request, service, change=scope == "write")
    return Caller(store, token, style_of(request.url.path))


def access_of_token(store: Store, token: TokenRow, address: str) -> Actor | None:
    """The actor of a token: its account, or full access without one; None if the account is missing or inactive."""
    label = f"token {token.id} ({token.name})"
    if token.user_id is None:
        return Actor(label, project=token.project_id, address=address)
    try:
        account = store.accounts.get(token.user_id)
    except InputError:
        return None
    if not account.active:
        return None
    return Actor(f"{account.name} by {label}", account.role, account.id, token.project_id, address)


def check_project(request: Request, service: Service, *, change: bool) -> None:
    """Raises Problem 404 for a project that the caller cannot see, 403 for a change by a caller who may only read.

    The store checks this too; here it is checked before the request's body is read.
    """
    access = service.store.access()
    if access.everything:
        return
    if change and not access.changes:
        raise Problem(403, "An account with the role viewer only looks. Ask an admin for the role member.")
    number = whole_number(request.path_params.get("number")) if "/projects/" in request.url.path else None
    if number is None:
        return
    role = service.role(number)
    if not role:
        raise Problem(404, f"There is no project {number}: it may have been deleted.")
    if change and role == "viewer":
        raise Problem(403, "You may look at this project, but not change it. Ask one of its owners for the role member.")


def refused(request: Request, message: str) -> Problem:
    # DeepL answers 403 to a wrong key, which its clients report as such.
    status = 403 if style_of(request.url.path) == "deepl" else 401
    return Problem(status, message, code="token_needed", headers={"WWW-Authenticate": "Bearer"})


def check_local(request: Request) -> None:
    """Raises Problem 401 for a request that comes from another machine, through a proxy, or to another host name."""
    if not from_here(request.scope, headers_of(request.scope)):
        raise refused(request, f"A token is needed, since this request came through another machine or name than this one. {HOW}.")


def check_origin(request: Request) -> None:
    """Raises Problem 403 for requests by a page of another site in a user's browser; following a link is allowed."""
    headers = headers_of(request.scope)
    if from_own_site(headers) or (request.method in SAFE and not headers.get("origin")):
        return
    origin = headers.get("origin", "")
    named = f" ({origin[:80]})" if origin else ""
    raise Problem(403, f"Requests from pages of another site{named} need a token. {HOW}.")


def note_use(app: Any, store: Store, token: TokenRow) -> None:
    """Record when a token was last used, at most once per minute."""
    last_used: dict[int, float] = app.state.deps.last_used
    now = time.monotonic()
    if now - last_used.get(token.id, -NOTED) >= NOTED:
        last_used[token.id] = now
        store.tokens.note(token.id)


def may(scope: str) -> Any:
    """A dependency that requires the scope and returns the Caller."""

    def allowed(request: Request, _bearer: Annotated[Any, Depends(BEARER)]) -> Caller:
        return check(request, scope)

    return Depends(allowed)
