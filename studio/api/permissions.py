"""Who may ask: tokens with scopes, needed as soon as others than this machine's own users can reach the studio.

A token comes as `Authorization: Bearer tmt_…`, as `Authorization: DeepL-Auth-Key tmt_…` from clients of DeepL, or as
`api_key` (LibreTranslate) or `auth_key` (DeepL's old way) in the address, form or JSON.

Without a token a request must come from this machine to a name of this machine, through no proxy and from no web page of
another site: else any page open in the user's browser could send requests to the studio that listens there. Where people sign
in, the session of a browser does as well, for what its account may do.
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
    name="Authorization",
    auto_error=False,
    scheme_name="deepl",
    description="`DeepL-Auth-Key tmt_…`, for DeepL's clients.",
)
NOTED = 60.0  # seconds between two notes of a token's use
HOW = "Make one with `tailormt token create NAME`"


class Caller:
    """Who asks, in which style of errors: `token` is None for a user of this machine without one."""

    def __init__(self, store: Store, token: TokenRow | None, style: str = "api") -> None:
        self.store = store
        self.token = token
        self.style = style

    def spend(self, characters: int) -> None:
        """Count what is to be translated for this caller; fewer than 0 give it back. Raises Problem over the token's quota."""
        if self.token is None or not characters:
            return
        with act_as(THIS_MACHINE):
            counted = self.store.tokens.note(self.token.id, characters)
        if counted:
            return
        if self.style == "deepl":  # its own status and sentence, which its clients know
            raise Problem(456, "Quota for this billing period has been exceeded.", code="quota")
        raise Problem(
            429, f"This token may translate {self.token.quota:,} characters a month, and these are more.", code="quota"
        )


class AuthMiddleware:
    """Every request of the interface has a guest, also where it stands alone, without the studio's gate. Plain ASGI."""

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


def secret_of(request: Request, given: str = "") -> str:
    """The secret that a request shows, in whichever place; empty where it shows none."""
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "deepl-auth-key") and rest.strip():
        return rest.strip()
    return given.strip()


def check(request: Request, scope: str, given: str = "") -> Caller:
    """Let the request in, or raise Problem 401 or 403. `given` is a key from its address, form or JSON."""
    service = request.app.state.deps.service
    settings, store = service.settings, service.store
    guest: RequestIdentity = request.scope[KEY]
    secret = secret_of(request, given)
    needed = tokens_needed(settings)
    # On this machine the clients of other services are let pass with any key: they insist on sending one.
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
                request,
                f"A token is needed, since others can reach this studio. {HOW} and send it as Authorization: Bearer.",
            )
        if settings.api_tokens != "never":
            check_local(request)
        check_origin(request)
        guest.access = THIS_MACHINE.at(guest.address)
    check_project(request, service, change=scope == "write")
    return Caller(store, token, style_of(request.url.path))


def access_of_token(store: Store, token: TokenRow, address: str) -> Actor | None:
    """What a token opens: what its account may; everything for one that was made on the machine for nobody."""
    who = f"token {token.id} ({token.name})"
    if token.user_id is None:
        return Actor(who, project=token.project_id, address=address)
    try:
        account = store.accounts.get(token.user_id)
    except InputError:
        return None
    if not account.active:
        return None
    return Actor(f"{account.name} by {who}", account.role, account.id, token.project_id, address)


def check_project(request: Request, service: Service, *, change: bool) -> None:
    """Raises Problem 404 for a project that they do not see, 403 for a change of anything by somebody who may only look.

    It is looked at here as well as in the store, before what the request brings is read.
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
        raise Problem(
            403, "You may look at this project, but not change it. Ask one of its owners for the role member."
        )


def refused(request: Request, message: str) -> Problem:
    # DeepL answers 403 to a wrong key, and its clients tell it as that.
    status = 403 if style_of(request.url.path) == "deepl" else 401
    return Problem(status, message, code="token_needed", headers={"WWW-Authenticate": "Bearer"})


def check_local(request: Request) -> None:
    """Raises Problem 401 for what comes from or is meant for another machine."""
    if not from_here(request.scope, headers_of(request.scope)):
        raise refused(
            request, f"A token is needed, since this request came through another machine or name than this one. {HOW}."
        )


def check_origin(request: Request) -> None:
    """Raises Problem 403 for requests that a page of another site makes in somebody's browser; a link that leads here is none."""
    headers = headers_of(request.scope)
    if from_own_site(headers) or (request.method in SAFE and not headers.get("origin")):
        return
    origin = headers.get("origin", "")
    named = f" ({origin[:80]})" if origin else ""
    raise Problem(403, f"Requests from pages of another site{named} need a token. {HOW}.")


def note_use(app: Any, store: Store, token: TokenRow) -> None:
    """Write down when a token was last used, at most once a minute."""
    known: dict[int, float] = app.state.deps.seen
    now = time.monotonic()
    if now - known.get(token.id, -NOTED) >= NOTED:
        known[token.id] = now
        store.tokens.note(token.id)


def may(scope: str) -> Any:
    """A dependency that lets in who has the scope; it gives the Caller."""

    def allowed(request: Request, _bearer: Annotated[Any, Depends(BEARER)]) -> Caller:
        return check(request, scope)

    return Depends(allowed)
