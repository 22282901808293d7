"""The server's state of each open browser page.

Gradio describes every component of every page anew when a session begins, so that a session could be sent on as a "deep
link", which the studio does not have: its addresses say what a page shows. That description takes a tenth of a second, for
which all first answers wait, and memory for as long as the server runs. What an event changes is described again by each event.
Here nothing is described.

And of an upload that broke off, since its browser was closed or it grew too large, Gradio keeps what had come, in a file that it
never looks for again. Here that goes with the request.

The events of a page whose session has ended meanwhile, since its browser has left it, end in Gradio with an error in the log; the
page has been notified. Here that is no error.
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

# Pages kept; the one not used for the longest gives way. It loses nothing by that: no page keeps a state on the server.
SESSIONS = 1000


class Session(SessionState):
    """A session whose components are not described."""

    def __init__(self, blocks: Any) -> None:
        self.blocks_config = copy(blocks.default_config)
        self.blocks_config.config_for_block = lambda *_: {}  # type: ignore[method-assign]
        self.config_values: dict[int, Any] = {}
        self.state_data: dict[int, Any] = {}
        self._state_ttl: dict[int, Any] = {}
        self.is_closed = False
        self.STATE_TTL_WHEN_CLOSED = 3600  # seconds, as Gradio has it


class Sessions(StateHolder):
    """The sessions of one server, each begun as above."""

    def __getitem__(self, session_id: str) -> SessionState:
        if session_id not in self.session_data:
            self.session_data[session_id] = Session(self.blocks)
        return super().__getitem__(session_id)


class Upload(route_utils.GradioMultiPartParser):
    """An upload whose files are gone where it does not come to its end."""

    async def parse(self) -> FormData:
        try:
            return await super().parse()
        except BaseException:  # Gradio clears away after errors of its own alone; a client that left is none
            for file in self._files_to_close_on_error:
                file.close()
                Path(file.name).unlink(missing_ok=True)
            raise


class EndedStreams:
    """Streams of events whose session has ended are over without an error. Plain ASGI."""

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
    """Let Gradio's queues, of those that are made from now on, say nothing of the events that they have had.

    After every event Gradio sums up the last 10,000 for a page that the studio does not have, so that each event took longer than
    the one before.
    """
    os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "1")
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(sys.maxsize))  # events between two summaries


def keep_sessions_small(app: FastAPI) -> None:
    """Give the Gradio application that was mounted last on `app` the sessions and uploads above.

    `app.state.end_streams` ends the streams of its open pages.
    """
    from gradio.routes import App

    route_utils.GradioMultiPartParser = Upload  # type: ignore[misc]

    mounted = next(one for route in reversed(app.routes) if isinstance(one := getattr(route, "app", None), App))
    blocks = mounted.get_blocks()
    blocks.state_session_capacity = SESSIONS
    app.state.end_streams = mounted.stop_event.set  # which Gradio itself calls where it runs a server of its own
    mounted.state_holder = Sessions()
    mounted.state_holder.set_blocks(blocks)
