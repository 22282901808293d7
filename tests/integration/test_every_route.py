"""Values that are none, in every part of every request of the REST interface: an answer in the four hundreds, never a fault."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from engine.core.settings import Settings
from engine.store import Store
from studio.api import create_api
from studio.api.account_routes import add_door_routes
from studio.api.dispatch import is_api
from studio.api.downloads import add_download_routes
from studio.api.errors import shaped
from studio.api.rater_page import add_rater_routes
from studio.app import create_app
from studio.auth.gateway import Gateway
from studio.auth.wellformed import MOST_VALUES
from studio.services.service import Service
from tests.fuzzing.targets import TARGETS
from tests.unit.studio.test_gateway import HOST, PASSWORD, signed

HOSTILE = ("\u00b2", "99999999999999999999", "-1", "1e400", "\u0663", "a\u202eb", "1" * 5000, "0x10", "%00", "%ED%A0%80")
SECONDS = 3.0  # of the processor that one request of a few bytes to 8 MB may take
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
            for inner in ("\ud800", 10**30):
                content = json.dumps({**body, name: {"a": [inner]}})
                yield path, {**head, "content": content, "headers": {"Content-Type": "application/json"}}


def operations() -> list[dict[str, Any]]:
    wishes = [json.loads(seed) for seed in TARGETS["rest"].seeds]
    return [wish for wish in wishes if "/events" not in wish["path"] and wish["method"] != "DELETE"]


def test_no_value_makes_a_fault_on_any_route(api: TestClient) -> None:
    faults, count = [], 0
    for wish in operations():
        for path, options in attacks(wish):
            answer = api.request(wish["method"], path, **options)
            count += 1
            if answer.status_code >= 500:
                faults.append((wish["method"], path[:120], str(options.get("content"))[:200], answer.text[:200]))
    assert not faults, (len(faults), faults[:12])
    assert count > 1000


def test_a_method_that_an_address_does_not_take_is_refused_in_a_sentence_of_json(tmp_path: Path) -> None:
    app = create_app(Settings(home=str(tmp_path), device="cpu"))
    studio = TestClient(app, base_url=HOST, client=("127.0.0.1", 5000), raise_server_exceptions=False)
    routes = {path: set(verbs) for path, verbs in studio.get("/api/v1/openapi.json").json()["paths"].items()}
    routes |= {path: {"get"} for path in ("/api/v1/openapi.json", "/api/v1/docs")}
    for route in app.routes:
        if isinstance(route, APIRoute):
            routes.setdefault(route.path, set()).update(verb.lower() for verb in route.methods)
    assert {"/healthz", "/metrics", "/download/plugins/{number}", "/translate", "/v2/usage"} <= set(routes)
    for path, taken in routes.items():
        address = re.sub(r"\{[^}]+\}", "1", path)
        patterns = {re.sub(r"\{[^}]+\}", "[^/]+", other): verbs for other, verbs in routes.items()}
        fitting = [verbs for pattern, verbs in patterns.items() if re.fullmatch(pattern, address)]
        if "get" in taken and path != "/translate":  # which is a page too
            head, got = studio.head(address), studio.get(address)
            assert (head.status_code, head.content) == (got.status_code, b""), path
        for verb in {"options", "put", "delete", "patch", "post", "trace"}.difference(*fitting):
            answer = studio.request(verb.upper(), address)
            if path.startswith(("/v2/", "/v3/", "/cat/")) and answer.status_code in (200, 404):
                continue  # what DeepL's own clients post
            assert answer.status_code == 405, (verb, path, answer.text)
            allow = answer.headers["Allow"].lower().split(", ")
            assert taken <= set(allow), (verb, path)
            assert verb not in allow, (verb, path)
            error = answer.json().get("error") or answer.json()["message"]
            assert (error["message"] if isinstance(error, dict) else error).endswith("."), path


def large_bodies(body: dict[str, Any]) -> Iterator[bytes]:
    """The most names and values that are taken, of a wrong type in each field, and more; then one text of the largest size."""
    most = range(MOST_VALUES - 200)
    yield json.dumps({f"{number}": 1 for number in most}).encode()
    yield json.dumps(dict.fromkeys(body, [1] * (len(most) // max(1, len(body))))).encode()
    yield b'{"x":[' + b"1," * 3_900_000 + b"1]}"
    yield json.dumps({name: "a1" * 3_900_000 if isinstance(value, str) else value for name, value in body.items()}).encode()


def test_no_body_takes_long_on_any_route(api: TestClient) -> None:
    slow, shapes = [], set[str]()
    for wish in operations():
        body = wish.get("json")
        if not isinstance(body, dict) or (shape := f"{wish['path']} {sorted(body)}") in shapes:
            continue
        shapes.add(shape)
        for content in large_bodies(body):
            began = time.process_time()
            answer = api.request(wish["method"], wish["path"], content=content, headers={"Content-Type": "application/json"})
            took = time.process_time() - began
            if took > SECONDS or answer.status_code >= 500:
                slow.append((round(took, 1), answer.status_code, wish["path"], content[:60]))
    assert not slow
    assert len(shapes) > 10


def test_forms_are_decoded_beside_the_loop_and_have_few_fields(api: TestClient) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for path in ("/translate", "/v2/translate", "/detect"):
        for body in ("&".join(f"a{number}=1" for number in range(3_000)), "&" * 100_000):
            assert api.post(path, content=body, headers=headers).json() in (
                {"error": "The form cannot be read."},
                {"message": "The form cannot be read."},
            )
    for text, status in (("", 200), ("%ED%A0%80", 400), ("%E9", 400)):
        answer = api.post("/detect", content=f"q=%41+caf%C3%A9+{text}+caf\u00e9".encode(), headers=headers)
        assert answer.status_code == status, text


PART = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
FILE = b'--b\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\nRain.\n\r\n--b--\r\n'


@pytest.mark.parametrize(
    ("path", "field", "file"),
    [
        ("/api/v1/projects/1/samples", b"labels", b"files"),
        ("/api/v1/projects/1/documents", b"plugin", b"file"),
        ("/api/v1/projects/1/comparisons/files", b"title", b"files"),
        ("/v2/document", b"target_lang", b"file"),
    ],
)
def test_texts_beside_files_are_utf_8(api: TestClient, path: str, field: bytes, file: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    good, bad = (PART % (field, "caf\u00e9".encode(code)) for code in ("utf-8", "latin-1"))
    for body in (
        bad + FILE % (file, b"a.txt"),
        PART % (b"caf\xe9", b"") + FILE % (file, b"a.txt"),
        good + FILE % (file, b"\xb2\xe2\xca\xd4.txt"),
    ):
        answer = api.post(path, content=body, headers=headers)
        assert answer.status_code == 400
        assert "bytes that are not UTF-8. Send UTF-8." in answer.text
    declared = api.post(
        path, content=bad + FILE % (file, b"a.txt"), headers={"Content-Type": f"{headers['Content-Type']}; charset=latin-1"}
    )
    assert "UTF-8" not in declared.text, "it is what it is said to be"


def numbers(part: Any, schemas: dict[str, Any], where: str, above: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every number that a schema takes, and where."""
    if isinstance(part, list):
        for inner in part:
            yield from numbers(inner, schemas, where, above)
    elif isinstance(part, dict):
        name = part.get("$ref", "").rpartition("/")[2]
        if name and name not in above:
            yield from numbers(schemas[name], schemas, f"{where}.{name}", (*above, name))
        if part.get("type") in ("integer", "number"):
            yield where, part
        for key in ("anyOf", "oneOf", "allOf", "items", "additionalProperties"):
            yield from numbers(part.get(key), schemas, where, above)
        for key, inner in part.get("properties", {}).items():
            yield from numbers(inner, schemas, f"{where}.{key}", above)


def test_every_number_of_every_request_is_bounded(api: TestClient) -> None:
    spec = api.get("/api/v1/openapi.json").json()
    schemas = spec["components"]["schemas"]
    taken: list[tuple[str, dict[str, Any]]] = []
    for path, verbs in spec["paths"].items():
        for verb, operation in verbs.items():
            inputs = [(parameter["name"], parameter["schema"]) for parameter in operation.get("parameters", [])]
            inputs += [("body", content["schema"]) for content in operation.get("requestBody", {}).get("content", {}).values()]
            for name, schema in inputs:
                taken += numbers(schema, schemas, f"{verb} {path} {name}")
    ends = (("minimum", "exclusiveMinimum", "enum", "const"), ("maximum", "exclusiveMaximum", "enum", "const"))
    assert len(taken) > 50
    assert [where for where, schema in taken if not all(any(key in schema for key in keys) for keys in ends)] == []


@pytest.mark.parametrize("sign_in", ["auto", "on"])
def test_no_number_in_an_address_of_a_page_makes_a_fault(tmp_path: Path, sign_in: str) -> None:
    service = Service(Settings(home=str(tmp_path), device="cpu", sign_in=sign_in))
    Store(service.settings.store_url).accounts.create("Ada", PASSWORD, "admin")
    app = FastAPI()
    app.add_middleware(
        Gateway, settings=service.settings, store=service.store, uploads=tmp_path, is_api=is_api, error_response=shaped
    )
    for add in (add_door_routes, add_download_routes, add_rater_routes):
        add(app, service)
    client = TestClient(
        app, base_url=HOST, client=("127.0.0.1", 5000), follow_redirects=False, headers={"Origin": HOST},
        raise_server_exceptions=False,
    )  # fmt: skip
    if sign_in == "on":
        signed(client, "Ada")
    form = {"role": "member", "name": "Bo", "password": PASSWORD, "active": "yes", "now": PASSWORD}
    faults, count = [], 0
    for route in app.routes:
        if not isinstance(route, APIRoute):
            continue
        for value in (*HOSTILE, "999999999999"):
            path = re.sub(r"\{\w+\}", value if value.startswith("%") else quote(value), route.path)
            for verb in route.methods or ():
                options: dict[str, Any] = {} if verb == "GET" else {"data": {**form, "user": value, "code": value, "quota": value}}
                bodies = [options, {"json": {"item": 10**30, "question": "x", "side": "left"}}] if "rating" in path else [options]
                for body in bodies:
                    count += 1
                    if client.request(verb, path, **body).status_code >= 500:
                        faults.append((verb, path[:80]))
    assert not faults
    assert count > 50
