"""Requests that can be read in two ways, and values that are none: refused before any guard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from engine.core.numerals import whole_number
from engine.core.settings import Settings
from engine.store import Store
from studio.api import create_api
from studio.api.form_fields import lists_of, takes_form
from studio.auth.wellformed import MOST_VALUES, json_refusal, refusal
from studio.services.service import Service
from tests.bases import EN_ZH
from tests.unit.studio.test_gateway import door, signed, store

__all__ = ["store"]

EVENT = {"session_hash": "mine", "data": [], "fn_index": 0}


def test_a_parameter_that_occurs_twice_is_refused_before_any_guard(tmp_path: Path, store: Store) -> None:
    ann = signed(door(tmp_path))
    for query in (
        "session_hash=mine&session_hash=theirs",
        "session_hash=&session_hash=theirs",
        "session_hash&session_hash=theirs",
        "session%5Fhash=mine&session_hash=theirs",
        "a=1&b=2&a=1",
    ):
        for path in ("/gradio_api/queue/data", "/", "/api/v1/projects"):
            answer = ann.get(f"{path}?{query}")
            assert answer.status_code == 400, (path, query)
            assert "more than once" in answer.text
    assert ann.get("/api/v1/projects?a=1&a=2").json()["error"]["code"] == "repeated"
    assert ann.get("/?a=1&b=2").status_code == 200


def form_routes(app: Any, prefix: str = "") -> Iterator[tuple[str, APIRoute]]:
    """(path, route) of those of an application and of all routers that are included in it."""
    for route in app.routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            context = getattr(route, "include_context", None)
            yield from form_routes(inner, prefix + str(getattr(context, "prefix", "") or ""))
        elif isinstance(route, APIRoute) and takes_form(route):
            yield prefix + route.path, route


def fields_of(dependant: Any) -> Iterator[str]:
    yield from (field.alias for field in dependant.body_params)
    for inner in dependant.dependencies:
        yield from fields_of(inner)


def test_a_field_that_occurs_twice_is_refused_by_every_route_that_takes_a_form(tmp_path: Path, store: Store) -> None:
    ann = signed(door(tmp_path))
    api = create_api(Service(Settings(home=str(tmp_path / "api"), device="cpu")))
    api_client = TestClient(api, base_url="http://127.0.0.1", client=("127.0.0.1", 5000))
    seen = [(client, *form_route) for client, app in ((ann, ann.app), (api_client, api)) for form_route in form_routes(app)]
    assert len(seen) > 22
    for client, template, route in seen:
        path = re.sub(r"\{\w+\}", "1", template)
        lists = set(lists_of(route.dependant))
        for name in {*fields_of(route.dependant), "other"} - lists:
            twice = [(name, (None, "1")), (name, (None, "2"))]
            answer = client.post(path, files=twice)
            assert (answer.status_code, "more than once" in answer.text) == (400, True), (path, name, answer.text)
            if "file" not in fields_of(route.dependant) and client is ann:
                assert "more than once" in client.post(path, data={name: ["1", "2"]}).text
        for name in lists:
            answer = client.post(path, files=[(name, ("a.txt", b"a")), (name, ("b.txt", b"b"))])
            assert "more than once" not in answer.text, (path, name)


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization", "Cookie", "Content-Type", "Sec-Fetch-Site"])
def test_a_header_that_occurs_twice_is_refused(name: str) -> None:
    headers = [(name.lower().encode(), b"a"), (name.encode(), b"b")]
    assert refusal({"headers": headers, "path": "/", "query_string": b""}) is not None
    assert refusal({"headers": headers[:1], "path": "/", "query_string": b""}) is None


def test_an_event_is_read_as_its_handler_reads_it(tmp_path: Path, store: Store) -> None:
    ann = signed(door(tmp_path))
    path, plain = "/gradio_api/queue/join", json.dumps(EVENT)
    twice = '{"session_hash": "mine", "session_hash": "theirs"}'
    inner = '{"session_hash": "mine", "data": [{"path": "/a", "path": "/b"}]}'
    headers = {"Content-Type": "application/json"}
    # There is no Gradio behind this door: what comes through finds nothing, in JSON.
    assert ann.post(path, content=plain, headers=headers).json() == {"detail": "Not Found"}
    for body in (twice, inner):
        assert ann.post(path, content=body, headers=headers).status_code == 400
    for kind in ("multipart/form-data; boundary=x", "application/x-www-form-urlencoded"):
        answer = ann.post("/gradio_api/component_server", content=plain, headers={"Content-Type": kind})
        assert answer.text == "There is nothing here."


def test_whole_numbers_have_one_way_to_be_read() -> None:
    assert [whole_number(value) for value in ("0", "7", " 12 ", "007", 5)] == [0, 7, 12, 7, 5]
    for text in ("", None, "\u00b2", "\u0663", "+1", "-1", "1_0", "1.0", "1e3", "99999999999999999999", "9" * 10_000, True):
        assert whole_number(text) is None, text
    assert whole_number("2147483648") is None
    assert whole_number("0", 1) is None
    assert whole_number("0" * 5000 + "7") == 7


def test_json_is_read_in_one_way() -> None:
    assert json_refusal(b'{"a": 1, "b": {"a": 1}}') is None
    assert json_refusal(b'{"a": {"b": 1, "\\u0062": 2}}') is not None
    assert json_refusal(b'["\\ud83d\\ude00"]') is None, "a pair is a character"
    assert json_refusal('{"a": 1}'.encode("utf-16")) is not None, "half of a pair could not be seen in it"
    for half in (b'"\\ud83d"', b'{"\\uDE00": 1}', b'["\xed\xa0\x80"]'):
        assert json_refusal(half) is not None, half
    for nul in (b'"a\\u0000"', b'{"\\u0000": 1}', b'[{"a": ["\\u0000b"]}]'):
        assert json_refusal(nul) is not None, nul
    assert json_refusal(b'["\\\\u0000"]') is None, "a backslash and digits"


@pytest.mark.parametrize("text", ["%00", "%FF", "%E9%9B", "%ED%A0%80", "a%C0%80"])
def test_what_is_no_text_is_refused_in_queries_and_forms(tmp_path: Path, store: Store, text: str) -> None:
    client = TestClient(
        create_api(Service(Settings(home=str(tmp_path / "api"), device="cpu"))),
        base_url="http://127.0.0.1", client=("127.0.0.1", 5000),
    )  # fmt: skip
    url = {"Content-Type": "application/x-www-form-urlencoded"}
    parts = {"Content-Type": "multipart/form-data; boundary=b"}
    part = b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + unquote_to_bytes(text) + b"\r\n--b--\r\n"
    for answer in (
        client.get(f"/api/v1/projects?x={text}"),
        client.get(f"/translate?q={text}&target=zh"),
        client.get(f"/cat/{text}/languages"),
        client.post("/detect", content=f"q={text}", headers=url),
        client.post("/detect", content=f"q={text}".encode() + b"&r=\xff", headers=url),
        client.post("/detect", content=part, headers=parts),
        door(tmp_path).get(f"/sign-in?next={text}"),
        door(tmp_path).post("/sign-in", content=f"name=Ann&password={text}", headers=url),
    ):
        assert answer.status_code == 400, answer.request.url
        assert "no text" in answer.text
    assert client.post("/detect", content="q=%E9%9B%A8%EF%BF%BD&format=text", headers=url).status_code == 200


def test_a_nul_is_refused_in_json_and_in_fields_beside_files(tmp_path: Path, store: Store) -> None:
    store.projects.create("Rain", "en", "zh", str(EN_ZH))
    client = TestClient(
        create_api(Service(Settings(home=str(tmp_path), device="cpu"))), base_url="http://127.0.0.1", client=("127.0.0.1", 5000)
    )
    wish = {"name": "a\0b", "source": "en", "target": "zh"}
    pair = {"name": "x\0", "source_lang": "en", "target_lang": "zh", "entries": "rain\t雨"}
    paper = {"file": ("a.txt", b"Rain.\0\xff")}
    for answer in (
        client.post("/api/v1/projects", json=wish),
        client.patch("/api/v1/projects/1", json={"name": "\0"}),
        client.post("/v2/glossaries", json=pair),
        client.post("/detect", json={"q": "\0"}),
        client.post("/api/v1/projects/1/documents", data={"plugin": "\0"}, files=paper),
    ):
        assert answer.status_code == 400, answer.request.url
        assert "no text" in answer.text
    assert client.get("/api/v1/projects/1").json()["name"] == "Rain"


@pytest.mark.parametrize("body", ['["",{}]', '{{"a": 1,{}}}', '["\\\\",{}]', '["\\"",{}]', "[[],{}]", '{{"a": "b",{}}}'])
@pytest.mark.parametrize("value", ["1", '""', "[]", '{"a":1}'])
def test_a_body_of_more_values_than_any_request_has_is_refused_unread(body: str, value: str) -> None:
    def filled(count: int) -> bytes:
        values = [f'"{number}": {value}' if body[0] == "{" else value for number in range(count)]
        return body.format(",".join(values)).encode()

    assert json_refusal(filled(MOST_VALUES - 10)) is None
    why = json_refusal(filled(MOST_VALUES + 1))
    assert why is not None
    assert why[:2] == (413, "too_many")


def test_commas_of_a_text_are_no_values() -> None:
    for text in ("a, " * MOST_VALUES, '\\", ' * MOST_VALUES, '",' * MOST_VALUES, "\\," * MOST_VALUES):
        assert json_refusal(json.dumps({"text": [text, text]}).encode()) is None


def test_an_event_of_many_values_is_refused_where_nobody_signs_in_too(tmp_path: Path, store: Store) -> None:
    many = json.dumps({"data": [1] * (MOST_VALUES + 1)})
    headers = {"Content-Type": "application/json"}
    for client in (signed(door(tmp_path)), door(tmp_path, sign_in="off")):
        assert client.post("/gradio_api/queue/join", content=many, headers=headers).status_code == 413
