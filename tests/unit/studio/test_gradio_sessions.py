"""What the server keeps of open pages: nothing that was not changed, and of a bounded number of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gradio import route_utils
from gradio.routes import App
from starlette.requests import ClientDisconnect, Request

from studio.components.gradio_sessions import SESSIONS, EndedStreams, keep_no_statistics, keep_sessions_small


@pytest.fixture
def app() -> FastAPI:
    with gr.Blocks(analytics_enabled=False) as demo:
        name, greeting = gr.Textbox(label="Name"), gr.Textbox(label="Greeting")
        gr.Textbox("What no event touches.")
        name.submit(lambda text: gr.update(value=f"Hello {text}", visible=True), name, greeting, queue=False)
    app = FastAPI()
    gr.mount_gradio_app(app, demo, path="/")
    keep_sessions_small(app)
    return app


def mounted(app: FastAPI) -> App:
    return next(inner_app for route in app.routes if isinstance(inner_app := getattr(route, "app", None), App))


def greet(client: TestClient, session: str, name: str) -> str:
    body = {"data": [name], "fn_index": 0, "session_hash": session}
    answer = client.post("/gradio_api/run/predict", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["data"][0]["value"])


def test_a_session_answers_without_describing_what_events_touch(app: FastAPI) -> None:
    with TestClient(app) as client:
        assert greet(client, "one", "Ann") == "Hello Ann"
        assert greet(client, "two", "Bo") == "Hello Bo"
        assert greet(client, "one", "Cy") == "Hello Cy"
    sessions = mounted(app).state_holder.session_data
    assert [list(sessions[name].components) for name in ("one", "two")] == [[], []]


def test_pages_that_were_left_give_way(app: FastAPI) -> None:
    holder = mounted(app).state_holder
    for number in range(SESSIONS + 10):
        assert holder[f"page {number}"] is not None
    assert len(holder.session_data) == SESSIONS
    assert "page 0" not in holder
    assert f"page {SESSIONS + 9}" in holder


def test_the_events_of_a_page_that_was_left_end_without_an_error(app: FastAPI) -> None:
    app.add_middleware(EndedStreams)
    with TestClient(app) as client:
        answer = client.get("/gradio_api/queue/data", params={"session_hash": "left"})
        assert answer.status_code == 200
        assert '"session_not_found":true' in answer.text


HEAD = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'


@pytest.mark.parametrize("end", [b"", b"\r\n--b--\r\n"])
def test_of_an_upload_that_broke_off_nothing_is_left(app: FastAPI, tmp_path: Path, end: bytes) -> None:
    came: list[int] = []

    async def receive() -> dict[str, Any]:
        came.append(len(list(tmp_path.rglob("*.*")) + list(tmp_path.rglob("tmp*"))))
        if len(came) == 4 and not end:  # the browser is closed
            return {"type": "http.disconnect"}
        part = HEAD if len(came) == 1 else b"x" * 70_000 if len(came) < 5 else end
        return {"type": "http.request", "body": part, "more_body": len(came) < 5}

    headers = [(b"content-type", b"multipart/form-data; boundary=b")]
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)
    upload = route_utils.upload_fn(request, str(tmp_path), 1e9, None)
    if end:
        assert len(asyncio.run(upload)[0]) == 1
        return
    with pytest.raises(ClientDisconnect):
        asyncio.run(upload)
    assert came[-1] > 0, "something had come"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_event_does_not_sum_up_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRADIO_ANALYTICS_MAX_EVENTS", "GRADIO_ANALYTICS_CACHE_FREQUENCY"):
        monkeypatch.setenv(name, "")  # so that it is as before afterwards
        monkeypatch.delenv(name)
    keep_no_statistics()
    summed_up: list[int] = []
    monkeypatch.setattr("gradio.queueing.Queue._get_df", staticmethod(lambda records: summed_up.append(len(records))))
    with gr.Blocks(analytics_enabled=False) as demo:
        name = gr.Textbox(label="Name")
        name.submit(lambda text: text, name, name)
    app = FastAPI()
    gr.mount_gradio_app(app, demo, path="/")
    with TestClient(app) as client:
        for number in range(3):
            body = {"data": ["Ann"], "fn_index": 0, "session_hash": f"page {number}"}
            assert client.post("/gradio_api/queue/join", json=body).status_code == 200
            assert '"success":true' in client.get("/gradio_api/queue/data", params={"session_hash": f"page {number}"}).text
    assert summed_up == []
    assert len(demo._queue.event_analytics) == 1
