"""Dispatches requests to the REST API or to the studio's pages.

Both share one server, and one address belongs to both: `/translate` is a page of the studio and LibreTranslate's endpoint. A
program sends a POST, or a GET with a text to translate (`/translate?q=…&target=zh`); a browser that opens the page does neither.
GET with both `q` and `target`, and all other methods, therefore go to the API, any other GET to the page. A redirect or another
address would break clients, whose paths cannot be changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qs

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.api.errors import CODES, shaped

OURS = re.compile(r"/api(?:/|$)|/v[23]/|/cat/")
LIBRE = ("/languages", "/detect", "/health", "/frontend/settings")


def is_api(method: str, path: str, query: str) -> bool:
    """Whether a request belongs to the REST API."""
    if OURS.match(path) or path in LIBRE:
        return True
    if path != "/translate":
        return False
    if method in ("GET", "HEAD"):
        params = parse_qs(query)
        return "q" in params and "target" in params
    return True


class Dispatcher:
    """Sends each request to the API or to the pages. Plain ASGI, so that streams pass through unchanged."""

    def __init__(self, app: ASGIApp, api: ASGIApp) -> None:
        self.app = app
        self.api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope.get("query_string", b"").decode("latin-1")
        if scope["type"] == "http" and is_api(scope["method"], scope["path"], query):
            await self.api(scope, receive, send)
        else:
            await self.app(scope, receive, send)


class OwnMethods:
    """Answers 405 if one of these routes has the address but none accepts the method; Gradio's routes, which come later, would
    answer that nothing is there. Plain ASGI.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self.app = app
        self.routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = self.app
        if scope["type"] == "http" and scope["method"] != "GET":
            matches = [(route.matches(scope)[0], route.methods or ()) for route in self.routes if isinstance(route, APIRoute)]
            methods = {method for match, allowed in matches if match is Match.PARTIAL for method in allowed}
            if methods and not any(match is Match.FULL for match, _ in matches):
                path, allow = scope["path"], ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))
                app = shaped(path, 405, CODES[405], f"{path} does not take {scope['method']}.", {"Allow": allow})
        await app(scope, receive, send)
