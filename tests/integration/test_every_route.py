"""Values that are none, in every part of every request of the REST interface: an answer in the four hundreds, never a fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from engine.core.settings import Settings
from studio.api import create_api
from studio.services.service import Service
from tests.fuzzing.targets import TARGETS
from tests.unit.studio.test_gateway import HOST

HOSTILE = (
    "\u00b2",
    "99999999999999999999",
    "-1",
    "1e400",
    "\u0663",
    "a\u202eb",
    "1" * 5000,
    "0x10",
    "%00",
    "%ED%A0%80",
)
BODIES: tuple[Any, ...] = (*HOSTILE[:8], "\ud800", "\0", 10**30, -(10**30), 1e308, 1.5, True, [], {}, None)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    home = tmp_path_factory.mktemp("home")
    service = Service(Settings(home=str(home), device="cpu", server_paths="off"))
    project = service.store.projects.create("Rain", "en", "zh", str(home / "no-base"))
    service.store.jobs.cancel(service.store.jobs.enqueue("prepare", {}, project_id=project.id).id)
    return TestClient(create_api(service), base_url=HOST, client=("127.0.0.1", 5000), raise_server_exceptions=False)


def attacks(wish: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The request with each part of its address, each parameter and each field of its body replaced in turn."""
    path, query = wish["path"], wish.get("query", {})
    head = {"params": query}
    parts = path.split("/")
    for index, part in enumerate(parts):
        if part == "1" or "." in part:
            for value in HOSTILE:
                text = value if value.startswith("%") else quote(value)
                yield "/".join([*parts[:index], text, *parts[index + 1 :]]), head
    for name in query:
        for value in HOSTILE:
            text = f"{name}={value}" if value.startswith("%") else f"{name}={quote(value)}"
            yield f"{path}?{text}", {}
            yield f"{path}?{text}&{text}", {}
    body = wish.get("json")
    if isinstance(body, dict):
        for name in body:
            for value in BODIES:
                content = json.dumps({**body, name: value})
                yield path, {**head, "content": content, "headers": {"Content-Type": "application/json"}}
            # Deeper too: what a field of any shape holds goes into the store as it is.
            for value in ("\ud800", 10**30):
                content = json.dumps({**body, name: {"a": [value]}})
                yield path, {**head, "content": content, "headers": {"Content-Type": "application/json"}}


def operations() -> list[dict[str, Any]]:
    wishes = [json.loads(one) for one in TARGETS["rest"].seeds]
    return [wish for wish in wishes if "/events" not in wish["path"] and wish["method"] != "DELETE"]


def test_no_value_makes_a_fault_on_any_route(api: TestClient) -> None:
    faults, count = [], 0
    for wish in operations():
        for path, given in attacks(wish):
            answer = api.request(wish["method"], path, **given)
            count += 1
            if answer.status_code >= 500:
                faults.append((wish["method"], path[:120], str(given.get("content"))[:200], answer.text[:200]))
    assert not faults, (len(faults), faults[:12])
    assert count > 1000
