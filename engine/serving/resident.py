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
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.serving.batcher import TranslationSpec, own_decoding
from engine.serving.model_cache import ModelCache

NAME = "translate.sock"
MOST = 4000  # characters of a request: more is worth a process of its own, and would keep the studio's base from others
MOST_BYTES = 2**20  # of a line of JSON
WAITING_COMMANDS = 4  # that wait for their turn; further ones translate by themselves
READING = 5.0  # seconds for a request to come in
WAITING = 20.0  # seconds that a command waits: a base may have to be loaded first
LOOKING = 0.2  # seconds between two looks whether the command should stop
SAME = (
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
    path = models.settings.home_dir / NAME
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
            server.bind(str(private / NAME))
            (private / NAME).chmod(0o600)
            server.listen(WAITING_COMMANDS)
            (private / NAME).replace(path)
        finally:
            shutil.rmtree(private, ignore_errors=True)
    except OSError:  # a path too long for a socket, a file system that has none
        server.close()
        return None
    threading.Thread(target=_serve, args=(server, models), name="resident", daemon=True).start()
    return server


def ask(
    settings: Settings, work: TranslationSpec, texts: Sequence[str], progress: Progress | None = None
) -> list[str] | None:
    """Translations of the texts by the studio over this home folder; None where it does not answer, or not with the same release
    and settings. Paths of the work are absolute. Raises Cancelled when `progress` says so.
    """
    if sum(map(len, texts)) > MOST or (connection := _connected(settings.home_dir / NAME)) is None:
        return None
    asked = {"release": engine.__version__, "settings": _shared(settings), "work": asdict(work), "texts": list(texts)}
    with connection:
        try:
            connection.settimeout(READING)
            connection.sendall(json.dumps(asked).encode() + b"\n")
            answer = _line(connection, WAITING, progress or Progress())
        except (OSError, ValueError):
            return None
    made = answer.get("translations")
    return [unpacked(one) for one in made] if isinstance(made, list) and len(made) == len(texts) else None


def _connected(path: Path) -> socket.socket | None:
    """A connection to who listens there, if it is this user."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.lstat().st_uid == os.getuid():
            connection.settimeout(READING)
            connection.connect(str(path))
            return connection
    except OSError:
        pass
    connection.close()
    return None


def _line(connection: socket.socket, seconds: float, progress: Progress) -> dict[str, Any]:
    """One line of JSON, an object. Raises OSError or ValueError where none comes in time."""
    connection.settimeout(LOOKING)
    read = bytearray()
    for _ in range(int(seconds / LOOKING)):
        progress.check()
        with contextlib.suppress(TimeoutError):
            while some := connection.recv(2**16):
                read += some
                if read.endswith(b"\n"):
                    value = json.loads(read)
                    if not isinstance(value, dict):
                        raise ValueError
                    return value
                if len(read) > MOST_BYTES:
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
            asked = _line(connection, READING, Progress())
            try:
                translations = _answer(asked, models)
            except Exception:  # whatever it is, the command meets it again by itself, and says it
                translations = None
            made = {} if translations is None else {"translations": [packed(one) for one in translations]}
            connection.settimeout(READING)
            connection.sendall(json.dumps(made).encode() + b"\n")


def _answer(asked: Mapping[str, Any], models: ModelCache) -> list[str] | None:
    """Translations; None where the command is of another release or has other settings, or the base is at work."""
    from engine.decoding.translate import translate

    if asked["release"] != engine.__version__ or asked["settings"] != _shared(models.settings):
        return None
    decoding = tuple((name, value) for name, value in asked["work"].pop("decoding"))
    work, texts = TranslationSpec(**asked["work"], decoding=decoding), asked["texts"]
    models.take_cores()
    base = models.base(work.base, work.source, work.target)
    if not models.current(work.base) or not base.lock.acquire(blocking=False):
        return None
    try:
        (plugin,) = models.plugins([work.plugin], base)
        decode = own_decoding(work, base, plugin)
        return translate(base, texts, plugin, strength=work.strength, decoding=decode)
    finally:
        base.lock.release()


def _shared(settings: Settings) -> dict[str, Any]:
    """The settings of SAME, as JSON gives them back."""
    every = settings.to_mapping()
    result: dict[str, Any] = json.loads(json.dumps({name: every[name] for name in SAME}))
    return result
