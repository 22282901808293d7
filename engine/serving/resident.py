"""Short translations for commands by a studio running on the same machine, without importing libraries or loading a base.

The studio listens on a Unix socket in its home folder, which only its user may open. Commands try it first. If there is no
response, the release or settings differ, or the base is busy, the command translates itself. Both call the same function with
the same settings, so the translations are identical.

Each connection carries one request: a line of JSON in each direction.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import engine
from engine.core.flagged import packed, unpacked
from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.serving.batcher import TranslationSpec, own_decoding
from engine.serving.model_cache import ModelCache

SOCKET_NAME = "translate.sock"
MAX_CHARACTERS = 4000  # characters per request; longer ones would block the studio's base for too long
MAX_LINE_BYTES = 2**20  # per line of JSON
MAX_WAITING_COMMANDS = 4  # queued connections; further commands translate themselves
READ_SECONDS = 5.0  # to receive a request
ANSWER_SECONDS = 20.0  # to wait for a response; a base may have to be loaded first
POLL_SECONDS = 0.2  # between checks whether the command should stop
SHARED_SETTINGS = (
    "assets",
    "device",
    "base_precision",
    "batch_tokens",
    "threads",
    "parsers",
    "endpoints",
)  # settings that affect translations


def listen(models: ModelCache) -> socket.socket | None:
    """Start serving commands of this user with these models; returns the listening socket.

    Returns None if no socket can be created or another studio already serves this home folder. A stale socket file is replaced.
    """
    path = models.settings.home_dir / SOCKET_NAME
    if not hasattr(socket, "AF_UNIX"):
        return None
    if (other := _connected(path)) is not None:
        other.close()
        return None
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Created in a private folder, so that other users can never open it, not even before the chmod.
        private = Path(tempfile.mkdtemp(prefix=".socket-", dir=path.parent))
        try:
            server.bind(str(private / SOCKET_NAME))
            (private / SOCKET_NAME).chmod(0o600)
            server.listen(MAX_WAITING_COMMANDS)
            (private / SOCKET_NAME).replace(path)
        finally:
            shutil.rmtree(private, ignore_errors=True)
    except OSError:  # the path is too long for a socket, or the file system has no sockets
        server.close()
        return None
    threading.Thread(target=_serve, args=(server, models), name="resident", daemon=True).start()
    return server


def ask(settings: Settings, spec: TranslationSpec, texts: Sequence[str], progress: Progress | None = None) -> list[str] | None:
    """Have the studio of this home folder translate texts; None if it does not respond or its release or settings differ.

    The paths in `spec` must be absolute. Raises Cancelled if `progress` is cancelled.
    """
    if sum(map(len, texts)) > MAX_CHARACTERS or (connection := _connected(settings.home_dir / SOCKET_NAME)) is None:
        return None
    request = {"release": engine.__version__, "settings": _shared(settings), "work": asdict(spec), "texts": list(texts)}
    with connection:
        try:
            connection.settimeout(READ_SECONDS)
            connection.sendall(json.dumps(request).encode() + b"\n")
            response = _read_line(connection, ANSWER_SECONDS, progress or Progress())
        except (OSError, ValueError):
            return None
    rows = response.get("translations")
    return [unpacked(row) for row in rows] if isinstance(rows, list) and len(rows) == len(texts) else None


def _connected(path: Path) -> socket.socket | None:
    """A connection to the socket, if it belongs to this user and a process is listening."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.lstat().st_uid == os.getuid():
            connection.settimeout(READ_SECONDS)
            connection.connect(str(path))
            return connection
    except OSError:
        pass
    connection.close()
    return None


def _read_line(connection: socket.socket, seconds: float, progress: Progress) -> Json:
    """Read one line with a JSON object. Raises OSError or ValueError if none arrives in time."""
    connection.settimeout(POLL_SECONDS)
    read = bytearray()
    for _ in range(int(seconds / POLL_SECONDS)):
        progress.check()
        with contextlib.suppress(TimeoutError):
            while chunk := connection.recv(2**16):
                read += chunk
                if read.endswith(b"\n"):
                    value = json.loads(read)
                    if not isinstance(value, dict):
                        raise ValueError
                    return value
                if len(read) > MAX_LINE_BYTES:
                    raise ValueError
            raise OSError
    raise TimeoutError


def _serve(server: socket.socket, models: ModelCache) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # shut down, or too many open files: commands should not wait for a response
            server.close()
            return
        with connection, contextlib.suppress(OSError, ValueError):
            request = _read_line(connection, READ_SECONDS, Progress())
            try:
                translations = _answer(request, models)
            except Exception:  # the command gets and reports the same error itself
                translations = None
            response = {} if translations is None else {"translations": [packed(translation) for translation in translations]}
            connection.settimeout(READ_SECONDS)
            connection.sendall(json.dumps(response).encode() + b"\n")


def _answer(request: Mapping[str, Any], models: ModelCache) -> list[str] | None:
    """Translations; None if the command has a different release or settings, or the base is busy."""
    from engine.decoding.translate import translate

    if request["release"] != engine.__version__ or request["settings"] != _shared(models.settings):
        return None
    decoding = tuple((name, value) for name, value in request["work"].pop("decoding"))
    spec, texts = TranslationSpec(**request["work"], decoding=decoding), request["texts"]
    models.take_cores()
    base = models.base(spec.base, spec.source, spec.target)
    if not base.lock.acquire(blocking=False):
        return None
    try:
        (plugin,) = models.plugins([spec.plugin], base)
        decode = own_decoding(spec, base, plugin)
        return translate(base, texts, plugin, strength=spec.strength, decoding=decode)
    finally:
        base.lock.release()


def _shared(settings: Settings) -> Json:
    """The values of SHARED_SETTINGS, converted through JSON for comparison."""
    values = settings.to_mapping()
    return json.loads(json.dumps({name: values[name] for name in SHARED_SETTINGS}))
