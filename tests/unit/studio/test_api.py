"""The REST interface without a model: who is let in, what errors look like, rows, uploads, jobs as they happen."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from engine.core.settings import Settings
from engine.store import JobRow, ProjectRow, Store
from engine.store.queue import Jobs
from studio.api import create_api
from studio.api.dispatch import is_api
from studio.api.errors import style_of
from studio.api.uploads import safe_name
from studio.services.service import Service
from tests.bases import EN_ZH, SAMPLES

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HERE = {"base_url": "http://127.0.0.1:7860", "client": ("127.0.0.1", 5000)}


def asked(home: Path, **changes: Any) -> TestClient:
    client_options = {"base_url": HERE["base_url"], "client": HERE["client"]}
    client_options |= {key: changes.pop(key) for key in ("base_url", "client", "headers") if key in changes}
    settings = Settings(home=str(home), device="cpu", **{"max_upload_mib": 1, **changes})
    return TestClient(create_api(Service(settings)), raise_server_exceptions=False, **client_options)  # type: ignore[arg-type]


@pytest.fixture
def api(tmp_path: Path) -> TestClient:
    return asked(tmp_path)


@pytest.fixture
def project(store: Store) -> ProjectRow:
    return store.projects.create("Lu Xun", "en", "zh", str(EN_ZH))


def said(answer: Any, status: int, code: str) -> str:
    """The sentence of an error in the one shape."""
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    error = answer.json()["error"]
    assert {"code", "message"} <= set(error) <= {"code", "message", "reason", "params"}
    assert error["code"] == code
    assert error["message"].endswith((".", "?"))
    assert "Traceback" not in answer.text
    return str(error["message"])


# -- which address is whose


@pytest.mark.parametrize(
    ("method", "address", "ours"),
    [
        ("GET", "/translate", False), ("GET", "/translate?project=3", False), ("HEAD", "/translate", False),
        ("GET", "/translate?q=Hi", False), ("GET", "/translate?q=Hi&target=zh", True), ("POST", "/translate", True),
        ("GET", "/", False), ("GET", "/samples", False), ("GET", "/config", False), ("GET", "/apis", False),
        ("GET", "/api/v1/projects", True), ("POST", "/v2/translate", True), ("GET", "/v2/languages", True),
        ("GET", "/languages", True), ("GET", "/health", True), ("POST", "/cat/3/translate", True),
    ],
)  # fmt: skip
def test_programs_and_pages_share_addresses(method: str, address: str, ours: bool) -> None:
    path, _, query = address.partition("?")
    assert is_api(method, path, query) is ours


def test_errors_speak_the_shape_of_their_address() -> None:
    assert [style_of(path) for path in ("/api/v1/x", "/v2/translate", "/cat/3/v2/translate", "/cat/3/7/v2/usage")] == [
        "api", "deepl", "deepl", "deepl",
    ]  # fmt: skip
    assert [style_of(path) for path in ("/translate", "/cat/3/translate", "/cat/v2/translate")] == ["libre"] * 3


# -- who is let in


def test_on_this_machine_no_token_is_needed(api: TestClient) -> None:
    result = api.get("/api/v1/status").json()
    assert result["token"] == ""
    assert result["scopes"] == ["read", "translate", "write"]
    said(api.get("/api/v1/status", headers={"Authorization": "Bearer wrong"}), 401, "token_needed")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "studio.example.com"},
        {"Host": "127.0.0.1.evil.example"},
        {"X-Forwarded-For": "10.0.0.9"},
        {"Forwarded": "for=10.0.0.9"},
    ],
)
def test_what_came_through_another_name_or_machine_needs_one(api: TestClient, headers: dict[str, str]) -> None:
    assert "token is needed" in said(api.get("/api/v1/projects", headers=headers), 401, "token_needed")


def test_pages_of_other_sites_cannot_use_the_browser_of_a_user(api: TestClient) -> None:
    wish = {"name": "x", "source": "en", "target": "zh"}
    answer = api.post("/api/v1/projects", json=wish, headers={"Origin": "https://evil.example"})
    assert "another site" in said(answer, 403, "forbidden")
    for site in ("cross-site", "same-site"):  # as a browser says it that sends no Origin
        headers = {"Sec-Fetch-Site": site}
        said(api.post("/api/v1/projects", json=wish, headers=headers), 403, "forbidden")
        assert api.post("/v2/glossaries", json=wish, headers=headers).status_code == 403
        said(api.post("/api/v1/projects/1/samples", files={"files": b"a"}, headers=headers), 403, "forbidden")
        assert api.get("/api/v1/projects", headers=headers).json()["total"] == 0, "a link that leads here"
    own_headers: tuple[dict[str, str], ...] = (
        {"Origin": "http://127.0.0.1:7860"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {},
    )  # fmt: skip
    for headers in own_headers:
        assert api.post("/api/v1/projects", json=wish, headers=headers).status_code == 201


def test_elsewhere_every_request_needs_a_token_with_the_scope(tmp_path: Path, store: Store) -> None:
    api = asked(tmp_path, host="0.0.0.0")
    for verb, path in (("get", "/api/v1/projects"), ("post", "/api/v1/translate"), ("get", "/api/v1/jobs/1/log")):
        assert "token is needed" in said(getattr(api, verb)(path), 401, "token_needed")
    assert api.get("/languages").status_code == 401
    assert api.post("/v2/translate", json={"text": ["x"], "target_lang": "ZH"}).status_code == 403
    assert api.get("/health").json() == {"status": "ok"}
    assert api.get("/frontend/settings").json()["keyRequired"] is True
    row, secret = store.tokens.create("CAT", ["read"])
    bearer = {"Authorization": f"Bearer {secret}"}
    assert api.get("/api/v1/projects", headers=bearer).status_code == 200
    assert api.get("/api/v1/status", headers=bearer).json()["token"] == "CAT"
    answer = api.post("/api/v1/projects", json={"name": "x", "source": "en", "target": "zh"}, headers=bearer)
    assert "lacks the scope write" in said(answer, 403, "forbidden")
    assert api.get("/languages", params={"api_key": secret}).status_code == 403  # read alone
    assert api.get("/api/v1/projects", headers={"Authorization": f"Bearer {secret}x"}).status_code == 401
    store.tokens.revoke(row.id)
    assert "revoked" in said(api.get("/api/v1/projects", headers=bearer), 401, "token_needed")
    _, other = store.tokens.create("translates", ["translate"])
    assert api.get("/languages", params={"api_key": other}).status_code == 200
    assert api.get("/v2/usage", headers={"Authorization": f"DeepL-Auth-Key {other}"}).status_code == 200
    assert store.tokens.list()[0].used is not None
    in_body = api.request("GET", "/languages", content=f"api_key={other}", headers=FORM)
    assert in_body.status_code == 200, "as LibreTranslate's own library sends it"


def test_nobody_unknown_gets_a_file_onto_the_disk(tmp_path: Path) -> None:
    api = asked(tmp_path, host="0.0.0.0")
    broken = {"Content-Type": "multipart/form-data; boundary=b"}
    for path in ("samples", "tests", "plugins"):  # refused before the body is looked at
        said(api.post(f"/api/v1/projects/1/{path}", content=b"no form", headers=broken), 401, "token_needed")


def test_a_setting_opens_or_closes_the_interface(tmp_path: Path) -> None:
    opened = asked(tmp_path, host="0.0.0.0", api_tokens="never", sign_in="off")
    assert opened.get("/api/v1/projects").status_code == 200
    # Where people sign in, no program needs less than they do.
    assert asked(tmp_path, host="0.0.0.0", api_tokens="never").get("/api/v1/projects").status_code == 401
    assert asked(tmp_path, api_tokens="always").get("/api/v1/projects").status_code == 401


def test_keys_of_other_services_do_no_harm_here_but_a_revoked_token_is_told(api: TestClient, store: Store) -> None:
    assert api.get("/languages", params={"api_key": "something"}).status_code == 200
    row, secret = store.tokens.create("x", ["translate"])
    store.tokens.revoke(row.id)
    assert api.get("/languages", params={"api_key": secret}).status_code == 401


# -- errors and the OpenAPI


def test_every_error_has_one_shape(api: TestClient) -> None:
    assert "no project 7" in said(api.get("/api/v1/projects/7"), 404, "not_found")
    error = api.get("/api/v1/projects/7").json()["error"]
    assert (error["reason"], error["params"]) == ("there-is-no-noun-id-it-may-have", {"noun": "project", "id": 7})
    said(api.get("/api/v1/nothing"), 404, "not_found")
    said(api.put("/api/v1/projects"), 405, "method_not_allowed")
    assert api.put("/api/v1/projects").headers["allow"] == "GET, HEAD, POST"
    assert api.post("/api/v1/projects/3").headers["allow"] == "DELETE, GET, HEAD, PATCH"
    assert said(api.get("/api/v1/projects/x"), 422, "invalid").startswith("number: ")
    said(api.get("/api/v1/projects/99999999999999999999"), 422, "invalid")
    assert "name" in said(api.post("/api/v1/projects", json={"source": "en", "target": "zh"}), 422, "invalid")
    damaged = api.post("/api/v1/projects", content=b"{", headers={"Content-Type": "application/json"})
    assert said(damaged, 422, "invalid") == "The body is not valid JSON."
    wish = {"name": "x", "source": "en", "target": "en"}
    assert "No installed base" in said(api.post("/api/v1/projects", json=wish | {"target": "tlh"}), 409, "missing")
    assert "same language" in said(api.post("/api/v1/projects", json=wish | {"base": "en-zh"}), 400, "bad_input")
    assert "no base /etc" in said(api.post("/api/v1/projects", json=wish | {"base": "/etc"}), 404, "not_found")


def test_a_file_that_is_sent_as_text_is_asked_for_in_words(api: TestClient, project: ProjectRow) -> None:
    here = f"/api/v1/projects/{project.id}"
    for path, field in (
        ("documents", "file"),
        ("terms/file", "file"),
        ("plugins", "file"),
        ("plugins/check", "file"),
        ("samples", "files"),
        ("tests", "files"),
    ):
        sentence = said(api.post(f"{here}/{path}", files={field: (None, "just text")}), 422, "invalid")
        assert re.fullmatch(rf"{field}(\.0)?: a file is expected, as a part with a filename of multipart/form-data\.", sentence)
    answer = api.post("/v2/document", files={"file": (None, "just text"), "target_lang": (None, "ZH")})
    assert (answer.status_code, "a file is expected" in answer.json()["message"]) == (400, True)


def test_reasons_name_the_sentence_and_not_its_values(api: TestClient, project: ProjectRow, tmp_path: Path) -> None:
    here = f"/api/v1/projects/{project.id}"

    def error(**request: Any) -> dict[str, Any]:
        return api.post(f"{here}/samples/paths", **request).json()["error"]  # type: ignore[no-any-return]

    for path in ("/nope/a.txt", str(tmp_path / "b.txt")):
        refusal = error(json={"path": path})
        assert refusal["message"] == f"There is no file at {path}; check the path.", "whoever gave a path is told it whole"
        assert (refusal["reason"], refusal["params"]) == ("there-is-no-file-at-path-check-the", {"path": path})
    assert error(json={"path": "a.txt"})["reason"] == "path-is-not-an-absolute-path-start-it"
    gone = api.delete(f"{here}/tests/none.txt").json()["error"]
    assert "none-txt" not in gone.get("reason", "")
    bundle = tmp_path / "damaged.zip"
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("README.md", "x")
    damaged = api.post(f"{here}/plugins", files={"file": ("damaged.zip", bundle.read_bytes())}).json()["error"]
    assert damaged["reason"] not in ("path-error", "")


def test_head_is_answered_as_get_is(api: TestClient, project: ProjectRow, store: Store) -> None:
    job = store.jobs.enqueue("customize", {}, project_id=project.id)
    for path in (
        "/api/v1/projects", f"/api/v1/projects/{project.id}", "/api/v1/projects/99", "/api/v1/openapi.json", "/v2/usage",
        "/v2/languages", "/v3/style_rules", "/languages", "/health", "/cat/99/v2/usage", "/api/v1/none",
    ):  # fmt: skip
        asked_for, got = api.head(path), api.get(path)
        assert (asked_for.status_code, asked_for.content) == (got.status_code, b""), path
        assert asked_for.headers["content-type"] == got.headers["content-type"]
        assert asked_for.headers["content-length"] == got.headers["content-length"]
    assert api.head(f"/api/v1/jobs/{job.id}/events").headers["content-type"].startswith("text/event-stream")
    assert api.head("/v2/translate").status_code == 405
    assert api.get("/v2/translate").headers["Allow"] == "POST"
    assert "head" not in {verb for operations in api.get("/api/v1/openapi.json").json()["paths"].values() for verb in operations}


def test_a_fault_of_the_program_tells_no_traceback(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **named: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(Jobs, "list", broken)
    store = Store(f"sqlite:///{api.app.state.deps.service.settings.home_dir / 'tailor.db'}")  # type: ignore[attr-defined]
    store.projects.create("x", "en", "zh", "en-zh")
    answer = api.get("/api/v1/projects/1/runs")
    assert "an error in the studio" in said(answer, 500, "fault")
    assert "secret" not in answer.text


def test_the_openapi_describes_every_operation_and_its_errors(api: TestClient) -> None:
    spec = api.get("/api/v1/openapi.json").json()
    assert spec["openapi"].startswith("3.1")
    count = 0
    for path, operations in spec["paths"].items():
        for verb, operation in operations.items():
            count += 1
            assert operation.get("description"), (verb, path)
            assert operation.get("tags"), (verb, path)
            if path.startswith("/api/"):
                schema = operation["responses"]["404"]["content"]["application/json"]["schema"]
                assert schema["$ref"].endswith("ErrorBody"), (verb, path)
    assert count > 50
    references = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(spec)))
    assert references <= set(spec["components"]["schemas"])
    for name in ("TranslateRequest", "RunRequest", "Job", "Plugin"):
        assert spec["components"]["schemas"][name]["properties"]


def test_the_docs_page_fetches_nothing(api: TestClient) -> None:
    page = api.get("/api/v1/docs")
    assert page.status_code == 200
    assert "/api/v1/projects/{number}/runs" in page.text
    assert "<script" not in page.text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page.text)
    assert api.get("/api/v1", follow_redirects=False).headers["location"] == "/api/v1/docs"


# -- rows


def test_a_project_from_beginning_to_end(api: TestClient) -> None:
    answer = api.post("/api/v1/projects", json={"name": "Lu Xun", "source": "eng", "target": "zh-CN"})
    assert answer.status_code == 201
    row = answer.json()
    assert (row["source"], row["target"], row["base"]) == ("en", "zh", "en-zh")
    assert api.patch(f"/api/v1/projects/{row['id']}", json={"name": "鲁迅"}).json()["name"] == "鲁迅"
    result = api.get("/api/v1/projects", params={"limit": 1}).json()
    assert (result["total"], [item["name"] for item in result["items"]]) == (1, ["鲁迅"])
    assert api.delete(f"/api/v1/projects/{row['id']}", params={"files": True}).status_code == 204
    said(api.get(f"/api/v1/projects/{row['id']}"), 404, "not_found")


def test_what_there_is_to_choose_from(api: TestClient) -> None:
    methods = {method["name"]: method for method in api.get("/api/v1/methods").json()}
    adapter = methods["memory_adapter"]
    assert "reads" in adapter["offers"]
    names = {option["name"] for option in adapter["options"]}
    assert names == set(adapter["json_schema"]["properties"])
    assert api.get("/api/v1/methods/memory_adapter").json() == adapter
    said(api.get("/api/v1/methods/nothing"), 404, "not_found")
    assert [budget["name"] for budget in api.get("/api/v1/budgets/memory_adapter").json()] == ["quick", "balanced", "best"]
    assert {option["name"] for option in api.get("/api/v1/options/decoding").json()} >= {"beam", "length_penalty"}
    bases = api.get("/api/v1/bases").json()
    assert api.get(f"/api/v1/bases/{bases[0]['name']}").json() == bases[0]
    assert str(EN_ZH.parent) not in json.dumps(bases), "no path of the machine is told"
    spoken = {language["code"]: language["targets"] for language in api.get("/api/v1/languages").json()}
    assert "zh" in spoken["en"]
    assert {language["code"] for language in api.get("/languages").json()} >= {"en", "zh", "de"}


def test_samples_are_uploaded_read_and_paged(api: TestClient, project: ProjectRow, tmp_path: Path) -> None:
    from engine.corpora import import_corpus

    text = (SAMPLES / "literary-zh" / "literary-zh.txt").read_bytes()
    files = [("files", ("../../lu xun.txt", io.BytesIO(text))), ("files", ("b.txt", io.BytesIO("雨还在下。\n".encode())))]
    answer = api.post(f"/api/v1/projects/{project.id}/samples", files=files, data={"domains": '{"lu xun.txt": "novels"}'})
    assert answer.status_code == 202
    assert answer.json()["kind"] == "prepare"
    assert answer.json()["state"] == "queued"
    workspace = tmp_path / "projects" / str(project.id)
    assert {path.name for path in (workspace / "samples").iterdir()} == {"lu xun.txt", "b.txt"}
    assert list((tmp_path / "uploads").iterdir()) == [], "nothing is left behind"
    seen = api.get(f"/api/v1/projects/{project.id}/samples").json()
    assert {file["name"]: file["domain"] for file in seen["files"]} == {"b.txt": "", "lu xun.txt": "novels"}
    assert seen["job"]["id"] == answer.json()["id"]
    import_corpus([workspace / "samples" / "lu xun.txt"], "zh").save(workspace)
    page = api.get(f"/api/v1/projects/{project.id}/samples/segments", params={"limit": 3, "offset": 2}).json()
    assert page["total"] > 100
    assert [item["line"] for item in page["items"]] == [3, 4, 5]
    word = page["items"][0]["text"][:2]
    result = api.get(f"/api/v1/projects/{project.id}/samples/segments", params={"search": word}).json()
    assert 0 < result["total"] < page["total"]
    assert api.delete(f"/api/v1/projects/{project.id}/samples/b.txt").status_code == 202
    said(api.delete(f"/api/v1/projects/{project.id}/samples/lu xun.txt"), 409, "conflict")
    said(api.delete(f"/api/v1/projects/{project.id}/samples/b.txt"), 404, "not_found")


def test_uploads_are_bounded(api: TestClient, project: ProjectRow, tmp_path: Path) -> None:
    address = f"/api/v1/projects/{project.id}/samples"
    big = io.BytesIO(b"x" * (3 << 20))
    assert "larger than 1 MiB" in said(api.post(address, files={"files": ("a.txt", big)}), 413, "too_large")

    def endless() -> Iterator[bytes]:  # no Content-Length
        yield b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
        for _ in range(64):
            yield b"x" * (1 << 16)

    answer = api.post(address, content=endless(), headers={"Content-Type": "multipart/form-data; boundary=b"})
    said(answer, 413, "too_large")
    large = json.dumps({"texts": ["x" * 90_000] * 120}).encode()
    said(api.post("/api/v1/translate", content=large, headers={"Content-Type": "application/json"}), 413, "too_large")
    assert "cannot be read" in said(api.post(address, files={"files": ("a.exe", b"x")}), 400, "bad_input")
    said(api.post(address, files={"files": ("a.txt", b"x"), "domains": (None, "[]")}), 422, "invalid")
    assert not (tmp_path / "projects" / str(project.id) / "samples" / "a.txt").exists()


@pytest.mark.parametrize(
    ("given", "made"),
    [("../../etc/passwd", "passwd"), ("C:\\x\\y.txt", "y.txt"), (".hidden.txt", "hidden.txt"), ("a\x00b.txt", "ab.txt"),
     ("é.txt", "é.txt"), ("雨" * 100 + ".txt", "雨" * 65 + ".txt")],
)  # fmt: skip
def test_file_names_are_made_safe(given: str, made: str) -> None:
    assert safe_name(given) == made


def test_bundled_samples_are_taken_by_name(api: TestClient, project: ProjectRow) -> None:
    names = [sample["name"] for sample in api.get("/api/v1/samples").json()]
    assert "literary-zh" in names
    address = f"/api/v1/projects/{project.id}/samples/bundled"
    assert api.post(address, json={"names": ["literary-zh"]}).status_code == 202
    assert "No sample corpus" in said(api.post(address, json={"names": ["x"]}), 404, "not_found")


def test_phrases_are_filtered_and_paged(api: TestClient, project: ProjectRow, tmp_path: Path) -> None:
    rows = [
        {"text": "雨", "length": 1, "count": 96, "label": "NN"},
        {"text": "不曾停歇", "length": 2, "count": 6, "label": "VP"},
        {"text": "雨还在下", "length": 3, "count": 2, "label": "IP"},
    ]
    folder = tmp_path / "projects" / str(project.id)
    folder.mkdir(parents=True)
    (folder / "phrases.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")

    def texts(**params: Any) -> list[str]:
        result = api.get(f"/api/v1/projects/{project.id}/phrases", params=params).json()
        assert result["total"] >= len(result["items"])
        return [item["text"] for item in result["items"]]

    assert texts() == ["雨", "不曾停歇", "雨还在下"]
    assert texts(order="longest", limit=1) == ["雨还在下"]
    assert texts(search="雨", min_length=2) == ["雨还在下"]
    assert texts(label="VP") == ["不曾停歇"]
    assert texts(layer=0) == ["雨"]
    address = f"/api/v1/projects/{project.id}/phrases/exclusions"
    exclusions = api.post(address, json={"action": "exclude", "phrases": ["雨"], "sentences": True}).json()
    assert exclusions == {"phrases": ["雨"], "with_sentences": ["雨"], "steps": 1}
    assert api.get(address).json() == exclusions
    assert api.post(f"{address}/undo").json()["phrases"] == []
    said(api.post(f"{address}/undo"), 409, "conflict")


def test_proportions_are_asked_for_before_and_after_they_are_fitted(
    api: TestClient, project: ProjectRow, tmp_path: Path, store: Store
) -> None:
    address = f"/api/v1/projects/{project.id}/proportions"
    assert "not fitted yet" in said(api.get(address), 409, "conflict")
    assert "not fitted yet" in said(api.post(address, json={"sentences": ["雨停了。"]}), 409, "conflict")
    said(api.post(f"{address}/fit", json={}), 409, "conflict")
    folder = tmp_path / "projects" / str(project.id)
    (folder / "proportions").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"text": "雨停了。"}\n', encoding="utf-8")
    assert api.post(f"{address}/fit", json={}).json()["kind"] == "proportions"
    proportions = {"domains": ["a", "b"], "corpus": {"decoder": {"x": float("nan")}}, "held_out": {}, "examples": []}
    (folder / "proportions" / "shown.json").write_text(json.dumps(proportions), encoding="utf-8")
    assert api.get(address).json()["corpus"] == {"decoder": {"x": None}}
    row = store.plugins.create(project.id, "Style", method="lhuc", path="x.zip")
    assert "no domain proportions" in said(api.get(address, params={"plugin": row.id}), 400, "bad_input")


def test_how_samples_are_read(api: TestClient, project: ProjectRow, tmp_path: Path) -> None:
    address = f"/api/v1/projects/{project.id}"
    assert "no samples" in said(api.post(f"{address}/samples/read"), 409, "conflict")
    assert api.get(f"{address}/samples/options").json() == {"options": {}}
    assert api.put(f"{address}/samples/options", json={"options": {"min_chars": 3}}).json() == {"options": {"min_chars": 3}}
    said(api.put(f"{address}/samples/options", json={"options": {"nothing": 3}}), 400, "bad_input")
    file = tmp_path / "given.txt"
    file.write_text("雨还在下。\n", encoding="utf-8")
    assert api.post(f"{address}/samples/paths", json={"path": str(file)}).status_code == 202
    assert "no file at" in said(api.post(f"{address}/samples/paths", json={"path": "/nowhere/x.txt"}), 400, "bad_input")
    assert api.post(f"{address}/samples/read").json()["kind"] == "prepare"
    decisions = api.post(f"{address}/decisions", json={"action": "exclude", "sentences": [{"text": "雨还在下。"}]}).json()
    assert decisions == {"excluded": ["雨还在下。"], "approved": [], "steps": 1, "pending": True}
    assert api.post(f"{address}/decisions/undo").json()["excluded"] == []
    said(api.post(f"{address}/decisions/undo"), 409, "conflict")
    two = [("files", ("test.txt", "雨停了。\n".encode())), ("files", ("photo.png", b"x"))]
    job = api.post(f"{address}/tests", files=two)
    assert (job.status_code, job.json()["kind"]) == (202, "leakage")
    listed = api.get(f"{address}/tests").json()
    assert (listed["files"], listed["found"]) == (["test.txt"], {})
    assert "photo.png cannot be read as samples" in listed["refused"]["photo.png"]
    assert "photo.png" in said(api.post(f"{address}/samples", files={"files": ("photo.png", b"x")}), 400, "bad_input")
    assert set(api.get(f"{address}/samples").json()["refused"]) == {"photo.png"}
    assert api.delete(f"{address}/tests/test.txt").status_code == 202


def test_paths_of_the_server_are_closed_to_others(tmp_path: Path, store: Store) -> None:
    _, secret = store.tokens.create("x", ["write"])
    store.projects.create("x", "en", "zh", str(EN_ZH))
    api = asked(tmp_path, host="0.0.0.0", headers={"Authorization": f"Bearer {secret}"})
    assert "switched off" in said(api.post("/api/v1/projects/1/samples/paths", json={"path": "/etc/passwd"}), 403, "forbidden")


# -- jobs


def test_jobs_are_cancelled_and_resumed(api: TestClient, project: ProjectRow, store: Store) -> None:
    job = store.jobs.enqueue("prepare", {"samples": ["a"]}, project_id=project.id)
    assert api.get("/api/v1/jobs", params={"state": "queued"}).json()["total"] == 1
    assert api.get("/api/v1/jobs", params={"kind": "customize"}).json()["total"] == 0
    said(api.post(f"/api/v1/jobs/{job.id}/resume"), 409, "conflict")
    assert api.post(f"/api/v1/jobs/{job.id}/cancel").json()["state"] == "cancelled"
    assert "has ended" in said(api.post(f"/api/v1/jobs/{job.id}/cancel"), 409, "conflict")
    again = api.post(f"/api/v1/jobs/{job.id}/resume")
    assert (again.status_code, again.json()["state"], again.json()["attempt"]) == (202, "queued", 2)
    log = store.jobs.get(job.id)
    assert api.get(f"/api/v1/jobs/{log.id}/log").text == ""
    assert api.delete(f"/api/v1/jobs/{job.id}").status_code == 204
    said(api.get(f"/api/v1/jobs/{job.id}"), 404, "not_found")


def test_a_job_is_followed_as_it_happens(
    api: TestClient, project: ProjectRow, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = store.jobs.enqueue("prepare", {}, project_id=project.id)
    read = Jobs.get

    def begin() -> None:
        claimed = store.jobs.claim("here:1")
        assert claimed is not None
        store.jobs.progress(claimed.id, claimed.attempt, step="Reading", steps=2, done=1, total=2)

    def finish() -> None:
        store.jobs.finish(job.id, 1, {"kept": 3, "plugin": "/home/me/p.zip"})

    steps = [lambda: None, begin, finish]  # after the check that there is such a job, and after each event

    def get(jobs: Jobs, number: int) -> JobRow:
        row = read(jobs, number)
        with monkeypatch.context() as patch:
            patch.setattr(Jobs, "get", read)  # steps read it as well
            if steps:
                steps.pop(0)()
        return row

    monkeypatch.setattr(Jobs, "get", get)
    text = api.get(f"/api/v1/jobs/{job.id}/events", params={"seconds": 300}).text
    rows = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    assert [row["state"] for row in rows] == ["queued", "running", "succeeded", "succeeded"]
    assert rows[-2]["result"] == {"kept": 3}
    assert text.rstrip().endswith('event: end\ndata: {"state": "succeeded"}')


def test_a_run_is_checked_before_it_is_queued(api: TestClient, project: ProjectRow, tmp_path: Path) -> None:
    address = f"/api/v1/projects/{project.id}/runs"
    assert "no samples" in said(api.post(address, json={}), 409, "conflict")
    folder = tmp_path / "projects" / str(project.id) / "samples"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.txt").write_text("雨还在下。\n", encoding="utf-8")
    assert "Did you mean" in said(api.post(address, json={"method": "memory_adaptor"}), 400, "bad_input")
    assert "max_updates" in said(api.post(address, json={"training_options": {"max_updates": -1}}), 400, "bad_input")
    said(api.post(address, json={"budget": "huge"}), 422, "invalid")
    said(api.post(address, json={"surprise": 1}), 422, "invalid")
    answer = api.post(address, json={"budget": "quick", "training_options": {"max_updates": 7}})
    assert answer.status_code == 202
    assert (answer.json()["method"], answer.json()["budget"]) == ("auto", "quick")
    assert api.post(address, json={}).status_code == 202, "a second run waits for the first"
    wishes = ({"method": "auto"}, {"method": "knn"}, {"method_options": {"alpha": 1}})
    assert [api.post(address, json=wish).json()["method"] for wish in wishes] == ["auto", "knn", "auto"]
    assert "no_such" in said(api.post(address, json={"method_options": {"no_such": 1}}), 400, "bad_input")
    assert api.get(address).json()["total"] == 5


def test_a_run_is_estimated_looked_at_and_has_a_curve_of_its_own(
    api: TestClient, project: ProjectRow, store: Store, tmp_path: Path
) -> None:
    address, folder = f"/api/v1/projects/{project.id}", tmp_path / "projects" / str(project.id)
    assert "no samples" in said(api.post(f"{address}/runs/estimate", json={}), 409, "conflict")
    assert "no samples" in said(api.post(f"{address}/look"), 409, "conflict")
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    (folder / "samples" / "a.txt").write_text("雨还在下。\n", encoding="utf-8")
    (folder / "corpus.jsonl").write_text('{"text": "雨还在下。", "domain": ""}\n' * 300, encoding="utf-8")
    quick, best = (api.post(f"{address}/runs/estimate", json={"budget": name}).json() for name in ("quick", "best"))
    assert quick["low"] < quick["seconds"] < quick["high"] < best["seconds"]
    assert "k: 0 is below" in said(api.post(f"{address}/runs", json={"knn_options": {"k": 0}}), 400, "bad_input")
    assert store.jobs.list() == []
    assert api.get(f"{address}/look").json() == {"rows": [], "differ": 0, "seconds": {}, "job": None}
    assert api.post(f"{address}/look").json()["kind"] == "preview"
    assert api.get(f"{address}/look").json()["job"]["state"] == "queued"
    runs = [api.post(f"{address}/runs", json={"method": "lhuc", "knn": True}).json() for _ in range(2)]
    curve = folder / "runs" / str(runs[0]["id"]) / "training" / "metrics.jsonl"
    curve.parent.mkdir(parents=True)
    curve.write_text('{"step": 1, "loss": 3.5}\n', encoding="utf-8")
    assert api.get(f"{address}/runs/{runs[0]['id']}/curve").json()["rows"] == [{"step": 1, "loss": 3.5}]
    assert api.get(f"{address}/runs/{runs[1]['id']}/curve").json()["rows"] == []
    said(api.get(f"{address}/runs/999/curve"), 404, "not_found")


def test_a_curve_holds_no_numbers_that_json_lacks(api: TestClient, project: ProjectRow, tmp_path: Path) -> None:
    folder = tmp_path / "projects" / str(project.id) / "training"
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text('{"step": 1, "loss": NaN}\n{"step": 2, "loss": 3.5}\n', encoding="utf-8")
    result = api.get(f"/api/v1/projects/{project.id}/runs/curve").json()
    assert result["rows"] == [{"step": 1, "loss": None}, {"step": 2, "loss": 3.5}]


def test_lines_of_a_comparison_are_paged_and_sorted(api: TestClient, project: ProjectRow, store: Store) -> None:
    rows = [
        {"source": f"I {n}.", "vanilla": "我。", "customized": "我。" if n % 2 else "吾。", "plugin": "Style"} for n in range(6)
    ]
    comparison = store.comparisons.create(project.id, "First", rows)
    assert api.get(f"/api/v1/projects/{project.id}/comparisons").json()["items"][0]["sentences"] == 6
    result = api.get(f"/api/v1/comparisons/{comparison.id}/lines", params={"order": "difference", "limit": 4}).json()
    assert [system["name"] for system in result["systems"]] == ["vanilla", "Style"]
    assert (result["total"], [item["place"] for item in result["items"]]) == (6, [0, 2, 4, 1])
    assert result["items"][0]["texts"] == ["我。", "吾。"]
    assert api.delete(f"/api/v1/comparisons/{comparison.id}").status_code == 204
    said(api.get(f"/api/v1/comparisons/{comparison.id}/lines"), 404, "not_found")


# -- plugins


def test_plugins_have_cards_defaults_and_copies(
    api: TestClient, project: ProjectRow, store: Store, bundle: Path, tmp_path: Path
) -> None:
    row = store.plugins.create(project.id, "Style", method="memory_adapter", path=str(bundle))
    assert api.get("/api/v1/plugins", params={"project": project.id}).json()["items"][0]["default"] is True
    card = api.get(f"/api/v1/plugins/{row.id}/card").json()
    assert card["config"]["method"] == "memory_adapter"
    download = api.get(f"/api/v1/plugins/{row.id}/download")
    assert download.content == bundle.read_bytes()
    bare = api.get(f"/api/v1/plugins/{row.id}/download", params={"with_phrases": False}).content
    assert b"phrases.jsonl" not in bare
    assert b"phrases.jsonl" in download.content
    assert not list((tmp_path / "uploads").glob("without-*"))
    address = f"/api/v1/projects/{project.id}/default-plugin"
    assert api.put(address, json={"plugin": None}).json()["default_plugin"] is None
    assert api.put(address, json={"plugin": row.id}).json()["default_plugin"] == row.id
    said(api.put(address, json={"plugin": 99}), 404, "not_found")
    assert api.delete(address).status_code == 204
    changed = api.patch(f"/api/v1/plugins/{row.id}", json={"name": "Other", "tags": ["style", "zh"]}).json()
    assert (changed["name"], changed["tags"]) == ("Other", ["style", "zh"])
    other = store.plugins.create(project.id, "Second", method="memory_adapter", path=str(bundle))
    parts = [{"plugin": row.id, "weight": 1.0}, {"plugin": other.id, "weight": 0.5}]
    stranger = store.plugins.create(store.projects.create("y", "en", "zh", "b").id, "z", method="m", path="x.zip")
    wrong = [*parts[:1], {"plugin": stranger.id}]
    blends = f"/api/v1/projects/{project.id}/blends"
    said(api.post(blends, json={"name": "Both", "parts": wrong}), 404, "not_found")
    said(api.post(blends, json={"name": "Both", "parts": [*parts, parts[0]]}), 422, "invalid")
    store.plugins.delete(other.id)
    assert api.delete(f"/api/v1/plugins/{row.id}", params={"file": True}).status_code == 204
    assert bundle.exists(), "a file outside the project's folder is never removed"


def test_plugins_are_found_as_glossaries_and_styles(api: TestClient, project: ProjectRow, store: Store, bundle: Path) -> None:
    row = store.plugins.create(project.id, "Style", method="memory_adapter", path=str(bundle))
    (result,) = api.get("/v2/glossaries").json()["glossaries"]
    assert (result["name"], result["source_lang"], result["target_lang"]) == ("Style", "en", "zh")
    assert api.get(f"/v2/glossaries/{result['glossary_id']}").json() == result
    entries = api.get(f"/v2/glossaries/{result['glossary_id']}/entries")
    assert (entries.status_code, entries.text) == (200, "")
    assert entries.headers["content-type"].startswith("text/tab-separated-values")
    (style,) = api.get("/v3/style_rules").json()["style_rules"]
    assert style["style_id"] == result["glossary_id"]
    assert api.get("/v2/glossaries/x").json() == {"message": "There is no glossary x."}
    deps = api.app.state.deps  # type: ignore[attr-defined]
    assert deps.route(plugin=str(row.id)).plugin == row
    assert deps.route(project="lu xun", plugin="style").plugin == row
    assert deps.route(project="Lu Xun", plugin="base").plugin is None
    assert deps.route("en", "zh").plugin == row, "the default of the project of these languages"
    assert deps.route("zh", "en", project="Lu Xun").plugin is None, "the other direction is the base's"
    assert deps.route("", "zh", text="The rain stopped, and nobody came.").source == "en"


# -- requests of other services, refused in their words


def test_libretranslate_tells_what_is_missing(api: TestClient) -> None:
    def error(**request: Any) -> str:
        answer = api.post("/translate", **request)
        assert answer.status_code == 400
        assert set(answer.json()) == {"error"}
        return str(answer.json()["error"])

    assert error(data={"q": "Hi"}).startswith("target: ")
    assert error(json={"q": 3, "target": "zh"}).startswith("q")
    assert "not a language code" in error(json={"q": "Hi", "target": "x!"})
    assert "Nothing here translates" in error(json={"q": "Hi", "source": "en", "target": "tlh"})
    assert "valid JSON" in error(content=b"{q", headers={"Content-Type": "application/json"})
    assert api.post("/detect", data={"q": "The rain stopped and nobody came."}).json()[0]["language"] == "en"
    assert api.post("/detect", json={"q": "123"}).json() == []
    assert api.post("/cat/99/translate", json={"q": "Hi", "target": "zh"}).status_code == 404


def test_deepl_tells_what_is_missing(api: TestClient) -> None:
    for request in ({"json": {"text": ["Hi"]}}, {"data": {"text": "Hi"}}, {"json": {"text": [], "target_lang": "ZH"}},
                  {"json": {"text": ["Hi"], "target_lang": "ZH", "tag_handling": "x"}}):  # fmt: skip
        answer = api.post("/v2/translate", **request)  # type: ignore[arg-type]
        assert answer.status_code == 400
        assert set(answer.json()) == {"message"}
    wish = {"text": ["<b>Hi"], "target_lang": "ZH", "source_lang": "EN", "tag_handling": "xml"}
    assert "not well-formed" in api.post("/v2/translate", json=wish).json()["message"]
    named = wish | {"tag_handling": None, "style_id": "nobody"}
    assert api.post("/v2/translate", json=named).status_code == 404
    for formality in ("rude", "more"):
        wish = {"text": ["Yes."], "target_lang": "ZH", "formality": formality}
        refused = api.post("/v2/translate", json=wish)
        assert (refused.status_code, "formality" in refused.json()["message"]) == (400, True)
    assert "message" in api.get("/v3/nothing").json()
    assert api.post("/v2/usage").json() == api.get("/v2/usage").json()
    assert api.post("/v2/languages", data={"type": "target"}).json() == api.get("/v2/languages?type=target").json()
    sources = {language["language"] for language in api.get("/v2/languages").json()}
    targets = {language["language"] for language in api.get("/v2/languages", params={"type": "target"}).json()}
    assert {"EN", "ZH", "DE"} <= sources
    assert {"EN-GB", "EN-US", "ZH", "ZH-HANS", "DE"} <= targets
