"""The gateway, which every request passes before it reaches the studio. Plain ASGI, so that streams pass through unchanged.

It checks that the request is well-formed, the requested host, the size, the session, that no page of another site sent it, the
rate, and whether signing in is needed. Tokens are checked in `studio.api.permissions`, rows in `engine.store.row_access`.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.core.actor import THIS_MACHINE, Actor, act_as
from engine.core.numerals import whole_number
from engine.errors import TailorError
from studio.auth.gradio_endpoints import ROOT, Events, closed
from studio.auth.identity import RequestIdentity, address_of, from_here, headers_of, host_name, is_loopback, sign_in_needed, welcome
from studio.auth.rate_limit import RateLimit
from studio.auth.wellformed import FORMS, Refusal, body_refusal, is_json, kind_of, refusal

if TYPE_CHECKING:
    from engine.core.settings import Settings
    from engine.store import Store
    from engine.store.accounts import AccountRow

COOKIE = "tailormt_session"
SAFE = ("GET", "HEAD", "OPTIONS")
OWN_SITE = ("same-origin", "none")  # of Sec-Fetch-Site
# Open to everyone: the sign-in pages, health routes and metrics, and pages opened by a secret link.
PUBLIC = re.compile(r"/(?:sign-in|first-account|healthz|readyz|metrics|favicon\.ico|robots\.txt|rating/.+)")
RATING = re.compile(r"/rating/.+")
LARGEST_BODY = 32 << 20  # bytes of a request without files
LARGEST_FORM = 64 << 10  # bytes of a page's form, which anybody may send; decoding it delays other requests
NO_HOST = (
    "This studio is meant for this machine alone and was asked for as {host}. Start it with sign_in = on, or with "
    "--no-sign-in where something before it asks for a password."
)


def cookie_name(scheme: str) -> str:
    """The name of the session cookie; over https, its prefix makes the browser restrict the cookie to this host."""
    return f"__Host-{COOKIE}" if scheme == "https" else COOKIE


def session_of(scope: Scope, headers: dict[str, str]) -> str:
    """The session secret in the request's cookie; empty if none."""
    try:
        result = SimpleCookie(headers.get("cookie", "")).get(cookie_name(scope.get("scheme", "http")))
    except CookieError:
        return ""
    return result.value if result else ""


class Gateway:
    """Admits or refuses each request and identifies its sender; one instance per application."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        store: Store,
        uploads: Path,
        is_api: Callable[[str, str, str], bool],
        error_response: Callable[..., Response],
    ) -> None:
        """`is_api(method, path, query)` returns whether a request is for the REST API;
        `error_response(path, status, code, message, headers)` formats the API's errors.
        """
        self.app, self.store, self.is_api, self.error_response = app, store, is_api, error_response
        self.needed = sign_in_needed(settings)
        self.here_only = not self.needed and settings.sign_in != "off" and is_loopback(settings.host)
        self.events = Events(uploads)
        self.rates = RateLimit(settings.api_rate, 60.0) if settings.api_rate else None
        self.largest = settings.max_request_mib << 20

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # the studio has no web sockets
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = headers_of(scope)
        result = RequestIdentity(address_of(scope))
        answer = self._unclear(scope, refusal(scope)) or await self._refused(scope, headers, result)
        if answer is not None:
            await answer(scope, receive, send)
            return
        await self._pass(scope, receive, send, headers, result)

    # -- identification and permission

    async def _refused(self, scope: Scope, headers: dict[str, str], identity: RequestIdentity) -> Response | None:
        """The response to a refused request; None if it is admitted, with its sender filled in in `identity`."""
        path, method = scope["path"], scope["method"]
        api = self.is_api(method, path, scope.get("query_string", b"").decode("latin-1"))
        if closed(path):
            return PlainTextResponse("There is nothing here.", 404)
        named = host_name(headers.get("host", ""))
        if self.here_only and not api and not PUBLIC.fullmatch(path) and not is_loopback(named):
            return PlainTextResponse(NO_HOST.format(host=named[:80] or "?"), 403)
        limit, length = _limit(headers, api, self.largest), headers.get("content-length", "")
        if length and whole_number(length, high=limit) is None:
            return self._answer(path, api, 413, "too_large", _too_large(limit), True)
        secret = session_of(scope, headers) if self.needed else ""
        if secret:
            identity.account = await run_in_threadpool(self._account, secret)
            identity.session = secret if identity.account else ""
        if identity.account is not None:
            identity.access = Actor(identity.account.name, identity.account.role, identity.account.id, address=identity.address)
        elif not self.needed:
            identity.access = None if api else THIS_MACHINE.at(identity.address)  # the REST API decides for itself
        if RATING.fullmatch(path):  # the link grants access; its handlers only read the rater's round
            identity.access = Actor("rater", address=identity.address)
        elif method not in SAFE and not self._same_site(headers, identity, api):
            return self._answer(path, api, 403, "forbidden", "This request came from a page of another site.")
        if api:
            return self._too_often(scope, headers, identity)
        if self.needed and identity.account is None and not PUBLIC.fullmatch(path):
            return self._ask(scope, headers)
        return None

    def _answer(self, path: str, api: bool, status: int, code: str, message: str, close: bool = False) -> Response:
        headers = {"Connection": "close"} if close else None
        if api:
            return self.error_response(path, status, code, message, headers)
        return PlainTextResponse(message, status, headers)

    def _unclear(self, scope: Scope, why: Refusal | None) -> Response | None:
        """The response to an ambiguous request; None without a reason `why`."""
        if why is None:
            return None
        query = scope.get("query_string", b"").decode("latin-1")
        return self._answer(scope["path"], self.is_api(scope["method"], scope["path"], query), *why)

    def _account(self, secret: str) -> AccountRow | None:
        with act_as(THIS_MACHINE):
            return self.store.sign_ins.find(secret)

    def _ask(self, scope: Scope, headers: dict[str, str]) -> Response:
        """Redirect page requests to the sign-in page; refuse all others."""
        path = scope["path"]
        if scope["method"] in SAFE and "text/html" in headers.get("accept", "") and not path.startswith(ROOT):
            query = scope.get("query_string", b"").decode("latin-1")
            params = {"next": path + (f"?{query}" if query else "")} if path != "/" or query else {}
            if language := parse_qs(query).get("lang"):
                params["lang"] = language[0]
            return RedirectResponse(f"/sign-in{'?' if params else ''}{urlencode(params, quote_via=quote)}", 303)
        return PlainTextResponse("Sign in first.", 403)

    def _same_site(self, headers: dict[str, str], identity: RequestIdentity, api: bool) -> bool:
        """Whether a request comes from this site, according to the headers that browsers send. With a session, they are required.
        Without one, the REST API is let through: pages of another site may use a token, and the API checks the others itself.
        """
        if identity.account is None:
            return api or from_own_site(headers)
        origin = headers.get("origin", "") or headers.get("sec-fetch-site", "")
        return bool(origin) and from_own_site(headers)

    def _too_often(self, scope: Scope, headers: dict[str, str], identity: RequestIdentity) -> Response | None:
        if self.rates is None or (not self.needed and "authorization" not in headers and from_here(scope, headers)):
            return None
        credentials = headers.get("authorization", "")
        keys = [f"address {identity.address}"]
        if credentials:
            keys.append(hashlib.sha256(credentials.encode()).hexdigest())
        wait = max(self.rates.take(key) for key in keys)
        if not wait:
            return None
        message = f"Too many requests: at most {int(self.rates.count)} a minute. Try again in {wait:.0f} s."
        return self.error_response(scope["path"], 429, "busy", message, {"Retry-After": str(int(wait) + 1)})

    # -- admitted requests

    async def _pass(self, scope: Scope, receive: Receive, send: Send, headers: dict[str, str], identity: RequestIdentity) -> None:
        path, method = scope["path"], scope["method"]
        # A long-lived task that Gradio starts here must not keep this identity (see `studio.auth.identity`).
        welcome(scope, identity)
        if path.startswith(f"{ROOT}/"):
            welcome({}, RequestIdentity(identity.address))
        unclear, receive = await self._look_at_body(scope, receive, headers, identity)
        if unclear is not None:
            await unclear(scope, receive, send)
            return
        uploading = path == f"{ROOT}/upload"
        multipart = kind_of(headers) == FORMS[1]
        selected = bytearray()
        status, exported = 0, False

        async def answer(message: Message) -> None:
            nonlocal status, exported
            if message["type"] == "http.response.start":
                status = message["status"]
                exported = Headers(raw=message["headers"]).get("content-disposition", "").startswith("attachment")
            elif uploading and len(selected) < LARGEST_BODY:
                selected.extend(message.get("body", b""))
            await send(message)

        await self.app(scope, receive, answer)
        if status not in (200, 201, 202, 206) or identity.access is None:
            return
        if uploading and identity.account is not None:
            self.events.brought(identity.account.id, bytes(selected))
        if method == "POST" and multipart:
            size = whole_number(headers.get("content-length", ""), high=self.largest)
            await self._note(identity.access, "upload", path, path if size is None else f"{path} {size:,} bytes")
        elif exported and method == "GET" and status != 206:
            await self._note(identity.access, "export", path, path)

    async def _look_at_body(
        self, scope: Scope, receive: Receive, headers: dict[str, str], identity: RequestIdentity
    ) -> tuple[Response | None, Receive]:
        """The response if the body is refused, else None; and a receive for the body, bounded in size. Files are not checked,
        and the REST API checks its own bodies.
        """
        path, method, query = scope["path"], scope["method"], scope.get("query_string", b"").decode("latin-1")
        api, gradio = self.is_api(method, path, query), path.startswith(f"{ROOT}/")
        limit = _limit(headers, api, self.largest)
        receive, body, nothing = _bounded(receive, limit), b"", PlainTextResponse("There is nothing here.", 404)
        if not api and method not in SAFE and path != f"{ROOT}/upload":
            if gradio and not is_json(headers):  # its handlers would read values other than those checked here
                return nothing, receive
            if kind_of(headers) != FORMS[1]:
                read, receive = await read_body(receive)
                too_large = (413, "too_large", _too_large(limit))
                why = too_large if read is None else await run_in_threadpool(body_refusal, headers, read)
                if why is not None:
                    return self._unclear(scope, why), receive
                body = read or b""
        guest = identity.account if gradio and self.needed else None
        if guest is not None and not self.events.may(guest.id, method, path, query, body):
            return nothing, receive
        return None, receive

    async def _note(self, access: Actor, action: str, path: str, detail: str) -> None:
        project = re.search(r"/projects/(\d{1,9})(?:/|$)", path)
        target = re.search(r"/(\d{1,9})(?:\.\w+|/download|/export)?$", path)
        number, which = int(project[1]) if project else None, target[1] if target else ""

        def write() -> None:
            with act_as(access):
                self.store.audit.note(access, action, project_id=number, target=which, detail=detail)

        with contextlib.suppress(TailorError):  # the response is sent; a full disk is reported at the next write
            await run_in_threadpool(write)


def from_own_site(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from a page of this site or from no page, according to Origin or else Sec-Fetch-Site."""
    if origin := headers.get("origin", ""):
        return _netloc(origin) == headers.get("host", "").lower()
    return headers.get("sec-fetch-site", "") in ("", *OWN_SITE)


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _limit(headers: dict[str, str], api: bool, largest: int) -> int:
    """The maximum body size in bytes; `largest` for a request with files."""
    kind = kind_of(headers)
    if kind == FORMS[1]:
        return largest
    return min(largest, LARGEST_FORM if kind == FORMS[0] and not api else LARGEST_BODY)


def _too_large(limit: int) -> str:
    return f"The request is larger than {f'{limit >> 20} MiB' if limit >> 20 else f'{limit >> 10} KiB'}."


def _bounded(receive: Receive, limit: int) -> Receive:
    """A receive that ends in a disconnect when the body exceeds `limit` bytes, whatever length was declared."""
    received = 0

    async def counted() -> Message:
        nonlocal received
        part = await receive()
        received += len(part.get("body", b""))
        return {"type": "http.disconnect"} if received > limit else part

    return counted


async def read_body(receive: Receive) -> tuple[bytes | None, Receive]:
    """Read the whole (bounded) body; returns it, or None if it broke off, and a receive that reads it again."""
    body, more = b"", True
    while more:
        part = await receive()
        if part["type"] != "http.request":
            return None, receive
        body += part.get("body", b"")
        more = part.get("more_body", False)
    replayed = False

    async def again() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return body, again
