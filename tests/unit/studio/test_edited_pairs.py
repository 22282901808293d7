"""Edited translations as samples, over the service and over REST; segments of a document; alternatives over REST."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from engine.corpora import import_corpus
from engine.errors import InputError
from engine.store import ProjectRow
from studio.api import create_api
from studio.services.edited_pairs import edited_pairs, learn
from studio.services.samples import EDITED
from studio.services.service import Service
from tests.bases import SAMPLES
from tests.unit.studio.test_api import HERE, said

PAIR = ("The rain stopped.", "雨停了。")


@pytest.fixture
def chinese(service: Service, project: ProjectRow) -> Path:
    """The project's samples: sentences without translations."""
    folder = path_of(service, project).parent
    folder.mkdir(parents=True)
    return Path(shutil.copy(SAMPLES / "literary-zh" / "literary-zh.txt", folder))


@pytest.fixture
def api(service: Service) -> TestClient:
    return TestClient(create_api(service), raise_server_exceptions=False, **HERE)  # type: ignore[arg-type]


def path_of(service: Service, project: ProjectRow) -> Path:
    return service.workspace(project.id) / "samples" / EDITED


def test_a_pair_becomes_a_sample_file_and_the_samples_are_read(service: Service, project: ProjectRow, chinese: Path) -> None:
    first = learn(service, project, "  The rain\nstopped. ", "雨停了。")
    assert (first.count, first.added) == (1, True)
    assert first.job is not None
    assert str(path_of(service, project)) in first.job.arguments["samples"]
    again = learn(service, project, *PAIR)
    assert (again.count, again.added, again.job) == (1, False, None)
    second = learn(service, project, "He opened the door.", '他"打开"\t了门。')
    assert second.job is not None
    assert second.job.id == first.job.id, "the job that waits will see both"
    corpus = import_corpus([path_of(service, project)], "zh", source_language="en")
    assert [(segment.source, segment.text) for segment in corpus.segments] == [PAIR, ("He opened the door.", '他"打开" 了门。')]


def test_an_edit_of_an_edit_takes_its_place(service: Service, project: ProjectRow) -> None:
    learn(service, project, *PAIR)
    changed = learn(service, project, PAIR[0], "雨终于停了。", replaces=PAIR[1])
    assert (changed.count, changed.added) == (1, True)
    assert edited_pairs(service, project.id) == [(PAIR[0], "雨终于停了。")]
    learn(service, project, PAIR[0], "雨住了。", replaces="what never was")
    assert len(edited_pairs(service, project.id)) == 2


def test_a_few_pairs_alone_wait_for_more(service: Service, project: ProjectRow) -> None:
    for number in range(19):
        assert learn(service, project, f"Sentence {number}.", f"第{number}句。").job is None
    assert "once there are at least 20 pairs" in service.unread_files(project.id)[EDITED]
    assert learn(service, project, "The last.", "最后一句。").job is not None


def test_beside_samples_without_translations_and_with_a_removed_file(service: Service, project: ProjectRow, chinese: Path) -> None:
    learn(service, project, *PAIR)
    corpus = import_corpus(service.sample_files(project.id), "zh", source_language="en")
    assert sum(segment.source is not None for segment in corpus.segments) == 1
    service.remove_sample(project, EDITED)
    learn(service, project, "He left.", "他走了。")
    assert edited_pairs(service, project.id) == [("He left.", "他走了。")]
    assert service.removed_samples(project.id) == [], "bringing it back would replace the new one"


def test_at_once_each_pair_counts_once(service: Service, project: ProjectRow) -> None:
    pairs = [(f"Sentence {number % 10}.", f"第{number % 10}句。") for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda pair: learn(service, project, *pair), pairs))
    assert sorted(edited_pairs(service, project.id)) == sorted(set(pairs))
    assert [path.name for path in path_of(service, project).parent.iterdir()] == [EDITED], "no half of a file is left"


def test_what_is_no_pair_is_refused(service: Service, project: ProjectRow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "settings", service.settings.replace(max_upload_mib=1))
    for source, translation in (("", "雨"), ("Rain", "\u200b \n")):
        with pytest.raises(InputError, match="one of them is empty"):
            learn(service, project, source, translation)
    with pytest.raises(InputError, match="at most 1,000 characters"):
        learn(service, project, "Rain", "雨" * 1001)
    assert not path_of(service, project).exists()
    path_of(service, project).parent.mkdir(parents=True)
    row = json.dumps({"source": "x", "target": "y" * (1 << 20)}) + "\n"
    path_of(service, project).write_text(row, encoding="utf-8")
    with pytest.raises(InputError, match="as large as a sample file may be"):
        learn(service, project, *PAIR)
    assert path_of(service, project).read_text(encoding="utf-8") == row


def test_over_rest(api: TestClient, project: ProjectRow, chinese: Path) -> None:
    address = f"/api/v1/projects/{project.id}/samples/pairs"
    wish = {"text": PAIR[0], "translation": PAIR[1], "source": "en-GB", "target": "zh"}
    answer = api.post(address, json=wish)
    assert answer.status_code == 201
    assert (answer.json()["added"], answer.json()["pairs"]) == (True, 1)
    assert answer.json()["job"]["kind"] == "prepare"
    assert api.post(address, json=wish).json() == {"added": False, "pairs": 1, "job": None}
    other = api.post(address, json={**wish, "source": "zh", "target": "en"})
    assert "translates from English to Chinese, and this pair is from Chinese to English" in said(other, 400, "bad_input")
    assert "is empty" in said(api.post(address, json={**wish, "translation": " "}), 400, "bad_input")
    assert api.post(address, json={"text": "x"}).status_code == 422
    assert api.post("/api/v1/projects/99/samples/pairs", json=wish).status_code == 404
    files = api.get(f"/api/v1/projects/{project.id}/samples").json()["files"]
    assert [file["name"] for file in files] == [EDITED, chinese.name]


def test_alternatives_over_rest(api: TestClient, project: ProjectRow) -> None:
    wish = {"text": "The rain stopped.", "project": str(project.id), "count": 3}
    alternatives = api.post("/api/v1/alternatives", json=wish).json()
    assert 1 < len(alternatives["sentences"]) <= 3
    assert alternatives["words"][0]["probability"] >= alternatives["words"][-1]["probability"] > 0
    begun = api.post("/api/v1/alternatives", json={**wish, "prefix": "大雨"}).json()
    assert all(sentence.startswith("大雨") for sentence in begun["sentences"])
    several = api.post("/api/v1/alternatives", json={**wish, "text": "The rain stopped. He opened the door."})
    assert "for one sentence" in said(several, 400, "bad_input")


def test_segments_of_a_document_over_rest(api: TestClient, service: Service, project: ProjectRow) -> None:
    number, folder = document(service, project)
    address = f"/api/v1/documents/{number}/segments"
    page = api.get(address, params={"limit": 1}).json()
    assert page["total"] == 2
    assert page["items"][0] | {"place": ""} == {
        "index": 0, "place": "", "source": "The rain stopped.", "translation": "雨停了。", "doubt": "", "edited": False,
    }  # fmt: skip
    assert api.patch(f"{address}/0", json={"translation": "大雨停了。"}).status_code == 204
    built = (folder / "Rain.zh.html").read_text(encoding="utf-8")
    assert "<p>大雨<b>停了</b>。" in built
    assert "<p>他走了。" in built
    assert api.get(address).json()["items"][0]["edited"] is True
    assert "has no segment 3" in said(api.patch(f"{address}/2", json={"translation": "x"}), 400, "bad_input")
    assert "needs a translation" in said(api.patch(f"{address}/1", json={"translation": " "}), 400, "bad_input")
    (folder / "source.html").write_text("<html><p>Other", encoding="utf-8")
    assert "has changed since" in said(api.patch(f"{address}/0", json={"translation": "x"}), 400, "bad_input")
    assert (folder / "Rain.zh.html").read_text(encoding="utf-8") == built
    (folder / "segments.jsonl").unlink()
    assert api.get(address).json()["total"] == 0
    assert "no segments to edit" in said(api.patch(f"{address}/0", json={"translation": "x"}), 400, "bad_input")


def document(service: Service, project: ProjectRow) -> tuple[int, Path]:
    """The number and the folder of a translated document of two segments."""
    folder = service.workspace(project.id) / "documents" / "x"
    folder.mkdir(parents=True)
    (folder / "source.html").write_text("<html><p>The rain <b>stopped</b>.<p>He left.", encoding="utf-8")
    (folder / "Rain.zh.html").write_text("<html><p>雨<b>停了</b>。<p>他走了。", encoding="utf-8")
    parts: list[Any] = ["雨", ["open", 1], "停了", ["close", 1], "。"]
    rows = [
        {"place": "line 1", "source": "The rain stopped.", "parts": parts, "doubt": ""},
        {"place": "line 1", "source": "He left.", "parts": ["他走了。"], "doubt": "Odd."},
    ]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    (folder / "segments.jsonl").write_text("".join(lines), encoding="utf-8")
    arguments = {"document": str(folder / "source.html"), "name": "Rain.html", "plugin_id": None, "strength": 1.0}
    job = service.store.jobs.enqueue("translate", arguments, project_id=project.id)
    claimed = service.store.jobs.claim("test")
    assert claimed is not None
    service.store.jobs.finish(job.id, claimed.attempt, {"output": str(folder / "Rain.zh.html"), "units": 2})
    return job.id, folder
