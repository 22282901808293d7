"""Events of pages that read files, however slow and many they are, leave threads to those that are quick."""

from __future__ import annotations

import inspect
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from gradio.routes import App

from studio.app import create_app
from studio.components import layout
from studio.components.layout import HEAVY

THREADS = 40  # of anyio, and so of Gradio


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, dict[int, Any]]]:
    """The studio, and Gradio's events by their numbers."""
    from engine.core.settings import Settings

    app = create_app(Settings(home=str(tmp_path_factory.mktemp("home")), device="cpu"))
    mounted = next(inner_app for route in app.routes if isinstance(inner_app := getattr(route, "app", None), App))
    with TestClient(app, base_url="http://127.0.0.1:7860") as client:
        yield client, mounted.get_blocks().fns


def send(client: TestClient, number: int, event: Any, session: str) -> None:
    body = {"data": [None] * len(event.inputs), "fn_index": number, "session_hash": session, "event_data": {}}
    answer = client.post("/gradio_api/queue/join", json=body)
    assert answer.status_code == 200, answer.text


def test_a_page_carries_no_style_sheet_and_links_the_one_that_is_served(studio: tuple[TestClient, dict[int, Any]]) -> None:
    client, _ = studio
    page = client.get("/train", headers={"Accept": "text/html"}).text
    (address,) = re.findall(r'<link rel="stylesheet" href="(/tm/[^"]+)">', page)
    assert client.get(address).headers["content-type"].startswith("text/css")
    (config,) = re.findall(r"window\.gradio_config = (\{.*?\});</script>", page, re.DOTALL)
    assert not json.loads(config)["css"]


def test_what_reads_files_is_bounded(studio: tuple[TestClient, dict[int, Any]]) -> None:
    _, events = studio
    uploads = [event for event in events.values() if any(name == "upload" for _, name in event.targets)]
    assert len(uploads) > 5
    assert not [upload.name for upload in uploads if upload.concurrency_limit == "default"]
    # Each group counts once, at its own limit: all of them together leave threads for what has none.
    limits = {event.concurrency_id: event.concurrency_limit for event in events.values() if event.fn}
    named = {key: limit for key, limit in limits.items() if limit != "default"}
    assert sum(named.values()) <= THREADS - 8, Counter(named.values())


# What begins work, or removes what is open: once is enough. On Train, what is on the form is read again after each answer.
ONCE = {
    "BasesPage.look_up", "CatToolsPage.create", "CompareJobs.act", "ComparePage.remove", "HomePage.start",
    "MoreFilesForm.add_samples",
    "NewProjectForm.create_from_samples", "PhraseDecisions.back_translate_one", "PluginsPage.save_blend", "RunsPanel.look_again",
    "RunsPanel.start_knn", "SamplesPage.read_again", "TrainPage.choose_method",
}  # fmt: skip


def test_no_click_is_forgotten_while_another_is_answered(studio: tuple[TestClient, dict[int, Any]]) -> None:
    _, events = studio
    once_events = [(event, event.fn.__qualname__) for event in events.values() if event.fn and event.trigger_mode == "once"]
    usual = {"load", "click", "tick", "change", "input", "upload", "submit", "then", "release"}
    assert {name for event, name in once_events if not {what for _, what in event.targets} <= usual} == ONCE


def test_a_page_is_answered_while_files_are_read(
    studio: tuple[TestClient, dict[int, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, events = studio
    go, entered = threading.Event(), threading.Semaphore(0)

    def slow(*_: Any) -> None:
        entered.release()
        go.wait(120)

    heavy = {number: event for number, event in events.items() if event.concurrency_id == HEAVY["concurrency_id"]}
    assert len(heavy) > 8
    page, fill = next((number, event) for number, event in events.items() if any(name == "load" for _, name in event.targets))
    try:
        for number, event in heavy.items():
            monkeypatch.setattr(event, "fn", slow)
            for _ in range(8):
                send(client, number, event, "slow")
        for _ in range(HEAVY["concurrency_limit"]):
            assert entered.acquire(timeout=300)
        send(client, page, fill, "quick")
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(client.get, "/gradio_api/queue/data", params={"session_hash": "quick"})
            try:
                assert '"success":true' in future.result(timeout=300).text
            finally:
                go.set()
        assert not entered.acquire(blocking=False) or go.is_set()
    finally:
        go.set()


def slot_of(guarded: Any) -> Any:
    return inspect.getclosurevars(guarded).nonlocals["slot"]


def test_one_client_has_half_of_the_events_that_read_files(
    studio: tuple[TestClient, dict[int, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, events = studio
    heavy = [event for event in events.values() if event.concurrency_id == HEAVY["concurrency_id"]]
    unbounded = [event.name for event in heavy if not inspect.getclosurevars(slot_of(event.fn)).nonlocals["heavy"]]
    assert not unbounded
    go, entered, messages, client = threading.Event(), threading.Semaphore(0), [], "ann"

    def own() -> bool:
        """Whether this thread is the test's: what earlier tests asked the studio for may still be at work in others."""
        return threading.current_thread().name.startswith(("MainThread", "ann"))

    monkeypatch.setattr(layout, "client_of", lambda _: client if own() else "others")
    monkeypatch.setattr(layout, "_toast", lambda error: messages.append(str(error)) if own() else None)

    def read() -> str:
        entered.release()
        go.wait(120)
        return "read"

    guarded, half = layout.handle_errors(read, heavy=True), HEAVY["concurrency_limit"] // 2
    with ThreadPoolExecutor(half, thread_name_prefix="ann") as pool:
        futures = [pool.submit(guarded) for _ in range(half)]
        try:
            assert all(entered.acquire(timeout=300) for _ in range(half))
            guarded()
            assert messages == [f"{half} of your files are already being read or written. Wait until one is done, then try again."]
            client = "ben"
            with layout.OWN.slot(client):
                pass
        finally:
            go.set()
        assert {future.result() for future in futures} == {"read"}
    client = "ann"
    assert guarded() == "read", "the places are given back"
