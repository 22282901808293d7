"""What the server keeps of open pages: nothing that was not changed, and of a bounded number of them."""

from __future__ import annotations

import gradio as gr
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gradio.routes import App

from studio.components.gradio_sessions import SESSIONS, keep_sessions_small


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
    return next(one for route in app.routes if isinstance(one := getattr(route, "app", None), App))


def greet(client: TestClient, session: str, name: str) -> str:
    body = {"data": [name], "fn_index": 0, "session_hash": session}
    answer = client.post("/gradio_api/run/predict", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["data"][0]["value"])


def test_a_session_describes_only_what_an_event_touched(app: FastAPI) -> None:
    with TestClient(app) as client:
        assert greet(client, "one", "Ann") == "Hello Ann"
        assert greet(client, "two", "Bo") == "Hello Bo"
    sessions = mounted(app).state_holder.session_data
    for session, name in (("one", "Ann"), ("two", "Bo")):
        described = sessions[session].config_values.values()
        assert [one["props"]["value"] for one in described] == [name, f"Hello {name}"]


def test_pages_that_were_left_give_way(app: FastAPI) -> None:
    holder = mounted(app).state_holder
    for number in range(SESSIONS + 10):
        assert holder[f"page {number}"] is not None
    assert len(holder.session_data) == SESSIONS
    assert "page 0" not in holder
    assert f"page {SESSIONS + 9}" in holder
