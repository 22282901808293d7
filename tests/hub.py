"""A hub on this machine, in the hub's protocol: folders served as repositories, so that fetching is tested without a network."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.core.model_card import read_card_file

__all__ = ["COMMIT", "served_hub"]

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers for a model's description, and for its files."""

    repositories: Mapping[str, Path]

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_HEAD(self) -> None:
        self.answer(False)

    def do_GET(self) -> None:
        self.answer(True)

    def answer(self, body: bool) -> None:
        path = self.path.split("?")[0].strip("/")
        api = path.removeprefix("api/models/").split("/revision/")[0]
        if path.startswith("api/models/") and api in self.repositories:
            self.send(json.dumps(described(api, self.repositories[api])).encode(), body, {"Content-Type": "application/json"})
            return
        name, _, rest = path.partition("/resolve/")
        file = self.repositories.get(name, Path("/nowhere")) / rest.partition("/")[2]
        if file.is_file():
            self.send(file.read_bytes(), body, {"ETag": f'"{file.name}-{file.stat().st_size}"', "X-Repo-Commit": COMMIT})
            return
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send(self, data: bytes, body: bool, headers: dict[str, str]) -> None:
        self.send_response(200)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(data)


def described(name: str, folder: Path) -> dict[str, Any]:
    """The hub's description of a repository: its commit, its files with their sizes, what its card says."""
    files = [{"rfilename": file.name, "size": file.stat().st_size} for file in folder.iterdir()]
    description = {"id": name, "modelId": name, "sha": COMMIT, "siblings": files, "tags": [], "private": False}
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    card = {"license": licence} if (licence := read_card_file(folder).license) else {}
    return description | {"config": {"model_type": config.get("model_type")}, "cardData": card}


@contextlib.contextmanager
def served_hub(repositories: Mapping[str, Path]) -> Iterator[str]:
    """The address of a hub with {hub id: folder}, as long as the block lasts."""
    handler = type("Handler", (Hub,), {"repositories": repositories})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
