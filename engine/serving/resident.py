"""Short translations of commands by a studio that runs on the same machine: its base is loaded, so that neither the imports of
torch and transformers nor the base are waited for.

The studio listens on a Unix socket in its home folder, which its user alone may open. A command asks there first; where
nobody answers, the answer is of another release or other settings, or the base is at work, it translates by itself. Both
call the same function with the same settings, so the translations are the same.

One request a connection: a line of JSON each way.
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
MAX_CHARACTERS = (
    4000  # characters of a request: more is worth a process of its own, and would keep the studio's base from others
)
MAX_LINE_BYTES = 2**20  # of a line of JSON
MAX_WAITING_COMMANDS = 4  # that wait for their turn; further ones translate by themselves
READ_SECONDS = 5.0  # for a request to come in
ANSWER_SECONDS = 20.0  # that a command waits: a base may have to be loaded first
POLL_SECONDS = 0.2  # between two looks whether the command should stop
SHARED_SETTINGS = (
    "assets",
    "device",
    "base_precision",
    "batch_tokens",
    "threads",
    "parsers",
    "endpoints",
)  # settings that translations depend on


def listen(models: ModelCache) -> socket.socket | None:
    """Answer commands of this user from now on, with these models; None where no socket can be had, or another answers already:
    commands then translate by themselves. The file of a studio that has ended is in nobody's way, and replaced.
    """
    path = models.settings.home_dir / SOCKET_NAME
    if not hasattr(socket, "AF_UNIX"):
        return None
    if (other := _connected(path)) is not None:
        other.close()
        return None
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Made in a folder that nobody else can enter, so that there is no moment at which others could open it.
        private = Path(tempfile.mkdtemp(prefix=".socket-", dir=path.parent))
        try:
            server.bind(str(private / SOCKET_NAME))
            (private / SOCKET_NAME).chmod(0o600)
            server.listen(MAX_WAITING_COMMANDS)
            (private / SOCKET_NAME).replace(path)
        finally:
            shutil.rmtree(private, ignore_errors=True)
    except OSError:  # a path too long for a socket, a file system that has none
        server.close()
        return None
    threading.Thread(target=_serve, args=(server, models), name="resident", daemon=True).start()
    return server


def ask(
    settings: Settings, spec: TranslationSpec, texts: Sequence[str], progress: Progress | None = None
) -> list[str] | None:
    """Translations of the texts by the studio over this home folder; None where it does not answer, or not with the same release
    and settings. Paths of the spec are absolute. Raises Cancelled when `progress` says so.
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
    """A connection to who listens there, if it is this user."""
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
    """One line of JSON, an object. Raises OSError or ValueError where none comes in time."""
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
        except OSError:  # shut down, or too many files are open: commands shall not wait for an answer
            server.close()
            return
        with connection, contextlib.suppress(OSError, ValueError):
            request = _read_line(connection, READ_SECONDS, Progress())
            try:
                translations = _answer(request, models)
            except Exception:  # whatever it is, the command meets it again by itself, and says it
                translations = None
            response = {} if translations is None else {"translations": [packed(one) for one in translations]}
            connection.settimeout(READ_SECONDS)
            connection.sendall(json.dumps(response).encode() + b"\n")


def _answer(request: Mapping[str, Any], models: ModelCache) -> list[str] | None:
    """Translations; None where the command is of another release or has other settings, or the base is at work."""
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
    """The settings of SAME, as JSON gives them back."""
    values = settings.to_mapping()
    return json.loads(json.dumps({name: values[name] for name in SHARED_SETTINGS}))
