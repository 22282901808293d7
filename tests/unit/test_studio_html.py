"""The studio's HTML: nothing a user typed becomes markup, and the diff shows both texts to the letter."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.compare import as_tsv, split_lines
from studio.difference import compare_table, count_different, marked
from studio.html import Cell, figure, lang_attribute, note, number, size, table, tag

HOSTILE = "<img src=x onerror=alert(1)>\"'&`${7*7}{{value}}"


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


def test_hostile_text_stays_text() -> None:
    rows = [{"source": HOSTILE, "vanilla": HOSTILE, "customized": HOSTILE + "x"}]
    shown = compare_table(
        rows, source='en"><script>', target="zh", source_name=HOSTILE, base=HOSTILE, plugin=HOSTILE, method=HOSTILE
    )
    shown += table([HOSTILE], [[Cell(HOSTILE, kind=HOSTILE, lang=HOSTILE)]], kind=HOSTILE)
    shown += (
        tag(HOSTILE, HOSTILE) + note(HOSTILE) + figure(HOSTILE, HOSTILE, HOSTILE, HOSTILE) + lang_attribute(HOSTILE)
    )
    read = Reader(shown)
    assert "img" not in read.names
    assert "script" not in read.names
    assert not [name for name, _ in read.attributes if name.startswith("on")]


texts = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=40)


@given(texts, texts, st.sampled_from(["zh", "en", "ja", "de"]))
def test_diff_cells_hold_both_texts_to_the_letter(vanilla: str, customized: str, language: str) -> None:
    old, new = marked(vanilla, customized, language)
    assert html.unescape(re.sub(r"</?mark[^>]*>", "", old)) == html.unescape(html.escape(vanilla))
    assert html.unescape(re.sub(r"</?mark[^>]*>", "", new)) == html.unescape(html.escape(customized))
    if vanilla == customized:
        assert "<mark" not in old + new


@given(texts, texts, texts)
def test_compare_table_is_well_formed_with_any_text(source: str, vanilla: str, customized: str) -> None:
    rows = [{"source": source, "vanilla": vanilla, "customized": customized}]
    read = Reader(
        compare_table(rows, source="en", target="zh", source_name="English", base="en-zh", plugin="p", method="m")
    )
    assert read.names.count("tr") == 2
    assert len(read.cells) == 4


def test_only_changes_are_marked() -> None:
    rows = [
        {"source": "The rain had not stopped.", "vanilla": "雨还没有停。", "customized": "雨竟还不曾停歇。"},
        {"source": "The door opened.", "vanilla": "门开了。", "customized": "门开了。"},
    ]
    shown = compare_table(
        rows, source="en", target="zh", source_name="English", base="en-zh", plugin="Lu Xun", method="memory adapter"
    )
    read = Reader(shown)
    body, foot = shown.split("<tbody>")[1].split("</tbody>")
    assert body.count('<mark class="old">') >= 1
    assert body.count('<mark class="new">') >= 1
    assert "mark" not in body.split("</tr>")[1], "a sentence that did not change carries no mark"
    assert "1 of 2 sentences differ" in foot
    assert read.cells[2] == "雨还没有停。"
    assert read.cells[3] == "雨竟还不曾停歇。"
    assert 'lang="zh"' in body


def test_table_while_it_is_made_and_without_plugin() -> None:
    half = [{"source": "a", "vanilla": "b", "customized": None}, {"source": "c", "vanilla": None, "customized": None}]
    shown = compare_table(half, source="en", target="zh", source_name="English", base="b", plugin="p", method="m")
    assert "0 of 2 done" in shown
    assert shown.count("tm-pending") == 3
    alone = compare_table(half, source="en", target="zh", source_name="English", base="b")
    assert "range" not in alone
    assert Reader(alone).names.count("th") == 3
    assert count_different(half) == 0


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
def test_tsv_has_one_line_a_sentence_and_three_columns(lines: list[str]) -> None:
    rows = [{"source": line, "vanilla": line, "customized": None} for line in lines]
    shown = as_tsv(rows)
    assert shown[0] == "﻿"
    split = shown[1:].split("\n")[:-1]
    assert split[0] == "source\tvanilla\tcustomized"
    assert len(split) == len(rows) + 1
    assert all(len(line.split("\t")) == 3 for line in split)


def test_sentences_are_lines_and_their_number_is_limited() -> None:
    assert split_lines(" One. \n\n\tTwo.\r\n") == ["One.", "Two."]
    with pytest.raises(Exception, match="up to 500 sentences, these are 501"):
        split_lines("a\n" * 501)
