"""An upload whose client goes away in the middle leaves nothing: no part of a file, no open one, no job."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import uvicorn

from engine.core.settings import Settings
from studio.api import create_api
from studio.services.service import Service

PROMISED, SENT = 40 << 20, 6 << 20  # bytes; what is sent is more than is held in memory
HEAD = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'


def open_below(folder: Path) -> list[str]:
    """The files of a folder that this process has open, removed ones too."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            links.append(os.readlink(descriptor))
        except OSError:
            continue
    return [link for link in links if link.startswith(str(folder))]


def until(true: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are told by /proc")
def test_an_upload_that_breaks_off_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    service = Service(Settings(home=str(tmp_path / "home"), device="cpu"))
    project = service.store.projects.create("Lu Xun", "en", "zh", "en-zh").id
    server = uvicorn.Server(uvicorn.Config(create_api(service), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(
                f"POST /api/v1/projects/{project}/samples HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {PROMISED}\r\n\r\n".encode()
            )
            client.sendall(HEAD + b"The rain stopped.\n" * (SENT // 18))
            until(lambda: open_below(spool))
        until(lambda: not open_below(spool))
    finally:
        server.should_exit = True
        thread.join(300)
    assert not list(spool.iterdir())
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path.stat().st_size > 1 << 20]
    assert not list((tmp_path / "home" / "uploads").glob("*"))
    assert not service.store.jobs.list()
