"""What the pages Phrases, Compare, Rate, Plugins and Translate do, asked of the REST interface."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from test_api import asked, said

from engine.store import ProjectRow, Store
from tests.bases import EN_ZH, SAMPLES

LINES = (SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:40]
ROWS = [
    {"source": f"The rain stopped {n} times.", "vanilla": f"雨停了{n}次。", "customized": f"雨停了{n}回。" if n else "雨停了0次。",
     "plugin_id": None, "plugin": "Style", "method": "lhuc", "strength": 1.0}
    for n in range(6)
]  # fmt: skip


@pytest.fixture
def api(tmp_path: Path) -> TestClient:
    return asked(tmp_path)


@pytest.fixture
def project(store: Store, tmp_path: Path) -> ProjectRow:
    """A project whose samples were read."""
    from engine.corpora import import_corpus
    from engine.phrases import PhraseOptions, extract_phrases

    row = store.projects.create("Lu Xun", "en", "zh", str(EN_ZH))
    folder = tmp_path / "projects" / str(row.id)
    (folder / "samples").mkdir(parents=True)
    (folder / "samples" / "a.txt").write_text("\n".join(LINES), encoding="utf-8")
    corpus = import_corpus([folder / "samples" / "a.txt"], "zh")
    corpus.save(folder)
    texts = [segment.text for segment in corpus.segments]
    extract_phrases(texts, "zh", PhraseOptions(parser="statistical")).save(folder / "phrases.jsonl")
    return row


# -- phrases


def test_phrases_are_explored(api: TestClient, project: ProjectRow, store: Store) -> None:
    address = f"/api/v1/projects/{project.id}/phrases"
    result = api.get(f"{address}/typical", params={"limit": 5}).json()
    assert result["total"] > 20
    assert len(result["items"]) == 5
    first = result["items"][0]
    assert first["in_samples"] >= first["count"] > 0
    assert first["log_ratio"] is None or first["low"] <= first["log_ratio"] <= first["high"]
    holding = api.get(f"{address}/sentences", params={"phrase": first["text"]}).json()
    assert holding["total"] > 0
    assert all(first["text"] in item["text"] for item in holding["items"])
    api.post(f"{address}/exclusions", json={"action": "exclude", "phrases": [first["text"]]})
    again = api.get(f"{address}/typical", params={"search": first["text"]}).json()["items"]
    assert next(item for item in again if item["text"] == first["text"])["excluded"] is True
    table = list(csv.DictReader(io.StringIO(api.get(f"{address}/export").text.removeprefix("\ufeff"))))
    assert len(table) == result["total"]
    assert sum(int(row["left_out"]) for row in table) >= 1
    said(api.get(f"{address}/map"), 409, "conflict")
    job = api.post(f"{address}/map")
    assert (job.status_code, job.json()["kind"]) == (202, "phrase_map")
    assert api.post(f"{address}/map").json()["id"] == job.json()["id"], "one under way is not queued again"
    bare = store.projects.create("Bare", "en", "zh", str(EN_ZH))
    said(api.get(f"/api/v1/projects/{bare.id}/phrases/typical"), 409, "conflict")


# -- comparisons


def test_comparisons_of_several_plugins_are_queued_read_and_exported(
    api: TestClient, project: ProjectRow, store: Store, bundle: Path
) -> None:
    first, second = (store.plugins.create(project.id, name, method="lhuc", path=str(bundle)) for name in ("One", "Two"))
    address = f"/api/v1/projects/{project.id}/comparisons"
    wish: dict[str, Any] = {"texts": ["The rain stopped.", " ", "He  waited."], "references": ["雨停了。", "", ""]}
    wish["systems"] = [{"plugin": "One"}, {"plugin": str(second.id), "strength": 0.5}]
    answer = api.post(f"{address}/sheets", json=wish)
    assert answer.status_code == 202, answer.text
    text, job = answer.json()["comparison"], answer.json()["job"]
    assert [row["name"] for row in text["systems"]] == ["vanilla", "One", "Two"]
    assert [row["strength"] for row in text["systems"]] == [1.0, 1.0, 0.5]
    assert (text["sentences"], text["translated"], text["references"], text["job"]) == (2, 0, 1, job["id"])
    assert (job["kind"], job["state"]) == ("compare", "queued")
    assert api.post(f"/api/v1/comparisons/{text['id']}/measure").json()["id"] == job["id"]
    lines = api.get(f"/api/v1/comparisons/{text['id']}/lines").json()
    assert [(line["source"], line["reference"]) for line in lines["items"]] == [
        ("The rain stopped.", "雨停了。"),
        ("He waited.", None),
    ]
    assert lines["items"][0]["texts"] == [None, None, None]
    turned = api.put(f"/api/v1/comparisons/{text['id']}/systems/1", json={"strength": 0.3})
    assert turned.json()["systems"][1]["strength"] == 0.3, "also while the job works"
    store.jobs.cancel(job["id"])
    turned = api.put(f"/api/v1/comparisons/{text['id']}/systems/1", json={"strength": 0.3}).json()
    assert turned["systems"][1]["strength"] == 0.3
    said(api.put(f"/api/v1/comparisons/{text['id']}/systems/0", json={"strength": 0.3}), 404, "not_found")
    named = api.patch(f"/api/v1/comparisons/{text['id']}", json={"title": "Rain"}).json()
    assert (named["title"], named["kept"]) == ("Rain", False)
    assert [row["title"] for row in api.get(address).json()["items"]] == ["Rain"]
    short = api.post(f"{address}/sheets", json={"texts": ["Hi."], "references": []})
    assert "Give one per text" in said(short, 422, "invalid")
    many = [{"plugin": str(first.id)}] * 4
    said(api.post(f"{address}/sheets", json={"texts": ["Hi."], "systems": many}), 422, "invalid")


def test_terms_of_a_project_are_read_and_set(api: TestClient, project: ProjectRow) -> None:
    address = f"/api/v1/projects/{project.id}/terms"
    assert api.get(address).json() == {"text": ""}
    assert api.put(address, json={"text": "rain = 雨\n"}).json() == {"text": "rain = 雨\n"}
    assert "line 1" in said(api.put(address, json={"text": "a\tb\tc"}), 400, "bad_input")
    assert api.get(address).json() == {"text": "rain = 雨\n"}
    said(api.get("/api/v1/projects/99999/terms"), 404, "not_found")


def test_terms_of_a_project_come_from_a_termbase(api: TestClient, project: ProjectRow) -> None:
    address = f"/api/v1/projects/{project.id}/terms"
    tbx = (
        '<tbx><text><body><conceptEntry><langSec xml:lang="en-GB"><termSec><term>rain</term></termSec></langSec>'
        '<langSec xml:lang="zh-CN"><termSec><term>雨</term></termSec></langSec></conceptEntry></body></text></tbx>'
    )
    answer = api.post(f"{address}/file", files={"file": ("our.tbx", tbx.encode())})
    assert (answer.status_code, answer.json()) == (200, {"text": "rain\t雨"})
    assert api.post(f"{address}/file", files={"file": ("a.csv", "snow,雪\n".encode())}).json() == {"text": "snow\t雪"}
    why = said(api.post(f"{address}/file", files={"file": ("our.tbx", b"PK\x03\x04")}), 400, "bad_input")
    assert why.startswith("our.tbx, line 1: the XML is damaged"), why
    why = said(api.post(f"{address}/file", files={"file": ("long.tsv", b"weather\tWetter\n" * 19_000)}), 400, "bad_input")
    assert "long.tsv have more than 200,000 characters" in why
    assert api.get(address).json() == {"text": "snow\t雪"}, "what was refused changes nothing"


def test_files_are_compared_by_their_lines(api: TestClient, project: ProjectRow) -> None:
    address = f"/api/v1/projects/{project.id}/comparisons/files"
    english = "\n".join(["The rain stopped.", "He had waited for a letter.", "Nobody came to the door."])
    chinese = "\n".join(["雨停了。", "他等过一封信。", "没有人到门口来。"])
    files = [("files", ("x.zh.txt", chinese.encode())), ("files", ("x.en.txt", english.encode()))]
    answer = api.post(address, files=files, data={"title": "Three"})
    assert answer.status_code == 202, answer.text
    assert answer.json()["comparison"]["references"] == 3
    assert answer.json()["notes"] == ["x.en.txt holds the sentences, x.zh.txt their references."]
    wrong = api.post(address, files=[("files", ("x.txt", chinese.encode()))])
    assert "x.txt is in Chinese" in said(wrong, 400, "bad_input")
    assert "/" not in wrong.json()["error"]["message"], "no path of this machine"
    said(api.post(address, files=files, data={"systems": "[3"}), 422, "invalid")


def test_comparisons_are_exported(api: TestClient, project: ProjectRow, store: Store, tmp_path: Path) -> None:
    row = store.comparisons.create(project.id, "First", ROWS)
    address = f"/api/v1/comparisons/{row.id}"
    assert api.get(address).json()["different"] == 5
    assert zipfile.is_zipfile(io.BytesIO(api.get(f"{address}/export").content))
    assert len(api.get(f"{address}/export", params={"format": "json"}).json()["lines"]) == len(ROWS)
    for format, mark in (("tmx", "<tmx"), ("html", "<html")):
        assert mark in api.get(f"{address}/export", params={"format": format}).text
    said(api.get(f"{address}/export", params={"format": "pdf"}), 422, "invalid")
    assert not list((tmp_path / "uploads").glob("comparison-*"))
    assert api.get(f"{address}/figures").json() == []
    reading = f"{address}/lines/0/reading"
    said(api.get(f"{address}/lines/99/reading", params={"system": 0, "start": 0, "end": 1}), 404, "not_found")
    assert "base alone" in api.get(reading, params={"system": 0, "start": 0, "end": 1}).json()["why"]
    said(api.get(reading, params={"system": 0, "start": 5, "end": 500}), 400, "bad_input")


# -- ratings


def test_a_round_is_rated_by_program(api: TestClient, project: ProjectRow, store: Store) -> None:
    comparison = store.comparisons.create(project.id, "First", ROWS)
    address = f"/api/v1/projects/{project.id}/ratings"
    wish = {"comparison": comparison.id, "one": "Style", "two": "vanilla", "raters": ["Ann"], "sentences": 4}
    result = api.post(address, json=wish)
    assert result.status_code == 201, result.text
    row = result.json()
    assert (row["sentences"], row["about"]["same"], len(row["about"]["examples"])) == (4, 1, 5)
    round_ = f"/api/v1/ratings/{row['id']}"
    assert row["raters"][0]["address"].startswith("/rating/")
    ann = f"{round_}/raters/{row['raters'][0]['id']}"
    task = api.get(f"{ann}/task").json()
    assert (task["total"], task["done"]) == (4, 0)
    assert "Style" not in json.dumps(task)
    assert {task["a"], task["b"]} == {
        text for sentence in ROWS if sentence["source"] == task["source"] for text in (sentence["vanilla"], sentence["customized"])
    }
    for question in ("content", "fluency", "style"):
        better = "a" if task["a"].endswith("回。") else "b"
        after = api.post(f"{ann}/answers", json={"item": task["item"], "question": question, "side": better}).json()
    assert after["done"] == 1
    assert api.post(f"{ann}/skip", json={"item": after["item"]}).json()["skipped"] == 1
    assert api.post(f"{ann}/again").json()["skipped"] == 0
    assert api.post(f"{ann}/undo").json()["done"] == 0
    api.post(f"{ann}/answers", json={"item": task["item"], "question": "style", "side": better})
    message = api.get(f"{round_}/summary").json()
    assert "style" in message["text"]
    assert message["summary"]
    exported = list(csv.DictReader(io.StringIO(api.get(f"{round_}/export").text)))
    assert [(line["rater"], line["style"]) for line in exported] == [("Ann", "win")]
    assert api.get(f"{round_}/export", params={"format": "json"}).json()["raters"] == ["Ann"]
    more = api.post(f"{round_}/raters", json={"name": "Bo"}).json()
    assert [rater["name"] for rater in more["raters"]] == ["Ann", "Bo"]
    assert "already" in said(api.post(f"{round_}/raters", json={"name": "Bo"}), 400, "bad_input")
    assert api.delete(f"{round_}/raters/{more['raters'][1]['id']}").status_code == 204
    closed = api.patch(round_, json={"closed": True, "title": "Spring"}).json()
    assert (closed["closed"] is None, closed["title"]) == (False, "Spring")
    assert "closed" in said(api.post(f"{ann}/undo"), 400, "bad_input")
    assert api.patch(round_, json={"closed": False}).json()["closed"] is None
    assert api.get(address).json()["total"] == 1
    wrong = wish | {"one": "Nobody"}
    assert "no system Nobody" in said(api.post(address, json=wrong), 400, "bad_input")
    assert api.delete(round_).status_code == 204
    said(api.get(round_), 404, "not_found")


# -- documents


def test_documents_are_taken_in_and_given_back(
    api: TestClient, project: ProjectRow, store: Store, bundle: Path, tmp_path: Path
) -> None:
    plugin = store.plugins.create(project.id, "Style", method="memory_adapter", path=str(bundle))
    address = f"/api/v1/projects/{project.id}/documents"
    page = b"<p>The rain <b>stopped</b>.</p>"
    answer = api.post(address, files={"file": ("page.html", page)}, data={"strength": "0.5"})
    assert answer.status_code == 202, answer.text
    row = answer.json()
    assert (row["name"], row["plugin"], row["plugin_name"], row["strength"]) == ("page.html", plugin.id, "Style", 0.5)
    assert (row["job"]["kind"], row["job"]["state"], row["output"]) == ("translate", "queued", "")
    assert str(tmp_path) not in answer.text, "no path of this machine"
    alone = api.post(address, files={"file": ("a.srt", b"1\n00:00:01,000 --> 00:00:02,000\nHi.\n")}, data={"plugin": "base"})
    assert alone.json()["plugin"] is None
    assert [item["name"] for item in api.get(address).json()["items"]] == ["a.srt", "page.html"]
    assert "no translation" in said(api.get(f"/api/v1/documents/{row['id']}/download"), 409, "conflict")
    folder = Path(store.jobs.get(row["id"]).arguments["document"]).parent
    (folder / "page.zh.html").write_text("<p>雨<b>停了</b>。</p>", encoding="utf-8")
    claimed = store.jobs.claim("here:1")
    assert claimed is not None
    done = {"output": str(folder / "page.zh.html"), "title": "Web page", "units": 1, "characters": 17, "kept": {}, "doubtful": 0}
    store.jobs.finish(claimed.id, claimed.attempt, done)
    text = api.get(f"/api/v1/documents/{row['id']}").json()
    assert (text["output"], text["report"]["characters"], "output" in text["report"]) == ("page.zh.html", 17, False)
    assert "停了" in api.get(f"/api/v1/documents/{row['id']}/download").text
    assert "no format" in said(api.post(address, files={"file": ("a.exe", b"x")}), 400, "bad_input")
    said(api.post(address, files={"file": ("a.txt", b"Hi.")}, data={"options": "[1]"}), 422, "invalid")
    assert "surprise" in said(
        api.post(address, files={"file": ("a.txt", b"Hi.")}, data={"options": '{"surprise": 1}'}), 400, "bad_input"
    )
    assert api.delete(f"/api/v1/documents/{row['id']}").status_code == 204
    assert not folder.exists()
    other = store.jobs.enqueue("prepare", {}, project_id=project.id)
    said(api.get(f"/api/v1/documents/{other.id}"), 404, "not_found")


def test_deepls_documents_need_their_key(api: TestClient, project: ProjectRow, store: Store) -> None:
    form = {"target_lang": "ZH", "source_lang": "EN"}
    sent = api.post("/v2/document", files={"file": ("a.txt", b"The rain stopped.")}, data=form)
    assert sent.status_code == 200, sent.text
    handle = sent.json()
    address, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
    assert api.post(address, json=key).json() == {"document_id": handle["document_id"], "status": "queued"}
    assert api.post(address, data=key).json()["status"] == "queued"
    for wrong in (api.post(address, json={"document_key": "x"}), api.post(address), api.post("/v2/document/zz", json=key)):
        assert wrong.status_code == 404
        assert set(wrong.json()) == {"message"}
    assert api.post(f"{address}/result", json=key).status_code == 503  # not ready, by DeepL's own words for it
    job = store.jobs.list(project.id)[0]
    store.jobs.cancel(job.id)
    text = api.post(address, json=key).json()
    assert (text["status"], "cancelled" in text["error_message"]) == ("error", True)
    back = api.post("/v2/document", files={"file": ("a.txt", "雨。".encode())}, data={"target_lang": "EN", "source_lang": "ZH"})
    assert (back.status_code, "message" in back.json()) == (400, True)
    other = api.post("/v2/document", files={"file": ("a.txt", b"Hi.")}, data={**form, "output_format": "docx"})
    assert "keeps its format" in other.json()["message"]
    assert api.post("/v2/document", data=form).status_code == 400
    assert api.get("/v2/usage").json()["character_count"] >= len("The rain stopped.")


# -- plugins, trainings


def test_a_bundle_is_looked_over_before_it_is_taken_in(api: TestClient, project: ProjectRow, store: Store, bundle: Path) -> None:
    address = f"/api/v1/projects/{project.id}/plugins/check"
    result = api.post(address, files={"file": ("style.zip", bundle.read_bytes())}).json()
    names = [check["name"] for check in result]
    assert names[:4] == ["file", "format", "languages", "base"]
    assert [check["ok"] for check in result][-1] is False, "it was made for another base"
    broken = api.post(address, files={"file": ("x.zip", b"PK\x03\x04 no bundle")}).json()
    assert [check["ok"] for check in broken] == [False]
    assert "x.zip" in broken[0]["sentence"]
    assert store.plugins.list() == []
    rows = [store.plugins.create(project.id, "Style", method="m", path=str(bundle)) for _ in range(2)]
    assert [api.get(f"/api/v1/plugins/{row.id}").json()["version"] for row in rows] == [1, 2]


def test_a_run_can_take_another_base_and_tells_its_use(api: TestClient, project: ProjectRow, store: Store) -> None:
    address = f"/api/v1/projects/{project.id}/runs"
    assert "no base nothing" in said(api.post(address, json={"base": "nothing"}), 404, "not_found")
    job = api.post(address, json={"base": "en-zh", "budget": "quick"}).json()
    usage = f"/api/v1/jobs/{job['id']}/usage"
    assert api.get(usage).json() == {"cpu": None, "memory": None, "peak": None, "gpu": None, "gpu_total": None}
    store.usage.note(job["id"], cpu=99.5, memory=10, peak=12)
    assert api.get(usage).json()["cpu"] == 99.5
    assert {option["name"] for option in api.get("/api/v1/options/documents").json()} >= {"review", "wrapped"}
