"""How the studio is: health, readiness, figures, numbers of requests, and logs that give no secret away."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from engine.core.logging_setup import JOB, REQUEST, redacted, set_up_logs
from engine.core.metrics import TRANSLATIONS
from engine.core.settings import Settings
from engine.store import Store
from studio.api.dispatch import is_api
from studio.api.errors import shaped
from studio.api.health import MetricsMiddleware, add_health_routes, kind_of
from studio.auth.gateway import Gateway
from studio.services.service import Service


def client(home: Path, *, here: bool = True, **changes: str) -> TestClient:
    service = Service(Settings(home=str(home), assets=str(home / "none"), device="cpu", **changes))  # type: ignore[arg-type]
    app = FastAPI()
    app.add_middleware(
        Gateway, settings=service.settings, store=service.store, uploads=home / "uploads", is_api=is_api, error_response=shaped
    )
    app.add_middleware(MetricsMiddleware)
    add_health_routes(app, service)
    where = ("127.0.0.1", 5000) if here else ("10.1.2.3", 5000)
    return TestClient(app, base_url="http://127.0.0.1:7860" if here else "http://studio.example", client=where)


def test_a_studio_is_well_before_it_is_ready(tmp_path: Path, store: Store) -> None:
    api = client(tmp_path, here=False, host="0.0.0.0")
    assert api.get("/healthz").text == "ok\n"
    answer = api.get("/readyz")
    assert answer.status_code == 503
    for path in ("/healthz", "/readyz"):
        head = api.head(path)
        assert (head.status_code, head.content) == (api.get(path).status_code, b"")
    assert answer.json() == {"ready": False, "checks": {"store": True, "worker": False, "base": False}}


def test_a_worker_and_a_base_make_it_ready(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import platform

    store.workers.beat("w", platform.node(), os.getpid())
    monkeypatch.setattr("engine.jobs.worker.worker_alive", lambda row: row.name == "w")
    service = Service(Settings(home=str(tmp_path)))
    from studio.api.health import checks

    assert checks(service) == {"store": True, "worker": True, "base": True}


def test_figures_tell_of_jobs_requests_and_translations(tmp_path: Path, store: Store) -> None:
    project = store.projects.create("a", "en", "zh", "base")
    done = store.jobs.enqueue("prepare", {}, project_id=project.id)
    assert store.jobs.claim("w") is not None
    store.jobs.finish(done.id, 1)
    store.jobs.enqueue("customize", {}, project_id=project.id)
    api = client(tmp_path)
    assert api.get("/healthz").status_code == 200
    TRANSLATIONS.inc(3)
    text = api.get("/metrics").text
    assert 'tailormt_jobs{kind="customize",state="queued"} 1.0' in text
    assert 'tailormt_job_seconds_count{kind="prepare"} 1.0' in text
    assert 'tailormt_request_seconds_bucket{kind="page",le="+Inf"}' in text
    assert "tailormt_store_up 1.0" in text
    for name in (
        "tailormt_translations_total", "tailormt_translated_characters_total", "tailormt_translation_seconds",
        "tailormt_memory_reads_total", "tailormt_answers_total", "tailormt_queue_oldest_seconds",
        "tailormt_gpu_memory_bytes", "process_resident_memory_bytes",
    ):  # fmt: skip
        assert name in text, name


def test_figures_are_for_this_machine_and_for_tokens(tmp_path: Path, store: Store) -> None:
    away = client(tmp_path, here=False, host="0.0.0.0")
    assert away.get("/metrics").status_code == 401
    for scopes, status in ((["read"], 401), (["metrics"], 200), (["admin"], 200)):
        secret = store.tokens.create("x", scopes)[1]
        assert away.get("/metrics", headers={"Authorization": f"Bearer {secret}"}).status_code == status
    assert client(tmp_path, here=False, host="0.0.0.0", metrics="open").get("/metrics").status_code == 200
    assert client(tmp_path, metrics="off").get("/metrics").status_code == 404
    proxied = client(tmp_path).get("/metrics", headers={"X-Forwarded-For": "10.1.2.3"})
    assert proxied.status_code == 401


def test_a_request_has_a_number(tmp_path: Path) -> None:
    api = client(tmp_path)
    assert api.get("/healthz", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    for bad in ("x" * 65, 'a"b', "a b"):
        assert api.get("/healthz", headers={"X-Request-ID": bad}).headers["x-request-id"] != bad
    assert len(api.get("/healthz").headers["x-request-id"]) == 16


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)
    JOB[0] = ""


def test_lines_are_json_with_request_and_job(lines: io.StringIO) -> None:
    set_up_logs("json", job=7, stream=lines)
    REQUEST.set("abc")
    try:
        raise ValueError("no good")
    except ValueError:
        logging.getLogger("a.b").exception("It failed\nbadly")
    logging.getLogger("a.b").info("second", extra={"fields": {"status": 200}})
    first, second = (json.loads(line) for line in lines.getvalue().splitlines())
    assert {key: first[key] for key in ("level", "logger", "message", "request", "job")} == {
        "level": "error", "logger": "a.b", "message": "It failed\nbadly", "request": "abc", "job": "7"
    }  # fmt: skip
    assert "ValueError: no good" in first["exception"]
    assert first["time"].endswith("+00:00")
    assert second["status"] == 200


CANARY = "canary-5ecr3t-value"


@pytest.mark.parametrize("line", [
    f"token tmt_{CANARY}", f"Authorization: Bearer {CANARY}", f"DeepL-Auth-Key {CANARY}", f"GET /translate?q=a&api_key={CANARY}",
    f"cookie: tailormt_session={CANARY}; x=1", f"__Host-tailormt_session={CANARY}", f'{{"password": "{CANARY}"}}',
    f"postgresql+psycopg://tailor:{CANARY}@db/tailor", f"https://x:{CANARY}@minio:9000", f"/rating/{CANARY}/state",
    f"aws_secret_access_key={CANARY}", f"Settings(token='{CANARY}', host='a')",
])  # fmt: skip
def test_no_line_gives_a_secret_away(line: str, lines: io.StringIO) -> None:
    assert CANARY not in redacted(line)
    for form in ("text", "json"):
        set_up_logs(form, stream=lines)
        logging.getLogger("x").warning("it was %s", line)
        try:
            raise RuntimeError(line)
        except RuntimeError:
            logging.getLogger("x").exception("failed")
    assert CANARY not in lines.getvalue()
    assert "[hidden]" in lines.getvalue()


def test_what_is_no_secret_stays() -> None:
    for line in ("Phrases are the constituents found by parser.", "tokens_per_batch=4096", "http://127.0.0.1:7860/rating/"):
        assert redacted(line) == line


def test_kinds_of_requests_are_few() -> None:
    for path in ("/", "/samples", "/api/v1/projects/1", "/gradio_api/queue/join", "/gradio_api/queue/data", "/download/plugins/1"):
        assert kind_of(path) in ("page", "api", "event", "stream", "download")


def test_a_page_that_is_left_is_no_error_of_the_log(lines: io.StringIO) -> None:
    set_up_logs("text", stream=lines)
    (handler,) = logging.getLogger().handlers
    for cause in (asyncio.CancelledError("its scope"), ValueError("a defect")):
        error = RuntimeError("the stream ended")
        error.__cause__ = cause
        exc_info = (RuntimeError, error, None)
        handler.handle(logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "Exception in ASGI", None, exc_info))
    assert lines.getvalue().count("Exception in ASGI") == 1
    assert "its scope" not in lines.getvalue()
    assert "ValueError: a defect" in lines.getvalue()
