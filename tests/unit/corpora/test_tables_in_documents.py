"""Tables of two columns in Word and OpenDocument files, and the language of every sentence of a larger corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from engine.corpora import CorpusOptions, import_corpus
from tests.bases import SAMPLES
from tests.documents import ODF, docx, odt, word_paragraph

PLAIN = CorpusOptions(split_sentences=False, min_chars=1, deduplicate=False)
PAIRS = [
    line.split("\t")[:2] for line in (SAMPLES / "letters-de-en" / "letters.tsv").read_text(encoding="utf-8").splitlines()[1:21]
]


def word_table(rows: Sequence[Sequence[str]]) -> str:
    cells = ["".join(f"<w:tc><w:tcPr/>{word_paragraph(text)}</w:tc>" for text in row) for row in rows]
    return "<w:tbl><w:tblPr/>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def odf_table(rows: Sequence[Sequence[str]]) -> str:
    cells = ["".join(f"<table:table-cell><text:p>{escape(text)}</text:p></table:table-cell>" for text in row) for row in rows]
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in cells)
    return f'<table:table xmlns:table="{ODF}:table:1.0">{body}</table:table>'


def document(kind: str, rows: Sequence[Sequence[str]], folder: Path, before: str = "") -> Path:
    if kind == "docx":
        return docx((word_paragraph(before) if before else "") + word_table(rows), folder / "a.docx")
    return odt((f"<text:p>{before}</text:p>" if before else "") + odf_table(rows), folder / "a.odt")


@pytest.mark.parametrize("kind", ["docx", "odt"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_table_in_both_languages_is_read_as_pairs(kind: str, turned: bool, tmp_path: Path) -> None:
    german, english = ([pair[i] for pair in PAIRS] for i in (0, 1))
    rows = list(zip(english, german, strict=True) if turned else zip(german, english, strict=True))
    path = document(kind, rows, tmp_path, before="An introduction in English stands above it.")
    corpus = import_corpus([path], "en", source_language="de", options=PLAIN)
    assert [(segment.source, segment.text) for segment in corpus.segments[1:]] == list(zip(german, english, strict=True))
    assert (corpus.segments[0].source, corpus.segments[0].text) == (None, "An introduction in English stands above it.")
    (note,) = corpus.report.files[0].notes
    assert note == f"A table of 2 columns was read as pairs: column {1 + turned} as the source of column {2 - turned}."


@pytest.mark.parametrize("kind", ["docx", "odt"])
def test_other_tables_are_paragraphs_as_before(kind: str, tmp_path: Path) -> None:
    english = [pair[1] for pair in PAIRS]
    layout = list(zip(english[:10], english[10:], strict=True))
    path = document(kind, layout, tmp_path)
    corpus = import_corpus([path], "en", source_language="de", options=PLAIN)
    assert [segment.text for segment in corpus.segments] == [text for row in layout for text in row]
    assert all(segment.source is None for segment in corpus.segments)
    alone = import_corpus([document(kind, PAIRS, tmp_path)], "en", options=PLAIN)
    assert len(alone.segments) == 2 * len(PAIRS), "without a source language nothing is paired"


def test_rows_may_have_a_number_a_head_several_paragraphs_and_tables_inside(tmp_path: Path) -> None:
    inner = word_table([("x", "y")])
    rows = [("No.", "Deutsch", "English"), *((str(i), *pair) for i, pair in enumerate(PAIRS, 1))]
    two = f"<w:tc>{word_paragraph('99')}</w:tc>" + "".join(
        f"<w:tc>{word_paragraph(PAIRS[0][i])}{word_paragraph(PAIRS[1][i])}</w:tc>" for i in (0, 1)
    )
    cells = ("100", PAIRS[2][0], PAIRS[2][1])
    odd = "".join(f"<w:tc>{word_paragraph(text)}{inner if i == 1 else ''}</w:tc>" for i, text in enumerate(cells))
    body = word_table(rows).replace("</w:tbl>", f"<w:tr>{two}</w:tr><w:tr>{odd}</w:tr></w:tbl>")
    corpus = import_corpus([docx(body, tmp_path / "a.docx")], "en", source_language="de", options=PLAIN)
    results = [(segment.source, segment.text) for segment in corpus.segments]
    assert results[-3:] == [(PAIRS[0][0], PAIRS[0][1]), (PAIRS[1][0], PAIRS[1][1]), (f"{PAIRS[2][0]} x y", PAIRS[2][1])]
    assert [(source, text) for source, text in map(tuple, PAIRS)] == results[-3 - len(PAIRS) : -3]


def test_the_language_of_more_than_a_few_hundred_sentences_is_told(tmp_path: Path) -> None:
    chinese = (SAMPLES / "general-zh" / "general-zh.txt").read_text(encoding="utf-8").splitlines()
    english = (SAMPLES / "it-help-en" / "it-help.txt").read_text(encoding="utf-8").splitlines()[:9]
    lines = [f"{first[:-1]}，{second}" for first in chinese[:12] for second in chinese[:300]]
    for index, text in enumerate(english):
        lines.insert(37 + 211 * index, text)
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    report = import_corpus([tmp_path / "a.txt"], "zh").report
    assert report.kept > 2000
    assert report.files[0].noticed["another language"] == len(english)
