"""A real S3 server of this machine's own (moto's) on a free port, with made-up keys; it can be ended and started again."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

__all__ = ["BUCKET", "Server", "s3_server"]

BUCKET = "tailor"
# The bucket is there from the first answer on, so that nobody sees a server without it.
SERVE = """
import sys
from moto.s3.models import s3_backends
from moto.server import main
s3_backends["123456789012"]["aws"].create_bucket(sys.argv[1], "us-east-1")
main(["-H", "127.0.0.1", "-p", sys.argv[2]])
"""
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


class Server:
    """The server's process. What it holds is in its memory: it is gone when it ends."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-c", SERVE, BUCKET, str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/moto-api/", timeout=10).close()
                return
            assert time.monotonic() < deadline, "the S3 server does not answer"
            time.sleep(0.05)

    def pause(self) -> None:
        """It answers nobody, and keeps what it holds."""
        import psutil

        assert self.process is not None
        psutil.Process(self.process.pid).suspend()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextlib.contextmanager
def s3_server() -> Iterator[Server]:
    """A server with one empty bucket; the environment has its keys."""
    before = {name: os.environ.get(name) for name in KEYS}
    os.environ.update(KEYS)
    server = Server()
    try:
        server.start()
        yield server
    finally:
        server.stop()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
