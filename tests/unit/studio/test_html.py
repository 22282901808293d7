"""The studio's HTML: nothing a user typed becomes markup, and the diff shows both texts to the letter."""

from __future__ import annotations

import datetime
import html
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import studio
from engine.core.flagged import FLAGS, Flagged
from engine.errors import InputError
from engine.store.comparisons import ComparisonLineRow, ComparisonRecord
from engine.workflows.compare.export import Content
from engine.workflows.compare.export.data import as_json
from engine.workflows.compare.input import split_lines
from engine.workflows.compare.translate_missing import judged
from studio.components.comparison_table import Languages, compare_table, file_card, share_menu
from studio.components.diff import marked
from studio.components.html import lang_attribute, mid_sentence, note, number, size, tag
from studio.components.templating import piece

HOSTILE = "<img src=x onerror=alert(1)>\"'&`${7*7}{{value}}"


def test_words_within_a_sentence_keep_their_names() -> None:
    assert [mid_sentence(words) for words in ("Choosing kNN settings", "LoRA alpha", "N-gram order", "")] == [
        "choosing kNN settings", "LoRA alpha", "n-gram order", "",
    ]  # fmt: skip


class Reader(HTMLParser):
    """Collects the elements, and the text within each table cell and mark."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self.marks: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.names.append(name)
        self.attributes += attributes
        if name not in ("col", "input", "br"):
            self._open.append(name)
        if name == "td":
            self.cells.append("")
        if name == "mark":
            self.marks.append("")

    def handle_endtag(self, name: str) -> None:
        assert self._open.pop() == name, "an element is closed that is not the innermost one"

    def handle_data(self, data: str) -> None:
        if "td" in self._open:
            self.cells[-1] += data
        if "mark" in self._open:
            self.marks[-1] += data


NOW = datetime.datetime(2024, 5, 6, 7, 8, tzinfo=datetime.UTC)


def sheet_of(rows: Sequence[Sequence[str | None]], plugins: Sequence[str] = ("Lu Xun",), method: str = "memory_adapter",
             title: str = "Rain", file: str = "", references: int = 0) -> ComparisonRecord:  # fmt: skip
    """A comparison of rows of (source, vanilla, a text a plugin)."""
    systems = [{"name": "vanilla", "plugin_id": None, "method": "", "strength": 1.0}]
    systems += [{"name": name, "plugin_id": index, "method": method, "strength": 0.8} for index, name in enumerate(plugins, 1)]
    return ComparisonRecord(1, 3, title, NOW, file, len(rows), references, systems, {}, None, False, 0)


def lines_of(rows: Sequence[Sequence[str | None]], reference: str | None = None) -> list[ComparisonLineRow]:
    lines = []
    for index, (source, *texts) in enumerate(rows):
        line = ComparisonLineRow(index, str(source), reference, list(texts), [None] * len(texts), None, None)
        lines.append(judged(line, "zh") if None not in texts else line)
    return lines


def shown(sheet: ComparisonRecord, lines: Sequence[ComparisonLineRow], languages: Languages | None = None) -> str:
    """The page's table of these lines."""
    done = [line for line in lines if None not in line.texts]
    counts = len(done), sum(bool(line.difference) for line in done)
    return compare_table(sheet, lines, languages or Languages("en", "zh", "English", "en-zh"), counts=counts)


def test_hostile_text_stays_text() -> None:
    rows = [[HOSTILE, HOSTILE, HOSTILE + "x", None]]
    sheet = sheet_of(rows, (HOSTILE, HOSTILE), HOSTILE, HOSTILE, HOSTILE)
    page = shown(sheet, lines_of(rows, HOSTILE), Languages('en"><script>', "zh", HOSTILE, HOSTILE))
    page += file_card(sheet, 3) + share_menu(sheet)
    page += tag(HOSTILE, HOSTILE) + note(HOSTILE) + piece("figure", HOSTILE, HOSTILE, HOSTILE, HOSTILE) + lang_attribute(HOSTILE)
    read = Reader(page)
    assert "img" not in read.names
    assert "script" not in read.names
    assert not [name for name, _ in read.attributes if name.startswith("on")]


def test_a_flagged_translation_says_why() -> None:
    rows = [["Rain.", "雨雨雨雨。", Flagged("雨。", "repetition-repaired")]]
    page = shown(sheet_of(rows), lines_of(rows))
    assert page.count(html.escape(FLAGS["repetition-repaired"])) == 1
    assert page.count(html.escape(FLAGS["repetition"])) == 1, "one that carries no flag"


NOTES = re.compile(rf"(?:{re.escape(FLAGS['repetition'])})?(?:chrF \d+)?$")  # behind a translation
texts = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=40)


@given(texts, texts, st.sampled_from(["zh", "en", "ja", "de"]))
def test_diff_cells_hold_both_texts_to_the_letter(vanilla: str, customized: str, language: str) -> None:
    old, new = marked(vanilla, customized, language)
    assert html.unescape(re.sub(r"</?mark[^>]*>", "", old)) == html.unescape(html.escape(vanilla))
    assert html.unescape(re.sub(r"</?mark[^>]*>", "", new)) == html.unescape(html.escape(customized))
    if vanilla == customized:
        assert "<mark" not in old + new


@given(st.lists(st.tuples(texts, texts, texts, texts), min_size=1, max_size=3), st.none() | texts)
def test_compare_table_is_well_formed_with_any_text(rows: list[tuple[str, ...]], reference: str | None) -> None:
    read = Reader(shown(sheet_of(rows, ("p", "q")), lines_of(rows, reference)))
    assert read.names.count("tr") == 1 + len(rows)
    assert len(read.cells) == 5 * len(rows), "number, source, and three systems"
    for index, (_, *translations) in enumerate(rows):
        assert read.cells[5 * index] == str(index + 1)
        expected = [html.unescape(html.escape(translation)) for translation in translations]
        results = [NOTES.sub("", cell) for cell in read.cells[5 * index + 2 : 5 * index + 5]]
        assert results == expected, "cells hold translations to the letter"


def test_only_changes_are_marked() -> None:
    rows = [["The rain had not stopped.", "雨还没有停。", "雨竟还不曾停歇。"], ["The door opened.", "门开了。", "门开了。"]]
    page = shown(sheet_of(rows), lines_of(rows))
    read = Reader(page)
    body, foot = page.split("<tbody>")[1].split("</tbody>")
    assert body.count('<mark class="old">') >= 1
    assert body.count('<mark class="new">') >= 1
    assert "mark" not in body.split("</tr>")[1], "a sentence that did not change carries no mark"
    assert "1 of 2 sentences differ" in foot
    assert read.cells[2] == "雨还没有停。"
    assert read.cells[3] == "雨竟还不曾停歇。"
    assert 'lang="zh"' in body


def test_table_while_it_is_made_and_without_plugin() -> None:
    half: list[list[str | None]] = [["a", "b", None], ["c", None, None]]
    page = shown(sheet_of(half), lines_of(half))
    assert "0 of 2 done" in page
    assert page.count("tm-pending") == 3
    assert Reader(page).names.count("th") == 4
    single = [row[:2] for row in half]
    alone = shown(sheet_of(single, ()), lines_of(single))
    assert 'type="range"' not in alone
    assert "differ" not in alone
    assert Reader(alone).names.count("th") == 3


@pytest.mark.parametrize(
    ("bytes_", "words"), [(0, "0 B"), (999, "999 B"), (2_500_000, "2.5 MB"), (38_000_000, "38 MB"), (None, "–")]
)
def test_sizes(bytes_: int | None, words: str) -> None:
    assert size(bytes_) == words


def test_numbers() -> None:
    assert number(12345) == "12,345"
    assert number(3.14159, 2) == "3.14"
    assert number(None) == "–"


@given(st.lists(texts, min_size=1, max_size=5))
def test_exported_data_has_one_line_a_sentence_and_a_text_a_system(given_lines: list[str]) -> None:
    rows = [[line, line, None] for line in given_lines]
    sheet, lines = sheet_of(rows, (HOSTILE + "\t\nx",)), lines_of(rows)
    content = Content(sheet.title, "en", "zh", "en-zh", NOW, sheet.systems, {}, lambda: iter(lines), len(rows), sheet.references)
    data = json.loads("".join(as_json(content)))
    assert [line["source"] for line in data["lines"]] == given_lines
    assert all(len(line["texts"]) == 2 for line in data["lines"])


def test_sentences_are_lines_and_their_number_is_limited() -> None:
    assert split_lines(" One. \n\n\tTwo.\r\n", 500) == ["One.", "Two."]
    assert len(split_lines("a\n" * 500, 500)) == 500
    with pytest.raises(InputError, match="Up to 500 sentences can be typed here, and there are 501"):
        split_lines("a\n" * 501, 500)


def test_texts_of_right_to_left_languages_stand_so() -> None:
    assert lang_attribute("ar") == ' lang="ar" dir="rtl"'
    assert lang_attribute("he_IL") == ' lang="he_IL" dir="rtl"'
    assert lang_attribute("zh") == ' lang="zh"'
    assert lang_attribute("zh", auto=True) == ' lang="zh" dir="auto"'
    assert lang_attribute("") == ""


def test_a_link_to_a_file_does_not_leave_its_page() -> None:
    """A browser asks such a link whether the page may be left, on which Gradio gives up what the page waits for."""
    links = [
        link
        for path in sorted((Path(studio.__file__).parent / "templates").glob("*.html"))
        for link in re.findall(r"<a\b[^>]*", path.read_text(encoding="utf-8"))
        if 'href="/download' in link
    ]
    assert links
    assert [link for link in links if " download" not in link] == []
