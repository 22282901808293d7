"""Somebody who does not belong to a project reaches nothing of it, by no address of the server and by no event of a page.

Every route that the application has is asked, and every event of every page is sent, with the numbers, names and paths of
somebody else's project. A route that is added is asked too.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.core.actor import Actor, act_as
from engine.core.settings import Settings
from engine.store import Store
from tests.bases import EN_ZH

pytestmark = pytest.mark.slow

WORD = "zebrafinch7391"  # in every text and name of Ann's
TEXT = f"The {WORD} sings."
PASSWORD = "a long enough password"
PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


@dataclass
class World:
    """A studio with Ann's project 1, and who asks it."""

    url: str
    app: Any
    settings: Settings
    store: Store
    rater: str
    plugin: Path
    sessions: dict[str, dict[str, str]] = field(default_factory=dict)

    def browser(self, name: str) -> httpx.Client:
        """A browser in which this account is signed in; nobody for no name."""
        if name and name not in self.sessions:
            with httpx.Client(base_url=self.url, headers={"Origin": self.url}) as client:
                text = client.post("/sign-in", data={"name": name, "password": PASSWORD})
                assert text.status_code == 303, text.text
                self.sessions[name] = dict(client.cookies)
        return httpx.Client(base_url=self.url, cookies=self.sessions.get(name), headers={"Origin": self.url}, timeout=120)

    def files(self) -> dict[str, str]:
        """The project's files, to see that none changes."""
        root = self.settings.home_dir / "projects"
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in root.rglob("*") if path.is_file()}

    def rows(self) -> dict[str, Any]:
        """What there is of Ann's."""
        store = self.store
        return {
            "projects": store.projects.list(), "jobs": store.jobs.list(), "plugins": store.plugins.list(),
            "comparisons": store.comparisons.list(), "sheets": list(store.sheets.lines(1)), "tags": store.tags.of(1),
            "ratings": store.ratings.list(), "raters": store.ratings.raters(1), "members": store.members.list(1),
            "default": store.defaults.chosen(1), "tokens": [row.revoked for row in store.tokens.list(revoked=True)],
        }  # fmt: skip


def free_port() -> int:
    import socket

    with socket.socket() as result:
        result.bind(("127.0.0.1", 0))
        return int(result.getsockname()[1])


def furnish(store: Store, settings: Settings) -> tuple[str, Path]:
    """A project of Ann's with something of every kind; returns its rater's link and its bundle."""
    project = store.projects.create(f"{WORD} project", "en", "zh", str(EN_ZH))
    folder = settings.home_dir / "projects" / str(project.id)
    for name in ("samples", "tests", "plugins", "documents/0011223344556677"):
        (folder / name).mkdir(parents=True)
    for name in ("samples/a.txt", "tests/t.txt", "documents/0011223344556677/source.txt"):
        (folder / name).write_text(TEXT, encoding="utf-8")
    line = json.dumps({"text": TEXT, "source": TEXT, "file": f"{WORD}.txt", "line": 1, "length": 3, "count": 2, "label": "NP"})
    for name in ("corpus.jsonl", "phrases.jsonl"):
        (folder / name).write_text(line + "\n", encoding="utf-8")
    (folder / "import_report.json").write_text(json.dumps({"kept": 1, "files": [{"name": f"{WORD}.txt"}]}), "utf-8")
    (folder / "phrases.map.json.gz").write_bytes(gzip.compress(json.dumps({"phrases": [TEXT]}).encode()))
    corpus = store.corpora.create(project.id, WORD, folder=str(folder))
    store.corpora.update(corpus.id, state="ready", kept=1)
    store.phrase_sets.create(corpus.id, str(folder / "phrases.jsonl"), WORD, 1)
    job = store.jobs.enqueue("customize", {"note": TEXT}, project_id=project.id)
    (settings.home_dir / "jobs").mkdir()
    (settings.home_dir / "jobs" / f"{job.id}.log").write_text(TEXT, encoding="utf-8")
    paper = folder / "documents/0011223344556677"
    document = store.jobs.enqueue(
        "translate",
        {"document": str(paper / "source.txt"), "name": f"{WORD}.txt", "plugin_id": None, "plugin": "", "strength": 1.0,
         "options": {}}, project_id=project.id,
    )  # fmt: skip
    (paper / "translated.txt").write_text(TEXT, encoding="utf-8")
    with store.write() as session:
        from sqlalchemy import update

        from engine.store import tables

        log = str(settings.home_dir / "jobs" / f"{job.id}.log")
        done = {"state": "succeeded", "log_path": log, "result": {"output": str(paper / "translated.txt"), "document": {}}}
        session.execute(update(tables.Job).where(tables.Job.id.in_([job.id, document.id])).values(**done))
    bundle = folder / "plugins" / f"{WORD}.zip"
    bundle.write_bytes(b"PK" + TEXT.encode())
    plugin = store.plugins.create(project.id, f"{WORD} plugin", method="lhuc", path=str(bundle), job_id=job.id)
    store.tags.set(plugin.id, [WORD])
    sheet = store.sheets.create(
        project.id, WORD, [(TEXT, TEXT)], [{"name": WORD, "plugin_id": None, "method": "", "strength": 1.0}], texts={0: [TEXT]}
    )
    store.sheets.mirror(sheet.comparison_id)
    items = [{"source": TEXT, "one": TEXT, "two": TEXT}]
    rating = store.ratings.create(
        project.id, WORD, one=WORD, two="base", source="en", target="zh", seed=1, items=items, comparison_id=1
    )
    return store.ratings.add_rater(rating.id, WORD).token, bundle


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A real server: events answer over streams, which a client inside of the process cannot read."""
    import uvicorn

    from studio.app import create_app

    home, assets = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("assets")  # no base: nothing is translated
    settings = Settings(
        home=str(home), assets=str(assets), device="cpu", sign_in="on", port=free_port(), api_rate=0, first_look=False
    )
    store = Store(settings.store_url)
    for name, role in (("Ada", "admin"), ("Ann", "member"), ("Bob", "member"), ("Vic", "viewer")):
        store.accounts.create(name, PASSWORD, role)
    ann, vic = (store.accounts.named(name).id for name in ("Ann", "Vic"))
    with act_as(Actor("Ann", "member", ann)):
        rater, bundle = furnish(store, settings)
        store.members.set(1, vic, "viewer")
        store.tokens.create("Ann's", ["read"], user_id=ann)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(settings.home_dir / "uploads"))
        app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=settings.port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    yield World(f"http://127.0.0.1:{settings.port}", app, settings, store, rater, bundle)
    server.should_exit = True
    thread.join(120)


def routes_of(app: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(method, path) of everything that an application answers, whatever it is mounted or included in."""
    for route in app.routes:
        below = getattr(route, "app", None)
        inner = getattr(route, "original_router", None)
        if getattr(below, "routes", None):
            yield from routes_of(below, prefix + getattr(route, "path", ""))
        elif inner is not None:
            context = getattr(route, "include_context", None)
            yield from routes_of(inner, prefix + str(getattr(context, "prefix", "") or ""))
        else:
            for method in sorted(set(route.methods or ()) - {"HEAD"}):
                yield method, prefix + route.path


def all_routes(world: World) -> list[tuple[str, str]]:
    api = next(middleware.kwargs["api"] for middleware in world.app.user_middleware if "api" in middleware.kwargs)
    results = [*routes_of(world.app), *routes_of(api)]
    assert len(results) > 200
    for expected in ("/download/plugins/{number}", "/gradio_api/file={path_or_url:path}", "/api/v1/projects/{number}"):
        assert any(path == expected for _, path in results), (expected, results)
    return list(dict.fromkeys(results))


def value_for(name: str, world: World) -> list[str]:
    """What to put in the place of a part of an address: Ann's."""
    files = [str(world.plugin), str(world.settings.home_dir / "tailor.db")]
    return {
        "token": ["guess"], "ending": ["csv"], "path_or_url": files, "path": files, "url_path": ["http://127.0.0.1/"],
        "project": ["1", f"{WORD} project"], "plugin": ["1", f"{WORD} plugin"], "session_hash": ["annsession"],
        "fn": ["predict"], "name": ["a.txt"],
    }.get(name, ["1", "2"])  # fmt: skip


def filled(path: str, world: World) -> Iterator[str]:
    names = PARAMETER.findall(path)
    for turn in range(2):
        address = path
        for name in names:
            values = value_for(name, world)
            address = PARAMETER.sub(lambda _: values[turn % len(values)], address, count=1)  # noqa: B023
        yield address
        if not names:
            return


def example(schema: dict[str, Any], spec: dict[str, Any], deep: int = 0) -> Any:
    """A value that a body may have: the shortest that names Ann's numbers."""
    if "$ref" in schema:
        return example(spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], spec, deep + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return example(next(choice for choice in schema[key] if choice.get("type") != "null"), spec, deep + 1)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        parts = {} if deep > 6 else schema.get("properties", {})
        return {key: example(part, spec, deep + 1) for key, part in parts.items() if not key.endswith("_key")}
    if kind == "array":
        return [example(schema.get("items", {}), spec, deep + 1)]
    if kind in ("integer", "number"):
        return max(1, schema.get("minimum", 1))
    return {"boolean": True}.get(str(kind), "en" if schema.get("maxLength", 99) < 40 else WORD)


def body_for(method: str, path: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The body of a request, as its description wants it."""
    operation = spec["paths"].get(path, {}).get(method.lower(), {})
    needed = [
        parameter for parameter in operation.get("parameters", ()) if parameter["in"] == "query" and parameter.get("required")
    ]
    query = {"params": {parameter["name"]: example(parameter["schema"], spec) for parameter in needed}}
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        return {**query, "json": example(content["application/json"]["schema"], spec)}
    if any(kind.startswith("multipart") for kind in content):
        files = dict.fromkeys(("file", "files", "bundle", "samples"), ("a.txt", b"one line of text", "text/plain"))
        return {**query, "files": files, "data": {"target_lang": "zh", "source_lang": "en"}}
    if needed:
        return query
    if path.startswith(("/members", "/account", "/admin")) and method == "POST":
        return {"data": {"name": "Bob", "role": "owner", "user": "3", "active": "no", "password": PASSWORD}}
    return (
        {"json": {"session_hash": "bobsession", "data": [], "fn_index": 0, "item": 0, "question": "better", "side": "tie"}}
        if method in ("POST", "PUT", "PATCH")
        else {}
    )


# What a stranger may ask without a session: the page to sign in, and what a link by itself opens (with a guessed one: 404).
OPEN = (
    "/api/v1/openapi.json",
    "/api/v1/docs",
    "/health",
    "/frontend/settings",
    "/sign-in",
    "/first-account",
    "/healthz",
    "/readyz",
    "/metrics",
    "/favicon.ico",
    "/robots.txt",
    "/rating/",
)


@pytest.mark.parametrize("who", ["Bob", "Bob's token", "nobody"])
def test_no_route_gives_a_stranger_anything_of_a_project(world: World, who: str) -> None:
    api = next(middleware.kwargs["api"] for middleware in world.app.user_middleware if "api" in middleware.kwargs)
    spec = api.openapi()
    files, rows = world.files(), world.rows()
    client = world.browser("Bob" if who == "Bob" else "")
    if who == "Bob's token":
        user = world.store.accounts.named("Bob").id
        with act_as(Actor("Bob", "member", user)):
            secret = world.store.tokens.create("x", ["read", "translate", "write"], user_id=user)[1]
        client.headers.update({"Authorization": f"Bearer {secret}"})
    wrong, request_count = [], 0
    for method, path in all_routes(world):
        if path in ("/sign-out", "/account/password") or (path.startswith("/api/v1/jobs/") and path.endswith("/events")):
            continue
        for address in filled(path, world):
            if method == "GET" and address == "/gradio_api/queue/data":
                continue  # streams; see the events below
            request_count += 1
            if request_count > 0 and path == "/gradio_api/heartbeat/{session_hash}":
                continue
            body = body_for(method, path, spec)
            try:
                answer = client.request(method, address, **body)
            except httpx.ReadTimeout:
                wrong.append((method, address, "no answer"))
                continue
            echo = WORD in json.dumps(body, default=str) + address
            if (TEXT if echo else WORD).encode() in answer.content:
                wrong.append((method, address, "tells", answer.text[:200]))
            if path.endswith("/v2/usage") and answer.status_code == 200:  # what the caller has had translated, of any project
                assert set(answer.json()) <= {"character_count", "character_limit"}
                continue
            belongs = PARAMETER.search(path) is not None and re.search(
                r"/(projects|jobs|plugins|comparisons|ratings|raters|rating|documents?|download|members|tm/projects|cat|file=)",
                path,
            )
            expected = (401, 403, 404) if who == "nobody" else (403, 404)
            if belongs and answer.status_code not in expected:
                wrong.append((method, address, answer.status_code, answer.text[:160]))
            if (
                who == "nobody"
                and path not in ("/api/v1", "/api/v1/")
                and not path.startswith(OPEN)
                and answer.status_code not in (401, 403, 404, 405)
            ):
                wrong.append((method, address, answer.status_code, answer.text[:160]))
    assert not wrong, "\n".join(map(str, wrong))
    assert request_count > 200
    assert world.files() == files
    if who != "nobody":  # what Bob made by the way is his own
        mine = world.rows()
        for name in ("sheets", "tags", "raters", "members", "default"):
            assert mine[name] == rows[name], name
        for name in ("projects", "jobs", "plugins", "comparisons", "ratings"):
            assert [row for row in mine[name] if row in rows[name]] == rows[name], name
    else:
        assert world.rows() == {**rows, "tokens": world.rows()["tokens"]}


def test_the_same_routes_tell_a_member(world: World) -> None:
    """So that the silence above means something."""
    client = world.browser("Ann")
    texts = []
    for method, path in all_routes(world):
        if method != "GET" or path.startswith("/gradio_api") or path.endswith("/events"):
            continue
        if any(WORD in client.get(address).text for address in filled(path, world)):
            texts.append(path)
    assert len(texts) > 20, texts
    assert "/api/v1/projects/{number}/samples" in texts
    assert WORD in client.get("/download/comparisons/1?format=json").text  # XLSX, the default, is packed
    assert "/tm/projects/{number}/phrase-map" in texts
    assert "/download/documents/{number}" in texts
    assert "/api/v1/jobs/{number}/log" in texts
    assert WORD in client.get("/download/plugins/1").text or client.get("/download/plugins/1").status_code == 409


# -- files


def test_no_file_is_reached_by_its_path(world: World) -> None:
    """Uploads belong to whoever brought them; everything else is nobody's to fetch."""
    ann, bob = world.browser("Ann"), world.browser("Bob")
    upload = ann.post("/gradio_api/upload", files={"files": ("a.txt", TEXT.encode(), "text/plain")})
    assert upload.status_code == 200, upload.text
    position = upload.json()[0]
    assert ann.get(f"/gradio_api/file={position}").text == TEXT
    assert bob.get(f"/gradio_api/file={position}").status_code == 404
    # The same content has the same place in Gradio's cache: bringing it oneself is knowing it already.
    same = bob.post("/gradio_api/upload", files={"files": ("a.txt", TEXT.encode(), "text/plain")}).json()[0]
    assert same == position
    before = "/gradio_api/file="
    for path in [*Path(world.settings.home).rglob("*"), Path("/etc/passwd")]:
        if path.is_file() and str(path) != position:
            assert ann.get(f"{before}{path}").status_code == 404, path
    for path in (world.plugin, Path(world.settings.home) / "tailor.db", Path("/etc/passwd")):
        for form in (f"{position}/../../../{path.name}", f"/..{path}", f"//{path}", f"{path}?x=1", str(path).replace("/", "%2f")):
            for start in (before, "/gradio_api/file/", "/file=", "/static/", "/assets/", "/svelte/"):
                assert bob.get(f"{start}{form}").status_code in (403, 404), (start, form)
    for address in ("http://169.254.169.254/latest", "HTTP://127.0.0.1:1/", "file:///etc/passwd"):
        assert ann.get(f"/gradio_api/file={address}").status_code == 404
        assert ann.get(f"/gradio_api/proxy={address}").status_code == 404


# -- events


def events_of(world: World, client: httpx.Client, session: str, *, files: list[str] | None = None) -> list[dict[str, Any]]:
    """Send every event of every page, for Ann's project, and read all answers."""
    config = client.get("/config").json()
    query = "?project=1&comparison=1&plugin=1&phrase=1&run=1&rating=1&files=1"
    named = {"project": "1", "number": 1, "job": 1, "plugin": 1, "name": f"{WORD}", "act": "delete", "key": "0" * 16,
             "action": "exclude", "query": "", "place": 0, "page": 1, "phrase": TEXT, "keep": False}  # fmt: skip
    sent = 0
    for event in config["dependencies"]:
        data: list[Any] = ["1"] * len(event["inputs"])
        body = {
            "data": data, "fn_index": event["id"], "session_hash": session, "event_data": named,
            "trigger_id": event["targets"][0][0] if event["targets"] else None,
        }  # fmt: skip
        answer = client.post(f"/gradio_api/queue/join{query}", json=body)
        assert answer.status_code in (200, 400, 422), (event["id"], answer.text)
        sent += answer.status_code == 200
    assert sent > 50
    heard, done = [], 0
    with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": session}, timeout=120) as stream:
        for line in stream.iter_lines():
            if not line.startswith("data:"):
                continue
            heard.append(json.loads(line[5:]))
            done += heard[-1].get("msg") == "process_completed"
            if done == sent or heard[-1].get("msg") == "close_stream":
                break
    assert done == sent
    return heard


def test_no_event_of_a_page_gives_a_stranger_anything(world: World) -> None:
    files, rows = world.files(), world.rows()
    heard = json.dumps(events_of(world, world.browser("Bob"), "bobevents"))
    assert WORD not in heard.replace(f'"name": "{WORD}"', "")
    assert world.files() == files
    now = world.rows()
    for name in ("sheets", "tags", "raters", "members", "default"):
        assert now[name] == rows[name], name
    for name in ("projects", "jobs", "plugins", "comparisons", "ratings"):
        assert [row for row in now[name] if row in rows[name]] == rows[name], name


def test_the_same_events_tell_a_viewer_and_change_nothing(world: World) -> None:
    files, rows = world.files(), world.rows()
    heard = json.dumps(events_of(world, world.browser("Vic"), "vicevents"))
    assert WORD in heard
    changed = {name: (files.get(name), value) for name, value in world.files().items() if files.get(name) != value}
    assert changed == {}
    now = world.rows()
    before = rows.pop("tokens")
    assert now.pop("tokens")[-len(before) :] == before  # a new one is the viewer's own, as on their account's page
    assert now == rows


def test_events_of_others_are_not_heard(world: World) -> None:
    ann, bob = world.browser("Ann"), world.browser("Bob")
    body = {"data": [], "fn_index": 0, "session_hash": "annevents"}
    assert ann.post("/gradio_api/queue/join", json=body).status_code == 200
    assert bob.post("/gradio_api/queue/join", json=body).status_code == 404
    assert bob.get("/gradio_api/queue/data", params={"session_hash": "annevents"}).status_code == 404
    assert bob.get("/gradio_api/heartbeat/annevents").status_code == 404
    for act in ("cancel", "reset"):
        assert bob.post(f"/gradio_api/{act}", json={"session_hash": "annevents", "fn_index": 0, "event_id": "x"}).status_code == 404
    position = ann.post("/gradio_api/upload", files={"files": ("b.txt", b"mine", "text/plain")}).json()[0]
    file_data = {"path": position, "orig_name": "b.txt", "meta": {"_type": "gradio.FileData"}}
    body = {"data": [[file_data]], "fn_index": 0, "session_hash": "bobfiles"}
    assert bob.post("/gradio_api/queue/join", json=body).status_code == 404
    for path in ("call/x", "run/x", "api/x", "call/v2/x", "process_recording", "vibe-edit", "stream/x"):
        assert bob.post(f"/gradio_api/{path}", json={"data": []}).status_code == 404
    for path in ("deep_link", "openapi.json", "dev/reload", "custom_component/1/client/component/index.js", "runs"):
        assert bob.get(f"/gradio_api/{path}").status_code == 404


def test_a_link_of_a_rating_is_a_right_by_itself(world: World) -> None:
    nobody = world.browser("")
    assert TEXT in nobody.get(f"/rating/{world.rater}/state").text
    assert nobody.get("/rating/guess/state").status_code == 404
    assert nobody.get("/download/ratings/1.csv").status_code == 403


def test_a_browser_gets_a_page_where_there_is_nothing(world: World) -> None:
    html = {"Accept": "text/html,application/xhtml+xml"}
    with world.browser("Ann") as ann, world.browser("Bob") as bob:
        assert ann.get("/train?project=1", headers=html).status_code == 200
        for browser, address in ((ann, "/train?project=99"), (bob, "/train?project=1")):
            gone = browser.get(address, headers=html)
            assert (gone.status_code, "it may have been deleted" in gone.text) == (404, True)
            assert WORD not in gone.text
        nothing = ann.get("/nonsense", headers={**html, "Accept-Language": "zh"})
        assert (nothing.status_code, "此地址没有页面" in nothing.text) == (404, True)
        assert ann.get("/nonsense", headers={"Accept": "application/json"}).json()["detail"] == "Not Found"
