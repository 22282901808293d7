"""Answers HEAD like GET, without the body, for monitors, browsers and libraries that check whether an address exists."""

from __future__ import annotations

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadRequests:
    """Answers HEAD for every route that answers GET. Plain ASGI; the OpenAPI document lists only GET."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        stream, ended = False, False

        async def answer(message: Message) -> None:
            nonlocal stream, ended
            if message["type"] == "http.response.start":
                stream = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
            if message["type"] != "http.response.body":
                await send(message)
            elif not ended:
                ended = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                if stream:  # an event stream would continue indefinitely
                    inside.cancel()

        with anyio.CancelScope() as inside:
            await self.app({**scope, "method": "GET"}, receive, answer)
