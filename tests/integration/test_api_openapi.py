"""schemathesis over the whole OpenAPI of a running interface: nothing that it can think of breaks the server, and every
answer is one that the document promises.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.core.settings import Settings
from engine.store import Store
from tests.bases import EN_ZH, SAMPLES

# Numbers that are there, so that more than "not found" is tried; what removes something takes other ones.
CONFIG = """
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]

[parameters]
"path.number" = 1
"path.project" = "1"
"path.plugin" = "base"
"path.method" = "lhuc"
"path.rater" = 1
"path.place" = 0

[[operations]]
include-method = "DELETE"
parameters = { "path.number" = 2, "path.rater" = 3 }
"""
ENDLESS = "/api/v1/jobs/{number}/events"  # a stream that lasts as long as its job; tests/unit/studio/test_api.py follows it


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Iterator[tuple[str, str]]:
    """A server's address and a token; it has projects, samples, phrases, jobs, plugins and comparisons."""
    import uvicorn

    from engine.workflows.human_rating import RoundPlan, Texts, new_round
    from studio.api import create_api
    from studio.services.service import Service

    home = tmp_path_factory.mktemp("home")
    settings = Settings(home=str(home), device="cpu", threads=1, api_tokens="always")
    store = Store(settings.store_url)
    for name in ("One", "Two"):
        project = store.projects.create(name, "en", "zh", str(EN_ZH))
        folder = home / "projects" / str(project.id)
        (folder / "samples").mkdir(parents=True)
        shutil.copy(SAMPLES / "literary-zh" / "literary-zh.txt", folder / "samples")
        rows = [{"text": "雨还在下。", "file": "literary-zh.txt", "line": 1}]
        (folder / "corpus.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        (folder / "phrases.jsonl").write_text('{"text": "雨", "length": 1, "count": 2}\n', encoding="utf-8")
        store.plugins.create(project.id, "Style", method="memory_adapter", path=str(bundle))
        store.comparisons.create(project.id, "x", [{"source": "I.", "vanilla": "我。", "customized": None}])
        store.jobs.cancel(store.jobs.enqueue("prepare", {}, project_id=project.id).id)
    differ = Texts(["I.", "You."], {"vanilla": ["我。", "你。"], "Style": ["吾。", "汝。"]})
    for _ in range(2):
        new_round(store, 1, differ, RoundPlan("Style", "vanilla", raters=["Ann", "Bo"]))
    store.defaults.set(1, None)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = create_api(Service(settings))
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}", store.tokens.create("schemathesis", ["read", "translate", "write"])[1]
    server.should_exit = True
    thread.join(timeout=120)


def test_every_operation_keeps_its_promises(served: tuple[str, str], tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    address, token = served
    (tmp_path / "schemathesis.toml").write_text(CONFIG, encoding="utf-8")
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(tmp_path / "schemathesis.toml"), "run"),
        f"{address}/api/v1/openapi.json",
        *("--phases", "fuzzing", "--max-examples", "6", "--generation-deterministic", "--no-color", "--continue-on-failure"),
        *("--exclude-path", ENDLESS, "--request-timeout", "60", "-H", f"Authorization: Bearer {token}"),
        # A valid shape may still name a language, a base or a method that there is not: then 400 or 404 is right.
        *("--exclude-checks", "positive_data_acceptance"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, cwd=tmp_path)
    output = "\n".join(line[:300] for line in done.stdout.splitlines())  # a body may have millions of characters
    assert done.returncode == 0, output[-12_000:] + done.stderr[-2000:]
