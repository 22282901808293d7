"""Access to Gradio's endpoints: which are open, and to whom.

Gradio has more endpoints than the studio's pages use: some fetch from other hosts, some run an event without its page, some are
for developers. Only those that the pages need are open. If users sign in, an event session and an uploaded file belong to the
user who started or uploaded them. Browsers see session ids and file paths, so knowing one does not grant access.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams

ROOT = "/gradio_api"
NEEDED = re.compile(
    r"/gradio_api/(?:info/?|app_id/?|startup-events|theme\.css|heartbeat/[\w-]+|queue/(?:join|data)|cancel|reset/?"
    r"|upload|upload_progress|file=.*|component_server/?)"
)
# Outside ROOT: Gradio's sign-in, monitoring and OpenAPI description.
CLOSED = re.compile(r"/(?:login|logout|token|user|login_check|monitoring|openapi\.json|runs|run-history|dev)(?:/.*)?")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
MOST = 50_000  # sessions, and uploads, that are remembered


def closed(path: str) -> bool:
    """Whether the path is a Gradio endpoint that no page of the studio needs."""
    if path == ROOT or path.startswith(f"{ROOT}/"):
        if NEEDED.fullmatch(path) is None:
            return True
        return bool(ELSEWHERE.match(path.partition("file=")[2]))  # it would fetch from another host
    return CLOSED.fullmatch(path) is not None


class Events:
    """The owners of Gradio sessions and uploads. Unknown uploads belong to nobody."""

    def __init__(self, uploads: Path) -> None:
        self.uploads = os.path.realpath(uploads)
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, int] = OrderedDict()
        self._files: OrderedDict[str, set[int]] = OrderedDict()

    def brought(self, user: int, body: bytes) -> None:
        """Remember the paths in Gradio's response to an upload of the user."""
        try:
            paths = json.loads(body)
        except (ValueError, RecursionError):
            return
        with self._lock:
            for path in paths if isinstance(paths, list) else []:
                self._files.setdefault(os.path.realpath(str(path)), set()).add(user)
            while len(self._files) > MOST:
                self._files.popitem(last=False)

    def owns_file(self, user: int, path: str) -> bool:
        """Whether the user uploaded this file."""
        real = os.path.realpath(path)
        with self._lock:
            return real.startswith(self.uploads + os.sep) and user in self._files.get(real, ())

    def owns_session(self, user: int, session: str) -> bool:
        """Whether the session belongs to the user. An unknown session is assigned to them."""
        if not session:
            return False
        with self._lock:
            if session not in self._sessions:
                self._sessions[session] = user
                while len(self._sessions) > MOST:
                    self._sessions.popitem(last=False)
            return self._sessions.get(session) == user

    def may(self, user: int, method: str, path: str, query: str, body: bytes) -> bool:
        """Whether the user may send this request to Gradio; `body` is empty for a request without one."""
        endpoint = path.removeprefix(f"{ROOT}/")
        if endpoint.startswith("file="):
            return self.owns_file(user, endpoint.removeprefix("file="))
        if endpoint.startswith("heartbeat/"):
            return self.owns_session(user, endpoint.partition("/")[2])
        if endpoint == "queue/data":
            return self.owns_session(user, QueryParams(query).get("session_hash", ""))
        if method == "POST" and endpoint != "upload":
            try:
                payload = json.loads(body or b"{}")
            except (ValueError, RecursionError):
                return False
            if not isinstance(payload, dict):
                return False
            session = payload.get("session_hash")
            if session is not None and not self.owns_session(user, str(session)):
                return False
            return all(self.owns_file(user, file) for file in files_in(payload))
        return True


def files_in(value: Any) -> Iterator[str]:
    """Yield the paths of the files in an event's data."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if isinstance(item.get("path"), str) and ("meta" in item or "orig_name" in item or "url" in item):
                yield item["path"]
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
