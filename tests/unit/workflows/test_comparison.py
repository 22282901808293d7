"""Comparisons: sentences from files, filling, what was read for a word, marks, and files that other programs can read."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.flagged import Flagged
from engine.corpora.formats.read import open_samples
from engine.corpora.formats.records import Record, Request
from engine.decoding.translate import translate
from engine.errors import CorpusError, InputError
from engine.evaluation import evaluate
from engine.evaluation.edit_distance import difference, edits
from engine.evaluation.highlight import marks
from engine.store import Store
from engine.store.comparisons import ComparisonLineRow
from engine.workflows.compare.attribution import merged, read_word, spans
from engine.workflows.compare.export import FORMATS, Content, content_of, write
from engine.workflows.compare.input import read_sentences, split_lines
from engine.workflows.compare.metric_rows import figure_rows, sure, value
from engine.workflows.compare.systems import SystemTranslator, has_dial, systems_of
from engine.workflows.compare.translate_missing import fill, judged
from tests.translators import SystemWords as Words

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"
HOSTILE = '<img src=x onerror="alert(1)"> & ]]> =1+1 \x0b \ud800'.encode("utf-8", "replace").decode() + "\x0b"
EN = ["The rain had not stopped.", "He opened the door.", "Nobody said a word that night."]
ZH = ["雨还没有停。", "他开了门。", "那一夜谁也没有说话。"]


# -- sentences


def test_a_table_gives_sentences_and_references_whatever_its_order(tmp_path: Path) -> None:
    rows = list(zip(EN, ZH, strict=True)) * 4
    for name, text in (
        ("a.tsv", "\n".join(f"{a}\t{b}" for a, b in rows)),
        ("b.tsv", "zh\ten\n" + "\n".join(f"{b}\t{a}" for a, b in rows)),
        ("c.csv", "source,target\n" + "\n".join(f'"{a}","{b}"' for a, b in rows)),
    ):
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
        result = read_sentences([tmp_path / name], "en", "zh")
        assert result.lines == rows, name
        assert result.references == 12


def test_two_texts_are_put_together_by_their_languages(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("\n".join(ZH) + "\n", encoding="utf-8")
    (tmp_path / "two.txt").write_text("\n".join(EN) + "\n", encoding="utf-8")
    result = read_sentences([tmp_path / "one.txt", tmp_path / "two.txt"], "en", "zh")
    assert result.lines == list(zip(EN, ZH, strict=True))
    assert result.notes == ["two.txt holds the sentences, one.txt their references."]
    (tmp_path / "one.txt").write_text("\n".join(ZH[:2]), encoding="utf-8")
    with pytest.raises(InputError, match=r"one\.txt has 2 lines and two.txt has 3"):
        read_sentences([tmp_path / "one.txt", tmp_path / "two.txt"], "en", "zh")


def test_a_file_in_the_wrong_language_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text((SAMPLES / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"mine\.txt is in Chinese\. Choose a file in English"):
        read_sentences([file], "en", "zh")
    demo = read_sentences([SAMPLES / "demo.en.txt"], "en", "zh")
    assert len(demo.lines) == 12
    assert demo.references == 0
    with pytest.raises(InputError, match="Up to 2 sentences"):
        split_lines("a\nb\n\nc", 2)


# -- filling


@pytest.fixture
def number(store: Store) -> int:
    project = store.projects.create("Essays", "en", "zh", "/models/en-zh")
    plugin = store.plugins.create(project.id, "Mine", method="knn", path="/x.zip")
    other = store.plugins.create(project.id, "Mine", method="memory_adapter", path="/y.zip")
    lines = [(text, ZH[index] if index else None) for index, text in enumerate(EN)]
    return store.sheets.create(project.id, "rain & <door>", lines, systems_of([plugin, other], [0.5])).comparison_id


def test_filling_goes_on_where_it_stopped_and_heeds_a_turned_dial(store: Store, number: int) -> None:
    assert [system["name"] for system in store.sheets.get(number).systems] == ["vanilla", "Mine", "Mine (2)"]
    words = Words()
    work = fill(store, number, words, "zh", 1)
    (first,) = next(work)
    assert first.texts == ["The vanilla 1", "The Mine 0.5", "The Mine (2) 1"]
    assert first.difference is not None
    assert first.difference > 0
    work.close()
    words.asked.clear()
    assert [line.place for part in fill(store, number, words, "zh", 8) for line in part] == [1, 2]
    assert words.asked == [("vanilla", 2), ("Mine", 2), ("Mine (2)", 2)]
    line = store.sheets.line(number, 1)
    assert line.scores[0] is not None
    assert line.change is not None
    assert store.comparisons.get(number).rows[2]["customized"] == "Nobody Mine 0.5"
    store.sheets.set_strength(number, 2, 0.0)
    words.asked.clear()
    for _ in fill(store, number, words, "zh", 8):
        pass
    assert words.asked == [], "a plugin of strength 0 is the base: nothing to translate"
    assert store.sheets.line(number, 0).texts == ["The vanilla 1", "The Mine 0.5", "The vanilla 1"]

    def turned_meanwhile(system: Mapping[str, Any], texts: Sequence[str]) -> list[str]:
        if system["strength"] == 0.75:
            store.sheets.set_strength(number, 1, 0.25)
        return words(system, texts)

    store.sheets.set_strength(number, 1, 0.75)
    for _ in fill(store, number, turned_meanwhile, "zh", 8):
        pass
    assert [line.texts[1] for line in store.sheets.page(number)] == ["The Mine 0.25", "He Mine 0.25", "Nobody Mine 0.25"]


def test_too_many_plugins_are_refused_and_some_have_no_dial(store: Store, number: int) -> None:
    row = store.plugins.list()[0]
    with pytest.raises(InputError, match="Up to 3 plugins"):
        systems_of([row] * 4)
    assert has_dial("memory_adapter")
    assert not has_dial("rewrite")
    assert not has_dial("no such method")


@given(st.text("雨停了不曾ab c", max_size=90), st.text("雨停了不曾ab c", max_size=90))
def test_edits_are_those_of_the_textbook(left: str, right: str) -> None:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        following = [i]
        for j, b in enumerate(right, 1):
            following.append(min(row[j] + 1, following[-1] + 1, row[j - 1] + (a != b)))
        row = following
    assert edits(list(left), list(right)) == row[-1]


def test_difference_counts_words_or_characters() -> None:
    assert difference("The rain stopped.", "The rain ceased.", "en") == pytest.approx(0.25)
    assert difference("雨停了。", "雨住了。", "zh") == pytest.approx(0.25)
    assert difference("", "", "zh") == 0
    assert difference("", "雨", "zh") == 1


# -- marks and reads


@given(st.lists(st.text("雨停了不曾 abc'", max_size=20), min_size=1, max_size=4), st.sampled_from(["zh", "en", "th"]))
def test_runs_joined_are_the_texts_and_equal_texts_have_no_mark(texts: list[str], language: str) -> None:
    result = marks(texts, language)
    assert ["".join(text for text, _ in runs) for runs in result] == texts
    if len(set(texts)) == 1:
        assert not any(changed for runs in result for _, changed in runs)


def test_vanilla_is_marked_where_any_plugin_replaced_it() -> None:
    vanilla, first, second = marks(["雨还没有停。", "雨竟还没有停。", "雨还没有住。"], "zh")
    assert vanilla == [("雨还没有", False), ("停", True), ("。", False)]
    assert first[1] == ("竟", True)
    assert second[1] == ("住", True)
    assert marks([None, "雨"], "zh") == [[], [("雨", False)]]


def test_tokens_stand_where_their_letters_are(base: Any) -> None:
    for text in ("雨还没有停，他说。", "“不曾” 2024 OK…", "没有🙂人"):
        result = spans(base, text)
        assert len(result) == len(base.encode_target([text])[0])
        ranges = [span for span in result if span]
        assert ranges == sorted(ranges)
        assert all(a < b and text[a:b].strip() == text[a:b] for a, b in ranges)
        covered = {i for a, b in ranges for i in range(a, b)}
        assert {i for i, c in enumerate(text) if not c.isspace()} <= covered, "every letter can be clicked"


def test_a_word_of_a_plugins_translation_shows_the_phrases_that_were_read(base: Any, bundle: Path, home: Path) -> None:
    from engine.plugins import Plugin

    plugin = Plugin.load(bundle, base, cache=home / "unpacked")
    text = translate(base, [EN[0]], plugin)[0] or "雨停了。"
    result = read_word(plugin, base, EN[0], text, 0, 1)
    assert result.word
    assert text.startswith(result.word)
    assert {position.place for position in result.reads} == {"self_attn", "encoder_attn"}
    assert {position.layer for position in result.reads} == {0, 1}
    for position in result.reads:
        weights = [item["weight"] for item in position.items]
        assert weights == sorted(weights, reverse=True)
        assert 0 < len(weights) <= 5
        assert sum(weights) <= 1.001
        assert all(item["text"] for item in position.items)
    assert result.by_plugin
    assert result.by_base
    assert result.by_plugin != result.by_base
    alone = read_word(None, base, EN[0], text, 0, 1)
    assert alone.reads == []
    assert (alone.by_base, alone.by_plugin) == (result.by_base, [])
    assert "no memory" in alone.why
    with pytest.raises(InputError, match="no longer in the translation"):
        read_word(plugin, base, EN[0], text, 5, 500)


def test_reads_of_several_tokens_are_means() -> None:
    rows = [
        {"layer": 1, "place": "self_attn", "gate": 0.5, "items": [{"text": "雨", "source": "rain", "weight": 0.6, "row": 3}]},
        {"layer": 1, "place": "self_attn", "gate": 0.7, "items": [{"text": "雨", "source": "rain", "weight": 0.2, "row": 3},
                                                                  {"text": "风", "source": "", "weight": 0.1, "row": 4}]},
    ]  # fmt: skip
    (position,) = merged(rows, 5)
    assert position.share == pytest.approx(0.4)
    assert [(item["text"], round(item["weight"], 3)) for item in position.items] == [("雨", 0.4), ("风", 0.05)]


# -- files


def test_flags_stay_with_their_translations_and_go_with_them(store: Store, number: int) -> None:
    def loops(system: Mapping[str, Any], texts: Sequence[str]) -> list[str]:
        translations = [f"{system['name']} {system['strength']:g} {text}" for text in texts]
        return [Flagged(text, "repetition-repaired") if system["name"] == "Mine" else text for text in translations]

    for _ in fill(store, number, loops, "zh", 8):
        pass
    assert store.sheets.line(number, 0).flags == ["", "repetition-repaired", ""]
    assert store.comparisons.get(number).rows[0]["flags"] == {"customized": "repetition-repaired"}
    store.sheets.set_strength(number, 1, 0.75)
    assert store.sheets.line(number, 0).flags == ["", "", ""]
    row = {"source": "a", "vanilla": "b b b", "customized": "c", "plugin": "Mine", "flags": {"vanilla": "repetition"}}
    comparison = store.comparisons.create(store.sheets.get(number).project_id, "By the interface", [row])
    assert store.sheets.line(store.sheets.get(comparison.id).comparison_id, 0).flags == ["repetition", ""]


@pytest.fixture
def content() -> Content:
    texts = [[a, b] for a, b in zip(ZH, ["雨竟还没有停。", "他开了门。", HOSTILE], strict=True)]
    lines = [
        judged(
            ComparisonLineRow(i, EN[i] if i else HOSTILE, ZH[i] if i < 2 else None, list(texts[i]), [None, None], None, None), "zh"
        )
        for i in range(3)
    ]
    report = evaluate(
        {"vanilla": ZH, "=Lu Xun": [pair[1] for pair in texts]}, ZH, language="zh", baseline="vanilla", samples=100
    ).to_mapping()

    def again() -> Iterator[ComparisonLineRow]:
        return iter(lines)

    systems = [
        {"name": "vanilla", "plugin_id": None, "method": "", "strength": 1.0},
        {"name": "=Lu Xun", "plugin_id": 1, "method": "knn", "strength": 0.8},
    ]
    figures = {"text": report, "general": report, "notes": ["A <note>."]}
    created = datetime.datetime(2024, 5, 6, 7, 8, tzinfo=datetime.UTC)
    return Content("<b>Rain</b>", "en", "zh", "en-zh", created, systems, figures, again, 3, 2)


def test_a_translation_memory_comes_back_by_the_readers_of_samples(content: Content, tmp_path: Path) -> None:
    write(content, tmp_path / "c.tmx")
    results = [record for record in open_samples(tmp_path / "c.tmx", Request("zh", "en")).items if isinstance(record, Record)]
    assert [record.source for record in results[1:]] == EN[1:]
    assert [record.text for record in results[:2]] == ["雨竟还没有停。", "他开了门。"]
    assert "<img src=x onerror=" in results[2].text
    from lxml import etree

    tmx = etree.parse(str(tmp_path / "c.tmx"), etree.XMLParser(load_dtd=False, no_network=True))
    assert tmx.getroot().get("version") == "1.4"
    assert tmx.find("header").get("srclang") == "en"
    assert tmx.findtext("body/tu/prop") == "=Lu Xun, strength 0.8"


def test_a_workbook_holds_texts_and_figures_and_no_formula(content: Content, tmp_path: Path) -> None:
    from openpyxl import load_workbook

    write(content, tmp_path / "c.xlsx")
    book = load_workbook(tmp_path / "c.xlsx")
    rows = list(book["Sentences"].iter_rows(values_only=True))
    assert rows[0][:5] == (None, "en", "reference", "vanilla", "=Lu Xun, strength 0.8") or rows[0][1:5] == (
        "en", "reference", "vanilla", "=Lu Xun, strength 0.8",
    )  # fmt: skip
    assert rows[2][1:5] == (EN[1], ZH[1], ZH[1], "他开了门。")
    assert {cell.data_type for row in book["Sentences"].iter_rows() for cell in row} <= {"s", "n", "inlineStr"}
    cells = list(book["Figures"].iter_rows(values_only=True))
    assert cells[1][:2] == ("BLEU", "vanilla")
    assert any(row[0] == "BLEU, general text" and row[1] == "=Lu Xun" for row in cells)


def test_the_report_is_one_page_that_asks_nobody_and_runs_nothing(content: Content, tmp_path: Path) -> None:
    write(content, tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<img" not in page
    assert not re.search(r"(?:src|href)\s*=", re.sub(r"&lt;.*?&gt;", "", page))
    assert '雨<mark class="new">竟</mark>还没有停。' in page
    assert "&lt;b&gt;Rain&lt;/b&gt;" in page
    assert "nrefs:1|bs:100|seed:12345" in page
    assert "A &lt;note&gt;." in page
    assert "strength 0.8" in page


def test_data_has_a_line_for_a_line(store: Store, number: int, tmp_path: Path) -> None:
    for _ in fill(store, number, Words(), "zh", 8):
        pass
    write(content_of(store, number), tmp_path / "c.json")
    data = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert [system["name"] for system in data["systems"]] == ["vanilla", "Mine", "Mine (2)"]
    assert [line["source"] for line in data["lines"]] == EN
    assert data["lines"][0]["texts"] == ["The vanilla 1", "The Mine 0.5", "The Mine (2) 1"]
    with pytest.raises(InputError, match=r"extensions: \.xlsx"):
        write(content_of(store, number), tmp_path / "c.docx")
    assert set(FORMATS) == {"xlsx", "tmx", "html", "json"}


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_file_says_which_translations_repeat_themselves(form: str, content: Content, tmp_path: Path) -> None:
    from openpyxl import load_workbook

    def said(name: str) -> int:
        path = tmp_path / f"{name}{FORMATS[form].ending}"
        write(content, path)
        data = path.read_bytes()
        if form == "xlsx":
            data = str(list(load_workbook(path)["Sentences"].iter_rows(values_only=True))).encode()
        return data.count(b"repetition" if form == "json" else b"The translation repeats itself")

    assert said("plain") == 0
    next(line for line in content.lines() if line.place == 1).texts[1] = "将" * 20  # kept before there were flags
    assert said("marked") == 1


def test_figures_are_written_with_their_change_and_certainty(content: Content) -> None:
    rows = figure_rows(content.figures)
    assert [row.title for row in rows[:4]] == ["BLEU", "BLEU", "chrF", "chrF"]
    assert rows[0].before is None
    assert rows[1].before == rows[0].score
    assert rows[-1].title == "chrF, general text"
    assert (value("classifier", 66.6), value("perplexity", 1234.5), value("bleu", 13.41)) == ("67 %", "1,234", "13.4")
    assert (sure(None), sure(0.0004), sure(0.041), sure(0.41)) == ("", "p < 0.001", "p = 0.041", "p = 0.41")


def test_a_translator_takes_the_base_alone_for_a_plugin_of_strength_0(base: Any) -> None:
    translator = SystemTranslator(base, lambda system: pytest.fail("the plugin is not needed"))
    customized = {"name": "Mine", "plugin_id": 1, "method": "knn", "strength": 0.0}
    vanilla = {"name": "vanilla", "plugin_id": None, "method": "", "strength": 1.0}
    assert translator(customized, EN) == translator(vanilla, EN) == translate(base, EN)
    assert translator.decoding(customized) == {}
