"""Lighter server-side sessions, uploads and event streams for Gradio.

When a session starts, Gradio generates the configuration of every component of every page, and again on each event that changes
one, so that a session can be shared as a "deep link". The studio has none (its addresses describe the page), so this work, which
delays all first answers and holds memory as long as the server runs, is skipped.

Gradio never deletes the partial file of an aborted upload (browser closed, or upload too large). Here it is deleted with the
request.

In Gradio, the event streams of a page whose browser has left end with an error in the log. Here they end silently.
"""

from __future__ import annotations

import os
import sys
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradio import route_utils
from gradio.state_holder import SessionState, StateHolder
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.datastructures import FormData

# Sessions kept. Evicting the least recently used one loses nothing, as pages keep no state on the server.
SESSIONS = 1000


class Session(SessionState):
    """A session without component configurations."""

    def __init__(self, blocks: Any) -> None:
        self.blocks_config = copy(blocks.default_config)
        self.blocks_config.config_for_block = lambda *_: {}  # type: ignore[method-assign]
        self.config_values: dict[int, Any] = {}
        self.state_data: dict[int, Any] = {}
        self._state_ttl: dict[int, Any] = {}
        self.is_closed = False
        self.STATE_TTL_WHEN_CLOSED = 3600  # seconds, as Gradio has it


class Sessions(StateHolder):
    """The sessions of one server, each created as a `Session`."""

    def __getitem__(self, session_id: str) -> SessionState:
        if session_id not in self.session_data:
            self.session_data[session_id] = Session(self.blocks)
        return super().__getitem__(session_id)


class Upload(route_utils.GradioMultiPartParser):
    """An upload parser that deletes its files if the upload is not completed."""

    async def parse(self) -> FormData:
        try:
            return await super().parse()
        except BaseException:  # Gradio cleans up only after its own errors, not after a disconnect
            for file in self._files_to_close_on_error:
                file.close()
                Path(file.name).unlink(missing_ok=True)
            raise


class EndedStreams:
    """ASGI middleware that ends event streams of closed sessions without an error."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.app(scope, receive, send)
        except RuntimeError as error:  # Starlette's: Gradio raises after the answer has begun
            gone = isinstance(error.__cause__, HTTPException) and error.__cause__.status_code == 404
            if not gone or not str(scope.get("path", "")).endswith("/queue/data"):
                raise
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def keep_no_statistics() -> None:
    """Disable the event statistics of Gradio queues created from now on.

    By default, Gradio summarises the last 10,000 events after every event, which makes events slower and slower, for a page that
    the studio does not have.
    """
    os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "1")
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(sys.maxsize))  # events between two summaries


def keep_sessions_small(app: FastAPI) -> None:
    """Install the sessions and uploads above in the Gradio application mounted last on `app`.

    Calling `app.state.end_streams` ends the streams of its open pages.
    """
    from gradio.routes import App

    route_utils.GradioMultiPartParser = Upload  # type: ignore[misc]

    mounted = next(gradio_app for route in reversed(app.routes) if isinstance(gradio_app := getattr(route, "app", None), App))
    blocks = mounted.get_blocks()
    blocks.state_session_capacity = SESSIONS
    app.state.end_streams = mounted.stop_event.set  # Gradio calls this only in its own server
    mounted.state_holder = Sessions()
    mounted.state_holder.set_blocks(blocks)
