"""What a document's format says of spaces, tabs and room, and what is reported of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.documents import xliff1
from tests.translators import Words, shout
from tests.unit.corpora.test_document_formats import entries, target_of, units_of
from tests.unit.workflows.test_documents import through


def test_the_tabs_of_a_text_stay(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.txt", "Name\tThe  size\t\n\ta b\t\t7 \r\n", shout())
    assert out.decode() == "NAME\tTHE SIZE\t\n\tA B\t\t7 \r\n"


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("Save &As…\tCtrl+S", "保存为……", "保存为(&A)……\tCtrl+S"),
        ("_Quit\tAlt+F4", "退出", "退出(_Q)\tAlt+F4"),
        ("&Open…\n\nA file", "打开", "打开(&O)\n\n打开"),
        ("&Home\tHome", "主页", "主页(&H)\tHome"),
        ("Name\tSize", "词", "词\t词"),
    ],
)
def test_a_tab_stays_and_what_is_pressed_behind_it(tmp_path: Path, text: str, said: str, expected: str) -> None:
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    po = f'{head}msgid {json.dumps(text, ensure_ascii=False)}\nmsgstr ""\n'
    out, _ = through(tmp_path, "a.po", po, Words(lambda words: [(0, said)], target="zh", joint=""))
    assert entries(out)[text] == expected


def test_what_is_longer_than_its_place_is_reported(tmp_path: Path) -> None:
    segments = "".join(f'<mrk mtype="seg" mid="{k}">Stop now</mrk>' for k in (1, 2))
    units = [
        '<trans-unit id="1" maxwidth="5" size-unit="char"><source>Stop now</source></trans-unit>',
        '<trans-unit id="2" maxwidth="5"><source>Stop</source></trans-unit>',
        '<trans-unit id="3" maxwidth="8" size-unit="char"><source>Stop now</source></trans-unit>',
        '<trans-unit id="4" maxwidth="1500" size-unit="char"><source>Built in 1907</source></trans-unit>',
        '<trans-unit id="5" maxwidth="10" size-unit="char"><source>Built in 12.50</source></trans-unit>',
        f'<trans-unit id="6" maxwidth="10" size-unit="char"><source>Stop now Stop now</source><seg-source>{segments}'
        "</seg-source></trans-unit>",
    ]
    translator = Words(lambda words: [(k, "XXXX" if word == "12.50" else word.upper()) for k, word in enumerate(words)])
    _, report = through(tmp_path, "a.xlf", xliff1(units, target="de"), translator)
    assert [(doubt["place"], doubt["why"]) for doubt in report.doubts] == [
        ("unit 1", "It is longer than 5 characters."),
        ("unit 5", "The number 12.50 is not in the translation. It is longer than 10 characters."),
        ("unit 6, segment 1", "It is longer than 10 characters."),
        ("unit 6, segment 2", "It is longer than 10 characters."),
    ]
    assert [result.doubt for _, result in report.segments if result.doubt] == [doubt["why"] for doubt in report.doubts]


@pytest.mark.parametrize("where", ["source", "unit", "file", "root", "none", "overruled"])
def test_space_is_preserved_from_wherever_it_is_said(tmp_path: Path, where: str) -> None:
    attribute = ' xml:space="preserve"'
    inner = {"source": attribute, "overruled": ' xml:space="default"'}.get(where, "")
    around = attribute if where in ("unit", "overruled") else ""
    unit = f'<trans-unit id="1"{around}><source{inner}>One line\nand two\tcells</source></trans-unit>'
    text = xliff1([unit], target="de")
    text = text.replace("<file ", f"<file{attribute} ") if where == "file" else text
    text = text.replace("<xliff ", f"<xliff{attribute} ") if where == "root" else text
    out, _ = through(tmp_path, "a.xlf", text, shout())
    preserved = where not in ("none", "overruled")
    assert target_of(units_of(out)["1"]) == ("ONE LINE\nAND TWO\tCELLS" if preserved else "ONE LINE AND TWO CELLS")
