"""The pages Home and Samples without a browser: views of single sentences, uploads, projects at a glance, deletion."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.corpora import Decisions, SampleFiles, import_to
from engine.corpora.leakage import check_leaks
from engine.errors import InputError
from engine.jobs.registry import KINDS, JobContext
from engine.messages import unpack
from engine.store import ProjectRow
from engine.store.project_files import delete_project, finish_deletions
from studio.auth.identity import RequestIdentity
from studio.components.import_report import files_card, leak_card, length_bars, side_cards, unread_card
from studio.components.import_status import job_line
from studio.components.new_project_form import NewProjectForm
from studio.components.sentence_list import change_bar, sentence_card
from studio.pages.home import home_cards
from studio.services import jsonl_pages
from studio.services.catalog import ACCEPTED
from studio.services.jsonl_pages import open_lines
from studio.services.new_project import language_of, start_from_samples, start_project
from studio.services.projects import project_summaries
from studio.services.segments import PAGE, View, chosen, listing, view_counts
from studio.services.service import Service
from studio.services.uploads import check_files, own_key, server_files, stash, stashed, take_files
from tests.documents import docx, tmx, word_paragraph
from tests.unit.studio.test_html import HOSTILE, Reader

ROOT = Path(__file__).resolve().parents[3]
BASE = ROOT / "assets" / "models" / "en-zh"
SAMPLES = ROOT / "assets" / "samples"
DIRTY = [SAMPLES / "reviews-zh" / name for name in ("export.csv", "notes.txt")]
ZH = SAMPLES / "literary-zh" / "literary-zh.txt"


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(Settings(home=str(tmp_path / "home"), max_upload_mib=1, max_upload_files=3))


@pytest.fixture
def project(service: Service) -> ProjectRow:
    return service.create_project("Tea", "en", "zh", str(BASE))


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the untidy sample, read."""
    folder = tmp_path_factory.mktemp("read")
    import_to(folder, SampleFiles(DIRTY, "zh"))
    return folder


def report_of(folder: Path) -> dict[str, object]:
    data: dict[str, object] = json.loads((folder / "import_report.json").read_text(encoding="utf-8"))
    return data


# --- views of single sentences


def test_every_view_shows_what_the_report_counts(read: Path) -> None:
    report, decisions = report_of(read), Decisions()
    counts = view_counts(report, {}, decisions)
    for name in ("kept", "noticed", "near", "skipped", "decided", "leaks"):
        result = listing(read, report, decisions, View(view=name))
        if name == "noticed":  # a sentence may be noticed twice
            assert result.total <= (counts[name] or 0)
        else:
            assert result.total == counts[name], name
        assert len(result.items) == min(result.total, PAGE)
    skipped = listing(read, report, decisions, View(view="skipped"))
    for reason, count in skipped.reasons.items():
        of_it = listing(read, report, decisions, View(view="skipped", reason=reason))
        assert of_it.total == count
        assert {item.notes for item in of_it.items} == {(reason,)}
    near = listing(read, report, decisions, View(view="near"))
    assert all(item.beside and re.search(r"\.csv \d+$", item.beside_location) for item in near.items)


def test_search_pages_and_files(read: Path) -> None:
    report, decisions = report_of(read), Decisions()
    everything = listing(read, report, decisions, View(view="kept"))
    second = listing(read, report, decisions, View(view="kept", at=PAGE))
    assert everything.items[-1] != second.items[0]
    assert listing(read, report, decisions, View(view="kept", at=10**8)).view.at == 0
    word = everything.items[3].text[1:4]
    result = listing(read, report, decisions, View(view="kept", words=word))
    assert result.total >= 1
    assert all(word in item.text for item in result.items)
    notes = listing(read, report, decisions, View(view="kept", file="notes.txt"))
    assert {item.file for item in notes.items} == {"notes.txt"}
    assert listing(read, report, decisions, View(view="kept", words="text")).total == 0, "keys of the file are no text"


def test_ten_at_random_stay_the_same_for_an_address(read: Path) -> None:
    report, decisions = report_of(read), Decisions()
    first = listing(read, report, decisions, View())
    assert len(first.items) == 10
    assert listing(read, report, decisions, View()) == first
    assert listing(read, report, decisions, View(seed=2)).items != first.items


def test_decisions_show_in_every_view_and_can_be_made_for_all(read: Path, tmp_path: Path) -> None:
    report = report_of(read)
    view = View(view="near")
    keys = chosen(read, report, Decisions(), view, "")
    assert len(keys) == 8
    decisions = Decisions.decide_keys(tmp_path, "exclude", keys)
    assert {item.decided for item in listing(read, report, decisions, view).items} == {"exclude"}
    assert listing(read, report, decisions, View(view="decided")).total == 8
    key = next(iter(keys))
    assert chosen(read, report, decisions, view, key) == {key: keys[key]}
    with pytest.raises(InputError, match="read again in the meantime"):
        chosen(read, report, decisions, view, "0" * 20)
    usable = chosen(read, report, Decisions(), View(view="skipped"), "")
    assert usable
    assert "duplicate" not in {
        item.notes[0] for item in listing(read, report, Decisions(), View(view="skipped")).items if item.usable
    }


@given(
    st.dictionaries(
        st.sampled_from(["view", "reason", "words", "file", "domain", "at", "seed", "other"]),
        st.text(max_size=20) | st.sampled_from(["kept", "skipped", "25", "-3", "9" * 30]),
    )
)
def test_any_address_is_a_view_and_back(query: dict[str, str]) -> None:
    view = View.of(query)
    assert View.of(dict(parse_qsl(view.query(at=view.at)))) == view or view.seed != 1


def test_sentences_are_safe_html_with_buttons_of_their_own(read: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    rows = [f"{HOSTILE} number {i}\t它说了{HOSTILE}第{i}句话。" for i in range(30)]
    path.write_text("source\ttarget\n" + "\n".join(rows) + "\n嗯\t嗯\n", encoding="utf-8")
    import_to(tmp_path / "w", SampleFiles([path], "zh", source_language="en"))
    report = report_of(tmp_path / "w")
    decisions = Decisions()
    for name in ("random", "kept", "noticed", "near", "skipped", "decided"):
        seen = listing(tmp_path / "w", report, decisions, View(view=name, words="它" if name == "kept" else ""))
        card = sentence_card(seen, view_counts(report, {}, decisions), 3, "zh", "en", several=False)
        parsed = Reader(re.sub(r"<(?:input|option)[^>]*>", "", card.replace("</option>", "")))
        assert "img" not in parsed.names
        assert "script" not in parsed.names
        assert card.count('data-decide="') >= (name not in ("skipped", "decided", "near"))
    assert 'href="/samples?project=3&amp;view=kept' in card
    assert change_bar(decisions, False) == ""


def test_all_sentences_in_another_language_are_excluded_at_once(read: Path, tmp_path: Path) -> None:
    report, decisions = report_of(read), Decisions()

    def card(view: View) -> str:
        seen = listing(read, report, decisions, view)
        return sentence_card(seen, view_counts(report, {}, decisions), 3, "zh", "en", several=True)

    of = View(view="noticed", reason="another language")
    button = f'data-decide="exclude" data-of="{of.query()}">Exclude all 9 in another language<'
    assert button.replace("&", "&amp;") in card(View(view="noticed"))
    assert "data-of" not in card(of)
    assert len(chosen(read, report, decisions, of, "")) == 9
    english = tmp_path / "english.txt"
    lines = (SAMPLES / "it-help-en" / "it-help.txt").read_text(encoding="utf-8").splitlines()
    english.write_text("\n".join([line for line in lines if len(line) > 40][:40]), encoding="utf-8")
    import_to(tmp_path / "w", SampleFiles([ZH, english], "zh"))
    warned = files_card(unpack(report_of(tmp_path / "w")), "zh", {}, 3)
    assert f'project=3&amp;{of.query().replace("&", "&amp;")}" data-go' in warned, "the warning leads to them"


def test_lines_of_a_file_that_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert open_lines(path) is None
    path.write_text('{"text": "Größe \\" one"}\n{"text": "two"}\n{"te', encoding="utf-8")
    lines = open_lines(path)
    assert lines is not None
    assert len(lines) == 2
    assert lines.get([1, 7, 0]) == [{"text": "two"}, {"text": 'Größe " one'}]
    assert list(lines.search('GRÖSSE "')) == list(lines.search("größe")) == [0]
    assert list(lines.search("Grosse")) == []


def test_a_page_of_a_large_corpus_parses_no_sentence_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "corpus.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for i in range(4_000):
            file.write(
                json.dumps({"text": f"这是第{i}个句子，它不长也不短。", "file": "a.txt", "line": i}, ensure_ascii=False) + "\n"
            )
    report: dict[str, object] = {"kept": 4_000}
    listing(tmp_path, report, Decisions(), View(view="kept"))
    parsed: list[object] = []
    monkeypatch.setattr(jsonl_pages, "_parsed", lambda line: parsed.append(json.loads(line)) or parsed[-1])  # type: ignore[func-returns-value]
    result = listing(tmp_path, report, Decisions(), View(view="kept", at=3_900))
    assert result.items[0].line == 3_900
    assert len(parsed) == len(result.items) == PAGE
    assert listing(tmp_path, report, Decisions(), View(view="kept", words="第3999个")).total == 1
    assert len(parsed) < 2 * PAGE + 5, "a search parses what holds its words"


# --- uploads and paths on the server


def test_uploads_are_looked_at_before_they_are_read(service: Service, project: ProjectRow, tmp_path: Path) -> None:
    bomb = docx(word_paragraph("x" * 20_000_000), tmp_path / "bomb.docx")
    with pytest.raises(InputError, match=r"^bomb\.docx would unpack to"):
        service.add_samples(project, [bomb])
    (tmp_path / "empty.txt").touch()
    with pytest.raises(InputError, match=r"^empty\.txt is empty"):
        service.add_samples(project, [tmp_path / "empty.txt"])
    files = [tmp_path / f"{i}.txt" for i in range(4)]
    for file in files:
        file.write_text("雨停了。\n", encoding="utf-8")
    with pytest.raises(InputError, match="up to 3 files"):
        service.add_samples(project, files)
    assert service.sample_files(project.id) == []
    assert service.store.jobs.list() == []


def test_two_files_of_one_name_are_both_kept_and_a_failed_copy_leaves_none(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text(folder)
    target = tmp_path / "target"
    assert take_files([tmp_path / "a" / "x.txt", tmp_path / "b" / "x.txt"], target) == ["x.txt", "x-2.txt"]
    assert sorted(path.read_text() for path in target.iterdir()) == ["a", "b"]
    with pytest.raises(OSError, match="No such file"):
        take_files([tmp_path / "a" / "x.txt", tmp_path / "gone.txt"], tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


def test_paths_on_the_server(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.tmx").write_text(tmx([("One.", "一。")]), encoding="utf-8")
    (inside / "b.txt").write_text("Text.")
    (inside / "c.png").write_bytes(b"x")
    (inside / "link.txt").symlink_to(outside / "a.tmx")
    free = Settings(home=str(tmp_path))
    assert server_files(str(outside / "a.tmx"), free) == [outside / "a.tmx"]
    assert [path.name for path in server_files(f"  '{inside}' ", free)] == ["a.tmx", "b.txt", "link.txt"]
    bound = Settings(home=str(tmp_path), server_folders=(str(inside),))
    assert [path.name for path in server_files(str(inside), bound)] == ["a.tmx", "b.txt"]
    for wrong in (outside / "a.tmx", inside / "link.txt", inside / ".." / "out" / "a.tmx", outside / "none"):
        with pytest.raises(InputError, match="not in a folder that may be read"):
            server_files(str(wrong), bound)
    with pytest.raises(InputError, match="no file at"):
        server_files(str(tmp_path / "none.txt"), free)
    with pytest.raises(InputError, match="not an absolute path"):
        server_files("a.txt", free)
    for host, mode, allowed in (
        ("0.0.0.0", "auto", False),
        ("127.0.0.1", "auto", True),
        ("0.0.0.0", "on", True),
        ("::1", "off", False),
    ):
        settings = Settings(home=str(tmp_path), host=host, server_paths=mode)
        assert settings.server_paths_allowed == allowed
    with pytest.raises(InputError, match="switched off"):
        server_files(str(inside), Settings(home=str(tmp_path), host="0.0.0.0"))
    if os.getuid() != 0:
        (inside / "b.txt").chmod(0)
        with pytest.raises(InputError, match="cannot be read by the studio"):
            server_files(str(inside / "b.txt"), free)
    assert check_files([inside / "a.tmx"], free) == {}


# --- reading again


def test_settings_of_reading_and_decisions_reach_the_job(service: Service, project: ProjectRow) -> None:
    service.set_import_options(project.id, {"inline_tags": "placeholders"})
    first = service.add_samples(project, [ZH])
    assert first.arguments["corpus_options"] == {"inline_tags": "placeholders"}
    second = service.read_again(project)
    assert service.store.jobs.get(first.id).state == "cancelled", "a reading that still waits is overtaken"
    assert service.reading(project.id) == second
    assert "Waiting for a worker" in job_line(second)
    assert 'data-act="cancel"' in job_line(second)
    with pytest.raises(InputError, match="inline_tags"):
        service.set_import_options(project.id, {"inline_tags": "x"})
    folder = service.workspace(project.id)
    import_to(folder, SampleFiles([ZH], "zh"))
    assert not service.undecided(project.id)
    keys = chosen(folder, service.report(project.id), Decisions(), View(view="kept", words=""), "")
    decisions = service.decide(project.id, "exclude", dict(list(keys.items())[:2]))
    assert service.undecided(project.id)
    assert "Undo: exclude 2 sentences" in change_bar(decisions, True)
    import_to(folder, SampleFiles([ZH], "zh"), decisions=decisions)
    assert not service.undecided(project.id)
    service.undo(project.id)
    assert service.undecided(project.id)


def test_test_files_are_compared_by_a_job(service: Service, project: ProjectRow, tmp_path: Path) -> None:
    folder = service.workspace(project.id)
    import_to(folder, SampleFiles([ZH], "zh"))
    test = tmp_path / "test.txt"
    test.write_text(ZH.read_text(encoding="utf-8").splitlines()[0] + "\n完全不同的另一句话在这里。\n", encoding="utf-8")
    job = service.add_tests(project, [test])
    assert job.kind == "leakage"
    KINDS["leakage"].run(JobContext(job, service.store, service.settings, folder, Progress()))
    leaks = service.leaks(project.id)
    assert leaks["files"] == [{"name": "test.txt", "sentences": 2, "leaked": 1}]
    card = leak_card(leaks, ["test.txt", HOSTILE], project.id)
    assert "1 of 2 are in the samples" in card
    assert "<img" not in card
    result = listing(folder, service.report(project.id), Decisions(), View(view="leaks"))
    assert [(item.notes, item.beside_location) for item in result.items] == [(("the same",), "test.txt 1")]
    service.remove_test(project, "test.txt")
    assert check_leaks(folder, "zh", "en") == {}
    with pytest.raises(InputError, match="no longer a file of this project"):
        service.remove_test(project, "../x")


def test_files_say_what_they_hold_and_lead_to_every_sentence() -> None:
    file = {
        "name": "m.tmx", "encoding": "utf-8", "lines": 900, "kept": 100, "skipped": {"in other languages": 12},
        "examples": {"in other languages": [[7, "Bonjour <b>"]]}, "notes": [], "found": {"en": 100, "zh": 100, "fr": 12},
    }  # fmt: skip
    card = files_card({"language": "zh", "files": [file]}, "zh", {}, 5)
    assert "It contains English 100, Chinese 100, French 12." in card
    assert "/samples?project=5&amp;view=skipped&amp;reason=in+other+languages&amp;file=m.tmx" in card
    assert "Bonjour &lt;b&gt;" in card
    assert unread_card({}) == ""
    assert 'data-remove="a &#34;.txt"' in unread_card({'a ".txt': ""})
    assert "damaged &lt;b&gt;" in unread_card({"a.tmx": "damaged <b>"})
    assert 'data-restore="a.txt"' in unread_card({}, ["b.txt", "a.txt"])
    assert "take effect at the next import or training" in unread_card({}, changed=True)
    refused = unread_card({"a.tmx": "damaged"}, (), {'a ".png': "no <b> text"})
    assert 'data-dismiss="a &#34;.png"' in refused
    assert re.findall(r"(?<=>)\w+(?=</button>)", refused) == ["Remove", "Remove"], "one word for what is one thing to a user"
    assert "no &lt;b&gt; text" in unread_card({}, (), {"a.png": "no <b> text"})
    assert "no &lt;b&gt; text" in leak_card({}, [], 5, {"a.png": "no <b> text"})
    assert "12 pages" in files_card({"files": [{**file, "unit": "page", "lines": 12}]})


def test_skipped_lines_are_shown_with_line_reason_and_text() -> None:
    report = {
        "language": "zh",
        "files": [
            {
                "name": "a.txt",
                "encoding": "gb18030",
                "lines": 1200,
                "kept": 1190,
                "skipped": {"too short": 7, "duplicate": 3},
                "examples": {"too short": [[12, "嗯 <b>"]]},
                "notes": ["Read as GB18030."],
            }
        ],
        "languages": {"zh": 0.97, "ja": 0.03, "en": 0.001},
        "warnings": ["3 % of the sentences look Japanese."],
    }
    card = files_card(report)
    assert "Skipped <b>10</b>: too short 7, duplicate 3" in card
    assert ">12<" in card
    assert "嗯 &lt;b&gt;" in card
    assert "1,190" in card
    page = files_card(report, "zh")
    assert "Chinese 97\u00a0%" in page
    assert "Japanese 3\u00a0%" in page
    assert "English" not in page
    assert "look Japanese" in page
    assert files_card({}, "zh") == side_cards({}) == ""


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60))
def test_every_sentence_stands_in_one_column_of_the_length_chart(lengths: list[int]) -> None:
    chart = length_bars(Counter(lengths))
    counts = [int(count.replace(",", "")) for count in re.findall(r": ([\d,]+) sentences</title>", chart)]
    assert sum(counts) == len(lengths)
    assert 1 <= len(counts) <= 12


# --- home


def test_cards_say_where_a_project_stands(service: Service, project: ProjectRow) -> None:
    other = service.create_project(HOSTILE, "en", "zh", str(BASE))
    (first, second) = project_summaries(service)
    assert first.project.id == other.id
    assert second.state == ("no samples read", "")
    corpus = service.store.corpora.create(project.id, "x", state="ready")
    service.store.corpora.update(corpus.id, kept=480)
    service.store.phrase_sets.create(corpus.id, "p.jsonl", "statistical", 6000)
    metrics = {"bleu_vanilla": 7.8, "bleu": 13.4, "bleu_p": 0.001, "chrf_vanilla": 1.0, "chrf": 2.0}
    service.store.plugins.create(project.id, "Weak", method="knn", path="/none", metrics={**metrics, "bleu": 8.0})
    service.store.plugins.create(project.id, "Strong", method="knn", path="/none", metrics=metrics)
    result = {summary.project.id: summary for summary in project_summaries(service)}[project.id]
    assert result.state == ("plugin ready", "done")
    assert (result.sentences, result.phrases, result.plugins, result.next) == (480, 6000, 2, "compare")
    assert result.best is not None
    assert (result.best.plugin, result.best.before, result.best.after) == ("Strong", 7.8, 13.4)
    elsewhere = {**metrics, "bleu_vanilla": 20.0, "bleu": 40.0}
    service.store.plugins.create(project.id, "Bought", method="knn", path="/none", metrics=elsewhere, imported=True)
    again = {summary.project.id: summary for summary in project_summaries(service)}[project.id]
    assert again.best == result.best, "what was measured on other sentences does not compare"
    easier = {**metrics, "bleu_vanilla": 20.0, "bleu": 20.2, "held_out_sentences": 7}
    service.store.plugins.create(project.id, "Easier", method="knn", path="/none", metrics=easier)
    again = {summary.project.id: summary for summary in project_summaries(service)}[project.id]
    assert again.best == result.best, "a higher score on easier sentences is no larger gain"
    cards = home_cards([result])
    assert "480 sentences · 6,000 phrases · 2 plugins" in cards
    assert "<s>7.8</s> → <b>13.4</b>" in cards
    job = service.store.jobs.enqueue("customize", {}, project_id=project.id)
    assert {summary.project.id: summary.state for summary in project_summaries(service)}[project.id] == (
        "training: waiting",
        "accent",
    )
    claimed = service.store.jobs.claim("w")
    assert claimed is not None
    service.store.jobs.fail(job.id, claimed.attempt, "It broke.")
    assert {summary.project.id: summary.state for summary in project_summaries(service)}[project.id] == ("training failed", "bad")
    hostile = Reader(home_cards([summary for summary in project_summaries(service) if summary.project.id == other.id]))
    assert "img" not in hostile.names


def test_a_project_is_deleted_with_all_its_files(service: Service, project: ProjectRow) -> None:
    other = service.create_project("Other", "en", "zh", str(BASE))
    job = service.add_samples(project, [ZH])
    service.add_samples(other, [ZH])
    log = service.settings.home_dir / "jobs" / f"{job.id}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("secret")
    delete_project(service.settings, service.store, project.id)
    assert [row.id for row in service.store.projects.list()] == [other.id]
    assert [path.name for path in (service.settings.home_dir / "projects").iterdir()] == [str(other.id)]
    assert not log.exists()
    assert [row.project_id for row in service.store.jobs.list()] == [other.id]
    with pytest.raises(InputError, match="There is no project"):
        delete_project(service.settings, service.store, project.id)


def test_a_page_that_is_still_at_work_does_not_bring_a_deleted_project_back(
    service: Service, project: ProjectRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.add_samples(project, [ZH])
    folder, delete = service.workspace(project.id), service.store.projects.delete

    def late(id: int) -> None:
        (service.workspace(id) / "cache.json").write_text("{}", encoding="utf-8")
        delete(id)

    monkeypatch.setattr(service.store.projects, "delete", late)
    delete_project(service.settings, service.store, project.id)
    assert not folder.exists()
    with pytest.raises(InputError, match="There is no project"):
        service.workspace(project.id)
    assert not folder.exists()


def test_nothing_is_half_deleted(service: Service, project: ProjectRow, monkeypatch: pytest.MonkeyPatch) -> None:
    service.add_samples(project, [ZH])
    service.store.jobs.claim("w")
    with pytest.raises(InputError, match=r"running\. Cancel it first"):
        delete_project(service.settings, service.store, project.id)
    assert service.sample_files(project.id)
    (job,) = service.store.jobs.list(project.id)
    service.store.jobs.cancelled(job.id, job.attempt)

    def fail(id: int) -> None:
        raise InputError("The database is gone.")

    with monkeypatch.context() as broken:
        broken.setattr(service.store.projects, "delete", fail)
        with pytest.raises(InputError, match="database is gone"):
            delete_project(service.settings, service.store, project.id)
    assert service.sample_files(project.id), "the files are back"


def test_a_deletion_that_a_crash_cut_off_is_finished_or_undone(service: Service, project: ProjectRow) -> None:
    service.add_samples(project, [ZH])
    root = service.settings.home_dir / "projects"
    (root / str(project.id)).rename(root / f".deleted-{project.id}-{'0' * 32}")
    gone = root / f".deleted-99-{'1' * 32}"
    gone.mkdir()
    (gone / "secret.txt").write_text("x")
    finish_deletions(service.settings, service.store)
    assert service.sample_files(project.id), "its rows are there, so its files come back"
    assert not gone.exists()


def test_a_start_that_fails_leaves_no_project(service: Service, tmp_path: Path) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"x")
    with pytest.raises(InputError, match="cannot be read as samples"):
        start_project(service, [bad], "", "en", "zh", str(BASE))
    with pytest.raises(InputError, match="no base model"):
        start_project(service, [ZH], "", "en", "zh", "")
    assert service.store.projects.list() == []
    assert list((service.settings.home_dir / "projects").glob("*")) == []


def test_a_start_from_samples_asks_for_their_terms_once(service: Service) -> None:
    corpora = [service.catalog.sample("literary-zh")]
    with pytest.raises(InputError, match="Tick “I accept these terms”"):
        start_from_samples(service, corpora, "en", "zh", str(BASE), agreed=False)
    assert service.store.projects.list() == []
    project = start_from_samples(service, corpora, "en", "zh", str(BASE), agreed=True)
    assert (service.settings.home_dir / ACCEPTED).exists()
    assert project.name == "Literary Chinese"
    assert start_from_samples(service, corpora, "en", "zh", str(BASE), agreed=False).id != project.id


def test_a_sample_of_other_languages_brings_them_its_base_and_its_terms_onto_the_form(service: Service) -> None:
    service.catalog.accept(service.catalog.base_card(str(BASE)), BASE)
    form = NewProjectForm(service)
    with gr.Blocks():
        form.layout()
    click: Any = SimpleNamespace(name="letters-de-en", together="")
    german = str(BASE.with_name("de-en"))
    steps = form.create_from_samples("en", "zh", str(BASE), True, click)
    values = next(steps)
    assert (values[form.source], values[form.target], values[form.base]) == ("de", "en", german)
    assert "de-en is a demonstration model" in values[form.terms]
    assert values[form.agreed]["visible"]
    assert values[form.agreed]["value"] is False
    with pytest.raises(InputError, match="Tick “I accept these terms”"):  # the tick beside other terms was for those
        next(steps)
    (done,) = form.create_from_samples("de", "en", german, True, click)
    assert list(done) == [form.address]
    (project,) = service.store.projects.list()
    assert (project.source, project.target, project.base) == ("de", "en", german)


def test_the_languages_of_all_bases_can_be_chosen_and_the_base_follows(service: Service) -> None:
    form = NewProjectForm(service)
    with gr.Blocks():
        form.layout()
    german, chinese = str(BASE.with_name("de-en")), str(BASE)
    request: Any = SimpleNamespace(query_params={"project": "new", "base": "en-zh"})
    values = form.refresh_bases(request)
    for field in (form.source, form.target):
        assert {code for _, code in values[field]["choices"]} == {"de", "en", "zh"}
    assert form.choose_source(chinese, "de", "zh") == {form.target: "en"}, "no base translates German into Chinese"
    assert form.choose_source(chinese, "zh", "zh") == {form.target: "en"}
    assert form.choose_source(german, "en", "zh") == {form.target: "zh"}, "another base does"
    assert form.choose_target(chinese, "zh", "de") == {form.source: "en"}
    follows = form.choose_languages(chinese, "de", "en")
    assert follows[form.base] == german
    assert "de-en is a demonstration model" in follows[form.terms]
    assert follows[form.agreed]["visible"]
    assert list(form.choose_languages(german, "en", "de")) == [form.terms], "the base stays, and so does the tick"
    assert list(form.choose_languages(chinese, "de", "zh")) == [form.terms]


def test_files_dropped_on_the_first_page_wait_for_the_page_samples(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("雨停了。", encoding="utf-8")
    word = stash([file, tmp_path / "gone.txt"], service.settings)
    assert stashed(word, service.settings) == [file]
    for wrong in ("", "../a", "0" * 24, word[:-1]):
        assert stashed(wrong, service.settings) == []
    old = service.settings.home_dir / "inbox" / f"{word}.json"
    os.utime(old, (1, 1))
    stash([file], service.settings)
    assert not old.exists()


def test_files_chosen_for_a_new_project_are_there_again_until_it_is_created(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, opened = NewProjectForm(service), SimpleNamespace(query_params={"project": "new"})
    with gr.Blocks():
        form.layout()
    assert form.keep([str(ZH)]) == {form.name: ZH.stem}
    values = form.fill(opened, str(BASE))
    assert (values[form.files], values[form.name]) == ([str(ZH)], ZH.stem)
    assert stashed(own_key(), service.settings) == [ZH]
    with monkeypatch.context() as patch:
        patch.setattr("studio.services.uploads.guest", lambda: RequestIdentity(address="192.0.2.7"))
        assert form.fill(opened, str(BASE))[form.files] is None, "they are somebody else's"
        assert stashed("", service.settings) == []
    assert form.keep([str(DIRTY[1])], ZH.stem) == {form.name: "notes"}, "the name follows the files"
    assert form.keep([str(ZH)], "Mine") == {form.name: "Mine"}
    form.create([str(ZH)], "", "", "en", "zh", str(BASE), True, "")
    assert form.fill(opened, str(BASE))[form.files] is None


def test_a_path_is_offered_only_where_it_can_lead_anywhere(tmp_path: Path) -> None:
    from studio.services.uploads import paths_offered

    here = Settings(home=str(tmp_path))
    assert paths_offered(here)
    assert not paths_offered(here.replace(sign_in="on"))
    assert paths_offered(here.replace(sign_in="on", server_folders=("/data",)))
    assert not paths_offered(here.replace(server_paths="off"))


def read_all(service: Service, project: ProjectRow) -> None:
    """The waiting reading, done."""
    folder = service.workspace(project.id)
    import_to(folder, SampleFiles([str(path) for path in service.sample_files(project.id)], "zh"))
    for job in service.store.jobs.list(project.id, states=["queued"]):
        service.store.jobs.cancel(job.id)


def test_removed_files_can_be_brought_back_until_the_next_reading_and_nothing_is_read(
    service: Service, project: ProjectRow, tmp_path: Path
) -> None:
    files = [ZH, tmp_path / "a.txt", tmp_path / "b.txt"]
    for number, file in enumerate(files[1:]):
        file.write_text(f"一句别处没有的话，第{number}句。\n", encoding="utf-8")
    service.add_samples(project, files)
    assert not service.files_changed(project.id), "they are about to be read"
    read_all(service, project)
    jobs = service.store.jobs.list(project.id)
    assert (service.remove_sample(project, "a.txt"), service.remove_sample(project, "b.txt")) == (None, None)
    assert service.removed_samples(project.id) == ["b.txt", "a.txt"]
    assert [path.name for path in service.sample_files(project.id)] == [ZH.name]
    assert service.files_changed(project.id)
    assert service.request(project)["samples"] == [str(path) for path in service.sample_files(project.id)]
    card = files_card(service.report(project.id), "zh", removed=["a.txt"])
    assert ('data-remove="a.txt"' in card, 'data-remove="b.txt"' in card) == (False, True)
    for name in ("a.txt", "b.txt"):
        assert service.restore_sample(project, name) is None
    assert not service.files_changed(project.id), "all is as it was read"
    assert service.store.jobs.list(project.id) == jobs, "nothing was read"
    with pytest.raises(InputError, match="can no longer be restored"):
        service.restore_sample(project, "a.txt")
    with pytest.raises(InputError, match="can no longer be restored"):
        service.restore_sample(project, "../samples/a.txt")
    service.remove_sample(project, "a.txt")
    job = service.read_again(project)
    assert str(files[1].name) not in str(job.arguments["samples"])
    assert service.removed_samples(project.id) == [], "from now on it is gone"


def test_a_file_removed_before_it_was_read_is_not_read(service: Service, project: ProjectRow, tmp_path: Path) -> None:
    extra = tmp_path / "extra.txt"
    extra.write_text("一句别处没有的话。\n", encoding="utf-8")
    first = service.add_samples(project, [ZH, extra])
    job = service.remove_sample(project, "extra.txt")
    assert job is not None
    assert "extra.txt" not in str(job.arguments["samples"])
    assert service.store.jobs.get(first.id).state == "cancelled"
    again = service.restore_sample(project, "extra.txt")
    assert again is not None
    assert "extra.txt" in str(again.arguments["samples"])
    read = service.store.jobs.claim("worker")
    assert read is not None
    assert service.reading_files(project.id)
    import_to(service.workspace(project.id), SampleFiles([str(path) for path in service.sample_files(project.id)], "zh"))
    assert not service.reading_files(project.id), "it goes on with phrases"
    assert service.remove_sample(project, "extra.txt") is None
    assert service.files_changed(project.id)


def test_the_language_of_dropped_files_is_recognised(tmp_path: Path) -> None:
    assert language_of([ZH], ["en", "zh"]) == "zh"
    assert language_of([ZH.parents[1] / "it-help-en/it-help.txt"], ["zh", "en"]) == "en"
    picture = tmp_path / "picture.txt"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    assert language_of([picture], ["en", "zh"]) is None


@pytest.mark.parametrize(("file", "into"), [(SAMPLES / "it-help-en" / "it-help.txt", "en"), (ZH, "zh")])
def test_the_form_takes_its_languages_from_the_files_wherever_they_were_dropped(service: Service, file: Path, into: str) -> None:
    form = NewProjectForm(service)
    with gr.Blocks():
        form.layout()
    away = "zh" if into == "en" else "en"
    on_samples = form.look_at_files([str(file)], str(BASE), "en", "zh")
    assert (on_samples[form.source], on_samples[form.target]) == (away, into)
    on_home: Any = SimpleNamespace(query_params={"project": "new", "files": stash([file], service.settings)})
    refreshed = form.refresh_bases(on_home)
    assert (refreshed[form.source]["value"], refreshed[form.target]["value"]) == (away, into)
    chosen_again = form.choose_base(str(BASE), [str(file)])
    assert (chosen_again[form.source], chosen_again[form.target]) == (away, into)
    nothing: Any = SimpleNamespace(query_params={"project": "new", "base": "en-zh"})
    assert form.refresh_bases(nothing)[form.target]["value"] == "zh", "the first pair of the base"
