"""Pages without Gradio: their policy names one style and one script by their hashes, and others' texts are neither."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

from fastapi import FastAPI
from starlette.testclient import TestClient

from engine.core.settings import Settings
from studio.api.openapi_page import page_of
from studio.api.rater_page import add_rater_routes
from studio.services.service import Service

EVIL = "</script><script>alert(1)</script><style>p { color: red }</style>"


def check_policy(text: str, policy: str, *, script: bool) -> None:
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    hashes = re.findall(r"'sha256-([^']+)'", policy)
    styles, scripts = (re.findall(r"<style>(.*?)</style>", text, re.DOTALL), re.findall(r"<script>(.*?)</script>", text, re.DOTALL))
    assert [base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for block in [*styles, *scripts]] == hashes
    assert (len(styles), len(scripts)) == (1, int(script))
    for sign in (" style=", " onclick=", "alert(1)</script>"):
        assert sign not in text


def test_a_raters_page(tmp_path: Path) -> None:
    service = Service(Settings(home=str(tmp_path)))
    project = service.store.projects.create("P", "en", "zh", "base")
    rating = service.store.ratings.create(
        project.id, "R", one="base", two="plugin", source="en", target="zh", seed=1, about={"examples": [EVIL]},
        items=[{"source": EVIL, "one": "a", "two": "b"}],
    )  # fmt: skip
    app = FastAPI()
    add_rater_routes(app, service)
    token = service.store.ratings.add_rater(rating.id, "Ann").token
    answer = TestClient(app).get(f"/rating/{token}")
    assert answer.status_code == 200
    check_policy(answer.text, answer.headers["content-security-policy"], script=True)
    data = re.search(r'<script type="application/json" id="about">(.*?)</script>', answer.text, re.DOTALL)
    assert data
    assert json.loads(data[1])["examples"] == [EVIL]


def test_the_page_of_the_rest_interface() -> None:
    operation = {"summary": "x", "description": EVIL, "parameters": [{"name": EVIL, "in": "query", "schema": {"type": "string"}}]}
    answer = page_of({"info": {"version": "1", "description": EVIL}, "paths": {"/x": {"get": operation}}})
    check_policy(bytes(answer.body).decode(), answer.headers["content-security-policy"], script=False)
