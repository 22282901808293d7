"""The page Compare without a browser: what it makes of typed sentences and files, dials, plugins that are gone, what it shows."""

from __future__ import annotations

import datetime
import html
import io
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from engine.base import BaseModel
from engine.corpora.terminology import parse_terms
from engine.decoding.candidates import Candidate
from engine.errors import CorpusError, InputError
from engine.evaluation import evaluate
from engine.evaluation.evaluate import ExtraMetrics
from engine.store import JobRow, PluginRow, ProjectRow
from engine.store.comparisons import ComparisonRecord
from engine.workflows.compare.attribution import MemoryRead, WordAttribution, spans, with_words
from engine.workflows.compare.export import FORMATS
from engine.workflows.compare.translate_missing import fill
from studio.api.downloads import add_download_routes
from studio.components.attribution_panel import reading_panel, waiting_panel
from studio.components.compare_url import CompareUrl
from studio.components.comparison_table import (
    ORDERS,
    PAGE,
    Languages,
    compare_table,
    earlier_menu,
    export_menu,
    invitation,
    plugin_choices,
    progress_card,
    reading_card,
)
from studio.components.metric_cards import figure_cards
from studio.services.comparisons import SHORT, Comparisons
from studio.services.service import Service
from studio.services.terminology import required_terms, set_terms, termbase
from tests.bases import EN_ZH
from tests.translators import SystemWords as Words
from tests.unit.studio.test_html import HOSTILE, Reader, lines_of, sheet_of

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "assets" / "samples"
EN = ["The rain had not stopped.", "He opened the door.", "Nobody said a word that night."]
ZH = ["雨还没有停。", "他开了门。", "那一夜谁也没有说话。"]
KNOWN = Languages("en", "zh", "English", "en-zh")


@pytest.fixture
def desk(service: Service) -> Comparisons:
    return Comparisons(service)


@pytest.fixture
def project(service: Service) -> ProjectRow:
    return service.store.projects.create("Essays", "en", "zh", "/models/en-zh")


@pytest.fixture
def plugins(service: Service, project: ProjectRow, tmp_path: Path) -> list[PluginRow]:
    rows = []
    for name, method in (("Lu Xun", "memory_adapter"), ("Manuals", "lhuc"), ("Manuals", "lhuc"), (HOSTILE, "knn")):
        path = tmp_path / f"{len(rows)}.zip"
        path.write_bytes(b"PK")
        rows.append(service.store.plugins.create(project.id, name, method=method, path=str(path)))
    return rows


def filled(desk: Comparisons, sheet: ComparisonRecord, words: Words | None = None) -> ComparisonRecord:
    for _ in fill(desk.store, sheet.comparison_id, words or Words(), "zh", 8):
        pass
    return desk.store.sheets.get(sheet.comparison_id)


def texts(desk: Comparisons, sheet: ComparisonRecord) -> list[list[str | None]]:
    return [line.texts for line in desk.store.sheets.lines(sheet.comparison_id)]


# -- making


def test_the_same_again_is_the_same_and_another_plugin_keeps_what_is_there(
    desk: Comparisons, project: ProjectRow, plugins: list[PluginRow]
) -> None:
    lu_xun, manuals, *_ = plugins
    first = filled(desk, desk.typed(project, "\n".join(EN), [lu_xun.id], None))
    assert desk.typed(project, "\n".join(EN), [lu_xun.id], first).comparison_id == first.comparison_id
    words = Words()
    both = desk.typed(project, "\n".join(EN), [manuals.id, lu_xun.id], first)
    assert both.comparison_id != first.comparison_id
    filled(desk, both, words)
    assert words.asked == [("Manuals", 3)], "only the new plugin has something to translate"
    assert texts(desk, both)[0] == ["The vanilla 1", "The Manuals 1", "The Lu Xun 1"]
    words.asked.clear()
    alone = desk.typed(project, "\n".join(EN), [lu_xun.id], both)
    assert desk.store.sheets.count(alone.comparison_id) == (3, 3), "differences are counted anew"
    other = desk.typed(project, EN[0], [lu_xun.id], both)
    assert texts(desk, other) == [[None, None]]
    with pytest.raises(InputError, match="at least one sentence"):
        desk.typed(project, " \n ", [lu_xun.id], None)
    with pytest.raises(InputError, match="Up to 500 sentences can be typed here, and there are 501"):
        desk.typed(project, "a\n" * 501, [lu_xun.id], None)
    with pytest.raises(InputError, match="Up to 3 plugins"):
        desk.typed(project, EN[0], [row.id for row in plugins], None)
    with pytest.raises(InputError, match="no longer exists"):
        desk.typed(project, EN[0], [999], None)


@pytest.mark.slow
def test_a_file_with_references_or_many_sentences_is_a_comparison_few_are_typed(
    desk: Comparisons, project: ProjectRow, plugins: list[PluginRow], tmp_path: Path
) -> None:
    few = tmp_path / "few.txt"
    few.write_text("\n".join(EN) + "\n", encoding="utf-8")
    assert desk.opened(project, [few]) == (None, "\n".join(EN))
    assert desk.store.sheets.titles(project.id) == []
    (tmp_path / "many.txt").write_text("The rain had not stopped.\n" * (SHORT + 1), encoding="utf-8")
    many, _ = desk.opened(project, [tmp_path / "many.txt"])
    assert many is not None
    assert (many.lines, many.file, many.references) == (SHORT + 1, "many.txt", 0)
    table = tmp_path / "with.tsv"
    table.write_text("".join(f"{a}\t{b}\n" for a, b in zip(EN, ZH, strict=True)), encoding="utf-8")
    opened, _ = desk.opened(project, [table])
    assert opened is not None
    assert opened.references == 3
    chosen = desk.of_file(project, opened, [plugins[0].id])
    assert [system["name"] for system in chosen.systems] == ["vanilla", "Lu Xun"]
    numbers = [number for number, *_ in desk.store.sheets.titles(project.id)]
    assert opened.comparison_id not in numbers, "what was only opened does not stay"
    done = filled(desk, chosen)
    assert desk.of_file(project, done, [plugins[0].id]).comparison_id == done.comparison_id
    again = desk.of_file(project, done, [plugins[1].id])
    assert [line.reference for line in desk.store.sheets.lines(again.comparison_id)] == ZH
    assert texts(desk, again)[1][0] == "He vanilla 1"


def test_a_file_of_another_language_is_refused_by_its_name(desk: Comparisons, project: ProjectRow, tmp_path: Path) -> None:
    wrong = tmp_path / "essays.txt"
    wrong.write_text((SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"^essays\.txt is in Chinese\. Choose a file in English"):
        desk.opened(project, [wrong])
    damaged = tmp_path / "a.docx"
    damaged.write_bytes(b"no document")
    with pytest.raises(CorpusError) as caught:
        desk.opened(project, [damaged])
    assert str(caught.value).startswith("a.docx")
    assert str(tmp_path) not in str(caught.value)
    assert desk.store.sheets.titles(project.id) == []


def test_a_dial_changes_one_column_and_a_shared_comparison_not_at_all(
    desk: Comparisons, project: ProjectRow, plugins: list[PluginRow]
) -> None:
    sheet = filled(desk, desk.typed(project, "\n".join(EN), [plugins[0].id, plugins[1].id], None))
    before = texts(desk, sheet)
    turned = filled(desk, desk.set_strength(project, sheet, 1, 0.4999))
    assert turned.comparison_id == sheet.comparison_id
    assert turned.systems[1]["strength"] == 0.5
    assert [row[1] for row in texts(desk, turned)] == ["The Lu Xun 0.5", "He Lu Xun 0.5", "Nobody Lu Xun 0.5"]
    assert [[row[0], row[2]] for row in texts(desk, turned)] == [[row[0], row[2]] for row in before]
    desk.store.sheets.update(sheet.comparison_id, kept=True)
    copy = desk.set_strength(project, desk.store.sheets.get(sheet.comparison_id), 2, 7.0)
    assert copy.comparison_id != sheet.comparison_id
    assert copy.systems[2]["strength"] == 1.0
    assert not copy.kept
    assert texts(desk, desk.store.sheets.get(sheet.comparison_id))[0][1] == "The Lu Xun 0.5"
    with pytest.raises(InputError, match="no longer in the comparison"):
        desk.set_strength(project, copy, 5, 0.5)
    job = desk.enqueue(copy)
    assert desk.enqueue(desk.store.sheets.get(copy.comparison_id)).id == job.id, "one job at a time"
    again = desk.set_strength(project, desk.store.sheets.get(copy.comparison_id), 1, 0.5)
    assert (again.comparison_id, desk.enqueue(again).id) == (copy.comparison_id, job.id), "the job at work does it as well"


def test_typed_sentences_are_a_job_that_goes_on_when_the_page_is_opened_again(
    desk: Comparisons, project: ProjectRow, plugins: list[PluginRow]
) -> None:
    jobs = desk.store.jobs

    def sheet() -> ComparisonRecord:
        return desk.store.sheets.get(comparison.comparison_id)

    comparison = desk.typed(project, "\n".join(EN), [plugins[0].id], None)
    job = desk.enqueue(comparison, measure=False)
    assert (job.kind, job.arguments["measure"]) == ("compare", False)
    assert desk.go_on(project, sheet()) == job, "it waits already"
    assert jobs.claim("here") is not None
    jobs.cancel(job.id)
    jobs.cancelled(job.id, 1)
    assert str(desk.go_on(project, sheet()).state) == "cancelled", "who cancelled it is not overruled"  # type: ignore[union-attr]
    again = desk.enqueue(sheet(), measure=False)
    claimed = jobs.claim("here")
    assert claimed is not None
    jobs.finish(again.id, 1)
    next_job = desk.go_on(project, sheet())
    assert next_job is not None
    assert (next_job.active, next_job.id > again.id) == (True, True), "a dial turned as the job ended is not forgotten"
    jobs.cancel(next_job.id)
    filled(desk, comparison)
    assert desk.go_on(project, sheet()) == jobs.get(next_job.id)


def test_a_plugin_that_was_deleted_is_said_and_its_translations_stay(
    desk: Comparisons, project: ProjectRow, plugins: list[PluginRow]
) -> None:
    sheet = filled(desk, desk.typed(project, "\n".join(EN), [plugins[0].id, plugins[1].id], None))
    assert desk.missing_systems(project, sheet) == frozenset()
    desk.store.plugins.delete(plugins[0].id)
    Path(plugins[1].path).unlink()
    assert desk.missing_systems(project, sheet) == {1, 2}
    table = compare_table(
        sheet,
        desk.store.sheets.page(sheet.comparison_id),
        KNOWN,
        counts=(3, 3),
        missing_systems=desk.missing_systems(project, sheet),
    )
    assert "The Lu Xun 1" in "".join(Reader(table).cells)
    assert table.count("deleted") == 2
    assert 'type="range"' not in table
    with pytest.raises(InputError, match=r"Lu Xun was deleted.*kept"):
        desk.set_strength(project, sheet, 1, 0.5)
    with pytest.raises(InputError, match="no longer exists"):
        desk.typed(project, EN[0], [plugins[0].id], None)


def test_a_projects_terms_are_kept_and_go_with_the_job_that_measures(
    desk: Comparisons, project: ProjectRow, plugins: list[PluginRow]
) -> None:
    from studio.services.terminology import project_terms

    service = desk.service
    assert project_terms(service, project) == ""
    sheet = desk.typed(project, EN[0], [plugins[0].id], None)
    assert desk.enqueue(sheet).arguments == {"comparison_id": sheet.comparison_id}
    desk.store.jobs.cancel(desk.store.sheets.get(sheet.comparison_id).job_id or 0)
    with pytest.raises(InputError, match="The terms, line 2: specify a term, or source term, tab or =, target term"):
        set_terms(service, project, "雨\nrain = 雨 = 雨水")
    assert project_terms(service, project) == "", "nothing of what is wrong is kept"
    written = "# weather\nrain = 雨\ndoor\t门\n"
    assert set_terms(service, project, written) == 2
    assert project_terms(service, project) == written
    job = desk.enqueue(desk.store.sheets.get(sheet.comparison_id))
    assert job.arguments == {"comparison_id": sheet.comparison_id, "terms": written}


def test_where_terms_are_enforced_nothing_is_taken_over_and_the_table_says_so(
    desk: Comparisons, project: ProjectRow, plugins: list[PluginRow]
) -> None:
    def asked(like: ComparisonRecord, *, enforce: bool) -> ComparisonRecord:
        return desk.requested(project, like.comparison_id, EN[0], [plugins[0].id], enforce=enforce)[0]

    def shown(sheet: ComparisonRecord) -> str:
        return compare_table(sheet, desk.store.sheets.page(sheet.comparison_id), KNOWN, counts=(1, 1))

    plain = filled(desk, desk.typed(project, EN[0], [plugins[0].id], None))
    assert asked(plain, enforce=True) == plain, "the project has no terms"
    set_terms(desk.service, project, "rain = 雨")
    assert asked(plain, enforce=False) == plain
    enforced = asked(plain, enforce=True)
    assert texts(desk, enforced) == [[None, None]]
    assert ("terminology enforced" in shown(plain), "terminology enforced" in shown(enforced)) == (False, True)
    enforced = filled(desk, enforced)
    assert asked(enforced, enforce=True) == enforced
    set_terms(desk.service, project, "rain = 雨水")
    assert texts(desk, asked(enforced, enforce=True)) == [[None, None]], "with other terms it is made again"


def test_the_table_says_of_each_term_that_the_source_calls_for_whether_it_was_kept(desk: Comparisons, project: ProjectRow) -> None:
    assert termbase(desk.service, project) == ()
    set_terms(desk.service, project, "machine = 机器\nwashing machine = 洗衣机\n<door> = 门<>\n雨\n")
    languages = replace(KNOWN, terms=termbase(desk.service, project))
    rows = [["The Washing Machines stopped behind the <door>.", "洗衣机停了。", "机器停在门<>后。"]]
    table = compare_table(sheet_of(rows), lines_of(rows), languages, counts=(1, 1))
    notes = re.findall(r'<div class="tm-score( tm-missed)?">(.*?)</div>', table)
    assert notes == [
        ("", "term used: 洗衣机"), (" tm-missed", "term not used: 门&lt;&gt;"),
        (" tm-missed", "term not used: 洗衣机"), ("", "term used: 门&lt;&gt;"),
    ]  # fmt: skip
    terms = languages.terms
    assert [term.target for term in required_terms(terms, "A machine.", "")] == ["机器"]
    assert required_terms(terms, "A machine.", "一台设备。") == [], "the reference does without it"


def test_all_figures_are_in_a_table_also_those_without_a_card() -> None:
    systems = {"vanilla": ["雨停了。", "他开门。", "谁也没有说。"], "Lu Xun": list(ZH)}
    terms = parse_terms(["rain = 雨"], "here", "zh", "en")
    further = ExtraMetrics(True, 200, terms, EN, "en")
    report = evaluate(systems, ZH, language="zh", baseline="vanilla", samples=100, further=further)
    sheet = replace(sheet_of([[sentence, "", ""] for sentence in EN]), figures={"text": report.to_mapping(), "general": None})
    cards, _, table = figure_cards(sheet, busy=False).partition("<details")
    assert "Terminology used" in cards
    assert "TER" not in cards
    for title in ("BLEU", "TER, lower is better", "Terminology used", "Length over the reference", "Words copied"):
        assert title in table
    assert "approximate randomisation with 10,000 trials" in table
    bare = replace(sheet, figures={"text": evaluate(systems, ZH, language="zh", samples=100).to_mapping()})
    assert figure_cards(bare, busy=False).count("All figures") == 1, "lengths are known with references"


def test_figures_of_a_plugin_are_greyed_where_its_dial_has_moved() -> None:
    metrics = {"bleu_vanilla": 7.8, "bleu": 13.4, "bleu_low": 12.0, "bleu_high": 14.9, "bleu_p": 0.02}
    sheet = sheet_of([["a", "b", "c"]])
    as_trained = figure_cards(sheet, busy=False, plugins=[metrics])
    assert "95\u00a0%\u00a012.0–14.9 · +5.6 · p\u00a0=\u00a00.020" in as_trained
    assert "tm-void" not in as_trained
    moved = figure_cards(sheet, busy=False, plugins=[metrics], moved=True)
    assert 'class="tm-void"' in moved
    assert "These figures are for strength 1" in moved


def test_deleting_a_comparison_cancels_its_job(desk: Comparisons, project: ProjectRow, plugins: list[PluginRow]) -> None:
    sheet = desk.typed(project, "\n".join(EN), [plugins[0].id], None)
    job = desk.enqueue(sheet)
    desk.delete(desk.store.sheets.get(sheet.comparison_id))
    assert desk.sheet(project, str(sheet.comparison_id)) is None
    assert not desk.store.jobs.get(job.id).active
    assert "Comparison not found" in invitation(project, True, str(sheet.comparison_id))
    assert "Train a plugin" in invitation(project, False)


def test_a_comparison_of_another_project_is_not_shown(desk: Comparisons, project: ProjectRow) -> None:
    other = desk.store.projects.create("Other", "en", "zh", "/models/en-zh")
    sheet = desk.typed(project, EN[0], [], None)
    assert desk.sheet(project, "") == sheet
    assert desk.sheet(project, "new") is None
    assert desk.sheet(other, str(sheet.comparison_id)) is None
    assert desk.sheet(project, "0") is None
    assert desk.sheet(project, "x") is None


# -- the address


anything = st.text(max_size=20) | st.sampled_from(["3", "new", "difference", "2.1.0-3", "1.1.9-", "-1", "9" * 40, "٣", "²"])


@given(st.dictionaries(st.sampled_from(["comparison", "order", "offset", "word", "plugin"]), anything))
def test_any_address_is_a_place_and_back(query: dict[str, str]) -> None:
    position = CompareUrl.of(query)
    assert CompareUrl.read(position.text()) == position
    assert position.order in ORDERS
    assert position.comparison >= 0
    assert position.offset >= 0
    at = position.at()
    assert at is None or len(at) == 4


TAMPERED = ("[]", "null", "3", '{"comparison": "x"}', '{"offset": null}', "[" * 100_000, "9" * 5000)


@given(st.text(max_size=40) | st.sampled_from(TAMPERED))
def test_a_hidden_field_that_was_tampered_with_is_no_error(text: str) -> None:
    assert CompareUrl.read(text).order in ORDERS


# -- what is shown


def test_menus_and_panels_hold_hostile_text_as_text() -> None:
    created = datetime.datetime(2024, 5, 6, 7, 8, tzinfo=datetime.UTC)
    sheet = sheet_of([[HOSTILE, HOSTILE, HOSTILE]], (HOSTILE,), HOSTILE, HOSTILE, HOSTILE)
    item = {"text": HOSTILE, "source": HOSTILE, "weight": 0.4, "token": HOSTILE, "distance": 1.5, "relevance": 0.5}
    result = WordAttribution(HOSTILE, 0, 3, [MemoryRead(0, HOSTILE, 0.2, [item]), MemoryRead(1, "self_attn", 0.1, [item])])
    page = earlier_menu([(1, HOSTILE, created)], 3, sheet) + export_menu(sheet) + reading_card(HOSTILE)
    page += waiting_panel(HOSTILE) + reading_panel(result, system=HOSTILE, strength=0.5, source="en", target="zh")
    page += reading_panel(replace(result, reads=[], why=HOSTILE), system="x", strength=1, source="en", target="zh")
    page += compare_table(sheet, lines_of([[HOSTILE] * 3]), KNOWN, counts=(1, 0), word=HOSTILE)
    systems = {"vanilla": ZH, HOSTILE: ZH[::-1], HOSTILE + "2": ZH}
    report = evaluate(systems, ZH, language="zh", baseline="vanilla", samples=100).to_mapping()
    figures = {"text": report, "general": report, "notes": [HOSTILE], "decoding": {HOSTILE: {HOSTILE: HOSTILE}}}
    page += figure_cards(replace(sheet, figures=figures), busy=False)
    assert "3 sentences are few: mind the intervals." in page
    read = Reader(page.replace("</option>", "").replace("<option", "<input"))
    assert "img" not in read.names
    assert "script" not in read.names
    assert not [name for name, _ in read.attributes if name.startswith("on")]


def test_what_was_read_says_how_much_and_where() -> None:
    items = [{"text": "不曾停歇", "source": "no pause yet", "weight": 0.41}, {"text": "停", "source": "", "weight": 0.001}]
    places = [
        MemoryRead(0, "self_attn", -0.22, items), MemoryRead(1, "self_attn", 0.08, items), MemoryRead(-1, "datastore", 0.03, items),
    ]  # fmt: skip
    panel = reading_panel(WordAttribution("停歇", 0, 2, places), system="Lu Xun", strength=0.8, source="en", target="zh")
    assert "Gate −22\u00a0%" in panel
    assert "<b>8\u00a0%</b> read from memory · 92\u00a0% from the base" in panel
    assert "<b>3\u00a0%</b> of the word's probability came from them" in html.unescape(panel)
    assert "under 0.01" in panel
    assert panel.count("data-layer=") == 2, "a column a layer, the output is none"
    assert '<option value="0-self_attn" selected>layer 1, self-attention' in panel, "what weighed most is open"
    assert "at 0.8 it has less" in panel
    alone = reading_panel(WordAttribution("停", 0, 1, [], "The base alone."), system="x", strength=1, source="en", target="zh")
    assert "The base alone." in alone
    assert "Candidates" not in alone


def test_the_candidates_of_base_and_plugin_stand_side_by_side() -> None:
    attribution = WordAttribution(
        "停", 0, 1, [], "", [Candidate("<b>", 0.5), Candidate("停", 0.2)], [Candidate("停", 0.9), Candidate("", 0.001)]
    )
    panel = reading_panel(attribution, system="Lu <Xun>", strength=1, source="en", target="zh")
    assert "<h4>Vanilla</h4>" in panel
    assert "<h4>Lu &lt;Xun&gt;</h4>" in panel
    assert "&lt;b&gt;" in panel
    assert panel.count('class="here"') == 2, "the word that was pressed"
    assert "90\u00a0%" in panel
    assert "end of sentence" in panel
    assert "under 1 %" in panel


def test_the_words_of_a_neighbour_are_marked_in_sentence_and_source() -> None:
    item = {"text": "<雨>停了。", "source": "The rain stopped.", "weight": 1.0, "text_span": (3, 5), "source_span": (9, 16)}
    position = MemoryRead(-1, "datastore", 0.6, [item])
    panel = reading_panel(WordAttribution("停了", 0, 2, [position]), system="x", strength=1, source="en", target="zh")
    assert '&lt;雨&gt;<mark class="new">停了</mark>。' in panel
    assert 'The rain <mark class="new">stopped</mark>.' in panel


def test_a_neighbours_word_is_the_one_that_is_looked_up_there_with_its_source() -> None:
    base = BaseModel.load(EN_ZH, "en", "zh", device="cpu")
    source, text = "The letter is in the house.", "信在房子里。"
    at = next(i for i, span in enumerate(spans(base, text)) if span and span[0] <= 2 < span[1])
    items = [{"text": text, "source": source, "weight": 1.0, "at": at}, {"text": "信", "source": "", "weight": 0.2, "at": 99}]
    (position,) = with_words(base, [MemoryRead(-1, "datastore", 0.5, items)])
    result, lost = position.items
    assert text[slice(*result["text_span"])] in "房子"
    assert source[slice(*result["source_span"])] in [*source.split(" "), "house"]
    assert "text_span" not in lost
    (other,) = with_words(base, [MemoryRead(0, "self_attn", 0.5, [{"text": text, "source": source, "weight": 1.0}])])
    assert "text_span" not in other.items[0]


def test_pages_orders_and_the_open_word() -> None:
    rows = [[f"{i}", "雨。", "雨！"] for i in range(PAGE)]
    sheet = replace(sheet_of(rows), lines=2 * PAGE + 3)
    table = compare_table(sheet, lines_of(rows), KNOWN, counts=(2 * PAGE + 3, 9), offset=PAGE, word="2.1.0-3")
    assert "26–50 of 53" in table
    assert f'data-offset="{2 * PAGE}">Next' in table
    assert 'data-offset="0">Back' in table
    assert 'data-word="2.1.0-3"' in table
    assert "largest gain" not in table, "without scores there is no gain"
    assert "largest gain" in compare_table(replace(sheet, references=3), lines_of(rows), KNOWN, counts=(53, 9))
    assert "sentences differ" in table
    assert "sentences differ" not in compare_table(sheet, lines_of(rows), KNOWN, counts=None), "a job says how far it is"


def test_plugins_of_one_name_are_told_apart(plugins: list[PluginRow]) -> None:
    names = [name for name, _ in plugin_choices(plugins)]
    assert names[0] == "Lu Xun"
    assert names[1].startswith("Manuals (")


def job(state: str, **more: Any) -> JobRow:
    from dataclasses import fields

    values: dict[str, Any] = {field.name: None for field in fields(JobRow)}
    values |= {"id": 7, "state": state, "step": "Translating", "step_index": 1, "steps": 7, "done": 64, "total": 400}
    return JobRow(**(values | {"cancel_requested": False, "eta": None, "error": None} | more))


def test_a_job_says_what_it_does_or_why_it_stopped() -> None:
    working = progress_card(job("running", eta=62.0))
    assert "Translating (2 of 7) · 64 of 400 · 62 s left in this step" in working
    assert 'data-cancel="7"' in working
    assert "Cancelling" in progress_card(job("running", cancel_requested=True))
    assert "Waiting for a worker" in progress_card(job("queued"))
    assert "Cancelled. Completed work is kept." in progress_card(job("cancelled"))
    failed = progress_card(job("failed", error="<b>No disk</b>."))
    assert "&lt;b&gt;No disk" in failed
    assert "data-again" in failed
    assert progress_card(job("succeeded")) == progress_card(None) == ""


# -- files


def test_every_format_is_downloaded_and_opens(
    service: Service, desk: Comparisons, project: ProjectRow, plugins: list[PluginRow]
) -> None:
    from lxml import etree

    rows = "\n".join([*EN, f"{HOSTILE} =1+1"])
    sheet = filled(desk, desk.typed(project, rows, [row.id for row in plugins[:2]], None))
    service.store.sheets.update(sheet.comparison_id, title='雨 / "rain"\r\nX: <b>')
    app = FastAPI()
    add_download_routes(app, service)
    client = TestClient(app)
    for name, file_format in FORMATS.items():
        answer = client.get(f"/download/comparisons/{sheet.comparison_id}?format={name}")
        assert answer.status_code == 200, name
        disposition = answer.headers["content-disposition"]
        assert unquote(disposition.rpartition("''")[2]) == f"雨 rain X b{file_format.ending}"
        assert answer.headers["content-type"].startswith(file_format.media.partition(";")[0])
        if name == "xlsx":
            assert zipfile.ZipFile(io.BytesIO(answer.content)).testzip() is None
        elif name == "html":
            assert b"<script" not in answer.content
        elif name == "json":
            assert len(answer.json()["lines"]) == 4
        else:
            assert etree.fromstring(answer.content) is not None
    assert client.get(f"/download/comparisons/{sheet.comparison_id}?format=exe").status_code == 404
    assert client.get("/download/comparisons/999").status_code == 404
