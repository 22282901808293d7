"""Requests that wait for translations: clients that leave, times that run out, a queue that is full, and what never waits."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from fastapi import FastAPI

from engine.core.settings import Settings
from engine.errors import CorpusError
from engine.serving.batcher import PART
from engine.store import Store
from studio.api import create_api
from studio.api.deps import OWN_THREADS
from studio.api.dispatch import is_api
from studio.api.errors import RETRY_AFTER, shaped
from studio.api.health import add_health_routes
from studio.api.translate import MOST_TEXT
from studio.auth.gateway import Gateway
from studio.services.service import Service
from tests.bases import EN_ZH
from tests.held_batcher import HeldBatcher

BOUNDARY = "b"
LIBRE, OURS, DEEPL = "/cat/1/base/translate", "/api/v1/translate", "/cat/1/base/v2/translate"


class Studio:
    """The studio's interface over a queue that a test lets go, asked as a server does."""

    def __init__(self, home: Path, **settings: Any) -> None:
        self.service = Service(Settings(home=str(home), device="cpu", **settings))
        self.service.store.projects.create("Lu Xun", "en", "zh", str(EN_ZH))
        self.batcher = HeldBatcher()
        self.service.batcher = self.batcher
        api = create_api(self.service)
        self.deps = api.state.deps
        self.app = Gateway(
            api,
            settings=self.service.settings,
            store=self.service.store,
            uploads=home / "uploads",
            is_api=is_api,
            error_response=shaped,
        )

    async def ask(
        self, path: str, body: dict[str, Any] | bytes, gone: asyncio.Event | None = None, token: str = ""
    ) -> tuple[int, dict[str, str], Any]:
        """Status, headers and body of the answer; the client leaves when `gone` is set. Bytes are a form with a file."""
        kind = f"multipart/form-data; boundary={BOUNDARY}" if isinstance(body, bytes) else "application/json"
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent: list[dict[str, Any]] = []
        received = False

        async def receive() -> dict[str, Any]:
            nonlocal received
            if received:
                await (gone or asyncio.Event()).wait()
                return {"type": "http.disconnect"}
            received = True
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1:7860"), (b"content-type", kind.encode())]
        headers += [(b"authorization", f"Bearer {token}".encode())] if token else []
        scope = {
            "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers,
            "client": ("127.0.0.1", 5000), "server": ("127.0.0.1", 7860), "scheme": "http",
            "http_version": "1.1", "root_path": "",
        }  # fmt: skip
        await self.app(scope, receive, send)
        text = b"".join(message.get("body", b"") for message in sent[1:])
        answer_headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], answer_headers, json.loads(text)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.01)


def running(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 300))


def form(name: str, **fields: str) -> bytes:
    """A form with a file of that name and other fields."""
    parts = [f'name="file"; filename="{name}"\r\n\r\nThe rain stopped.']
    parts += [f'name="{key}"\r\n\r\n{value}' for key, value in fields.items()]
    text = "".join(f"--{BOUNDARY}\r\nContent-Disposition: form-data; {part}\r\n" for part in parts)
    return f"{text}--{BOUNDARY}--\r\n".encode()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/projects/1/documents", form("a.txt")),
        ("/cat/1/v2/document", form("a.txt", target_lang="ZH")),
        ("/api/v1/projects/1/plugins/check", form("a.zip")),
    ],
)
def test_files_of_one_client_that_are_slow_to_read_take_no_thread_of_others(
    path: str, body: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio, go, reading = Studio(tmp_path), threading.Event(), threading.Semaphore(0)

    def slow(*_: Any, **__: Any) -> Any:
        reading.release()
        go.wait(120)
        raise CorpusError("a is damaged.")

    monkeypatch.setattr("engine.jobs.handlers.documents.first_reading", slow)
    monkeypatch.setattr("studio.services.plugin_imports.check_bundle", slow)

    async def test() -> None:
        tasks = [asyncio.create_task(studio.ask(path, body)) for _ in range(60)]
        try:
            for _ in range(OWN_THREADS):
                await until(lambda: reading.acquire(blocking=False))
            await until(lambda: anyio.to_thread.current_default_thread_limiter().borrowed_tokens == 0)
            assert not reading.acquire(blocking=False), "a few at once"
        finally:
            go.set()
        assert {status for status, _, _ in await asyncio.gather(*tasks)} == {400}

    running(test)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (LIBRE, {"q": [f"w{i}" for i in range(4 * PART)], "source": "en", "target": "zh"}),
        (OURS, {"texts": [f"w{i}" for i in range(4 * PART)], "plugin": "base", "project": "1"}),
        (DEEPL, {"text": [f"w{i}" for i in range(4 * PART)], "target_lang": "ZH"}),
    ],
)
def test_the_rest_is_not_translated_for_a_client_that_has_gone(store: Store, tmp_path: Path, path: str, body: Any) -> None:
    studio = Studio(tmp_path)

    async def test() -> None:
        gone = asyncio.Event()
        task = asyncio.create_task(studio.ask(path, body, gone))
        await until(lambda: studio.batcher.entered.acquire(blocking=False))
        assert anyio.to_thread.current_default_thread_limiter().borrowed_tokens == 0, "it has a thread of its own"
        gone.set()
        ticket = studio.batcher._waiting[0].ticket
        await until(ticket._left.is_set)
        studio.batcher.go.release(100)
        status, _, answer = await task
        assert status == 409
        assert "has disconnected" in str(answer)
        assert len(studio.batcher.seen) == 1, "the batch that was at work"
        assert not studio.batcher._backlog

    running(test)


def test_a_request_has_its_time(store: Store, tmp_path: Path) -> None:
    studio = Studio(tmp_path, translation_seconds=1e-6)

    async def test() -> None:
        status, _, answer = await studio.ask(OURS, {"texts": ["Hello."], "project": "1", "plugin": "base"})
        assert status == 504
        assert answer["error"]["code"] == "too_slow"
        assert "translation_seconds" in answer["error"]["message"]
        assert not studio.batcher.seen

    running(test)


def test_beyond_the_bound_a_client_is_asked_to_come_again_and_others_come_in(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.api.deps.OWN_REQUESTS", 3)
    studio = Studio(tmp_path)
    secrets = [store.tokens.create(name, ("translate",))[1] for name in ("Ann", "Ben")]
    small = {"q": "w", "source": "en", "target": "zh"}

    async def test() -> None:
        many = [asyncio.create_task(studio.ask(LIBRE, small | {"q": f"m{i}"}, token=secrets[0])) for i in range(OWN_THREADS + 3)]
        line = studio.deps._own_threads
        await until(lambda: any(limiter.statistics().tasks_waiting == 3 for limiter in line.values()))
        for path, body in (
            (LIBRE, small),
            (OURS, {"texts": ["w"], "project": "1", "plugin": "base"}),
            (DEEPL, {"text": ["w"], "target_lang": "ZH"}),
        ):
            status, headers, answer = await studio.ask(path, body, token=secrets[0])
            assert (status, headers["retry-after"]) == (503, RETRY_AFTER)
            assert "Try again" in str(answer)
        other = asyncio.create_task(studio.ask(LIBRE, small, token=secrets[1]))
        await until(lambda: len(studio.batcher._backlog) == 2)
        studio.batcher.go.release(2)
        assert (await other)[0] == 200, "after the batch that was at work"
        studio.batcher.go.release(1000)
        assert {(await task)[0] for task in many} == {200}

    running(test)


def test_health_is_told_without_any_thread(store: Store, tmp_path: Path) -> None:
    import httpx

    app = FastAPI()
    add_health_routes(app, Service(Settings(home=str(tmp_path))))

    async def test() -> None:
        limiter = anyio.to_thread.current_default_thread_limiter()
        for _ in range(int(limiter.total_tokens)):
            await limiter.acquire_on_behalf_of(object())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            assert (await client.get("/healthz")).text == "ok\n"

    running(test)


def test_one_text_has_a_bound(store: Store, tmp_path: Path) -> None:
    studio = Studio(tmp_path)

    async def test() -> None:
        for path, body in (
            (LIBRE, {"q": "w" * (MOST_TEXT + 1), "target": "zh"}),
            (DEEPL, {"text": ["w" * (MOST_TEXT + 1)], "target_lang": "ZH"}),
        ):
            status, _, answer = await studio.ask(path, body)
            assert status == 413
            assert "200,000 characters" in str(answer)

    running(test)
