"""Who answers an address: the REST interface or the studio's pages.

Both share one server, and one address means both: `/translate` is a page for people and LibreTranslate's command for
programs. A program posts, or asks with a text to translate (`/translate?q=…&target=zh`); a browser that opens the page does
neither. So POST, and GET with both `q` and `target`, go to the interface, everything else to the page. A redirect or another
address would break the clients, whose paths cannot be changed.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Receive, Scope, Send

OURS = re.compile(r"/api(?:/|$)|/v[23]/|/cat/")
LIBRE = ("/languages", "/detect", "/health", "/frontend/settings")


def is_api(method: str, path: str, query: str) -> bool:
    """Does this request belong to the REST interface?"""
    if OURS.match(path) or path in LIBRE:
        return True
    if path != "/translate":
        return False
    if method in ("GET", "HEAD"):
        given = parse_qs(query)
        return "q" in given and "target" in given
    return True


class Dispatcher:
    """Sends each request where it belongs. Plain ASGI, so that streams pass through untouched."""

    def __init__(self, app: ASGIApp, api: ASGIApp) -> None:
        self.app = app
        self.api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope.get("query_string", b"").decode("latin-1")
        if scope["type"] == "http" and is_api(scope["method"], scope["path"], query):
            await self.api(scope, receive, send)
        else:
            await self.app(scope, receive, send)
