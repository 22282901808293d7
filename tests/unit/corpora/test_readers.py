"""Readers: plain text, tables and JSON Lines as people write them."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora import Segment, import_corpus
from engine.corpora.formats.csv_dialect import Dialect, parse_record, sniff
from engine.corpora.formats.plain import is_wrapped
from engine.errors import CorpusError
from tests.properties import few

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
EN = ["I have no doubt of it.", "He went away without a word.", "The night was cold and the wind was high."]
ZH = ["我毫不怀疑这一点。", "他一句话也没说就走了。", "那天夜里很冷，风也很大。"]


def make(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def texts(path: Path, language: str = "zh", source: str | None = None) -> list[tuple[str, str | None]]:
    return [(s.text, s.source) for s in import_corpus([path], language, source_language=source).segments]


# --- plain text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends(tmp_path: Path, end: str) -> None:
    corpus = import_corpus([make(tmp_path, "a.txt", end.join(EN))], "en")
    assert corpus.texts() == EN
    assert [s.line for s in corpus.segments] == [1, 2, 3]
    assert corpus.segments[0].file == "a.txt"


def test_unknown_ending_is_plain_text(tmp_path: Path) -> None:
    assert texts(make(tmp_path, "train.zh", "\n".join(ZH))) == [(z, None) for z in ZH]


def test_table_in_txt_is_remarked(tmp_path: Path) -> None:
    rows = [f"{e}\t{z}" for e, z in zip(EN * 2, ZH * 2, strict=True)]
    warnings = import_corpus([make(tmp_path, "a.txt", "\n".join(rows))], "zh").report.warnings
    assert any(".tsv" in warning for warning in warnings)


def test_one_huge_line_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with path.open("w") as file:
        for _ in range(5):
            file.write("word " * 200_000)  # 1 MB each, no line end
    # A file large against what may be held: the peak must not grow with it.
    tracemalloc.start()
    with pytest.raises(CorpusError, match=r"no usable sentence.*too long: 1"):
        import_corpus([path], "en")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000 + 8 * (1 << 20)

    with path.open("a") as file:
        file.write("\nAnd a line that is well.\n")
    corpus = import_corpus([path], "en")
    assert corpus.texts() == ["And a line that is well."]
    assert corpus.segments[0].line == 2
    assert corpus.report.skipped == {"too long": 1}
    ((line, text),) = corpus.report.files[0].examples["too long"]
    assert line == 1
    assert len(text) == 80


def test_wrapped_book_is_joined(tmp_path: Path) -> None:
    import textwrap

    lines = [s for s in (SAMPLES / "elizabethan-en" / "elizabethan-en.txt").read_text().splitlines() if s.strip()][:60]
    paragraphs = [" ".join(lines[i : i + 5]) for i in range(0, 60, 5)]
    wrapped = "\n\n".join(textwrap.fill(p, 70) for p in paragraphs)
    corpus = import_corpus([make(tmp_path, "book.txt", wrapped)], "en")
    together = " ".join(corpus.texts())
    assert together == " ".join(paragraphs)
    assert "joined to paragraphs" in corpus.report.files[0].notes[0]
    assert corpus.segments[-1].line > 60


def test_sentences_and_verse_are_not_joined() -> None:
    assert not is_wrapped((SAMPLES / "elizabethan-en" / "elizabethan-en.txt").read_text().splitlines())
    assert not is_wrapped((SAMPLES / "literary-zh" / "literary-zh.txt").read_text().splitlines())
    verse = ["Shall I compare thee to a summer's day?", "Thou art more lovely and more temperate,", ""] * 20
    assert not is_wrapped(verse)


# --- tables


def test_two_columns_without_header_are_told_by_language(tmp_path: Path) -> None:
    forward = "\n".join(f"{e}\t{z}" for e, z in zip(EN, ZH, strict=True))
    backward = "\n".join(f"{z}\t{e}" for e, z in zip(EN, ZH, strict=True))
    expected = list(zip(ZH, EN, strict=True))
    assert texts(make(tmp_path, "a.tsv", forward), "zh") == expected
    assert texts(make(tmp_path, "b.tsv", backward), "zh", "en") == expected
    assert texts(make(tmp_path, "c.tsv", backward), "en", "zh") == list(zip(EN, ZH, strict=True))
    notes = import_corpus([tmp_path / "a.tsv"], "zh").report.files[0].notes
    assert notes == ["a.tsv has no header; column 2 of 2 was taken as the Chinese text, column 1 as its source."]


@pytest.mark.parametrize(
    "header",
    ["source\ttarget", "src\ttgt", "en\tzh", "EN-us\tzh-CN", "English\tChinese", "Source Text\tTarget Text", "text\ttranslation"],
)
def test_headers(tmp_path: Path, header: str) -> None:
    rows = "\n".join([header, *(f"{e}\t{z}" for e, z in zip(EN, ZH, strict=True))])
    corpus = import_corpus([make(tmp_path, "a.tsv", "\ufeff" + rows)], "zh", source_language="en")
    assert [(s.text, s.source) for s in corpus.segments] == list(zip(ZH, EN, strict=True))
    assert [s.line for s in corpus.segments] == [2, 3, 4]


def test_header_with_domain_and_other_columns(tmp_path: Path) -> None:
    rows = ["id;Domain;text;author", *(f"{i};law;{e};X" for i, e in enumerate(EN))]
    corpus = import_corpus([make(tmp_path, "a.csv", "\n".join(rows))], "en")
    assert corpus.texts() == EN
    assert {s.domain for s in corpus.segments} == {"law"}


def test_header_without_target_is_refused(tmp_path: Path) -> None:
    rows = ["source,domain", *(f"{e},x" for e in EN)]
    with pytest.raises(CorpusError, match=r"columns source, domain, but none for the target language"):
        import_corpus([make(tmp_path, "a.csv", "\n".join(rows))], "zh")


def test_a_word_that_is_a_column_name_can_be_a_sentence(tmp_path: Path) -> None:
    rows = ["Quelle\tSource", "Datei öffnen\tOpen the file", "Bild einfügen und speichern\tInsert and save the picture"]
    assert texts(make(tmp_path, "a.tsv", "\n".join(rows)), "en")[0] == ("Source", "Quelle")


def test_tsv_with_literal_quotes_is_not_mangled(tmp_path: Path) -> None:
    pairs = [
        ('"Go," he said, "and do not come back."', '“去吧，”他说，"别回来。"'),
        ('"It is late."', '"已经很晚了。"'),
        ('He said "no', '他说"不'),
        ("It was five o'clock.", "那时是五点钟。"),
    ]
    path = make(tmp_path, "a.tsv", "\n".join(f"{e}\t{z}" for e, z in pairs))
    assert texts(path, "zh") == [(z, e) for e, z in pairs]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize(("name", "delimiter"), [("a.tsv", "\t"), ("a.csv", ","), ("b.csv", ";")])
def test_quoted_tables_are_unwrapped(tmp_path: Path, name: str, delimiter: str, quoting: int) -> None:
    pairs = [
        ('He said "no", and went; that was all.', "他说“不”，就走了。"),
        ("Two lines\nin one cell, with\ttab.", "一格里\n有两行。"),
        ("Plain.", "平常的一句。"),
    ]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\r\n").writerows(  # type: ignore[arg-type]
        [("source", "target"), *pairs]
    )
    corpus = import_corpus([make(tmp_path, name, out.getvalue())], "zh")
    assert [(s.text, s.source) for s in corpus.segments] == [(" ".join(z.split()), " ".join(e.split())) for e, z in pairs]
    assert [s.line for s in corpus.segments] == [2, 3, 6]


def test_unclosed_quote_costs_no_other_line(tmp_path: Path) -> None:
    rows = ["source,target", *(f"Number {i} is here,这里是第{i}号东西" for i in range(50))]
    rows[10] = '"This quote is never closed,这个引号没有关上'
    corpus = import_corpus([make(tmp_path, "a.csv", "\n".join(rows))], "zh")
    assert len(corpus) == 50
    assert corpus.segments[9].source == '"This quote is never closed'


def test_csv_of_plain_sentences_with_commas(tmp_path: Path) -> None:
    lines = ["Well, I think so.", "He came, he saw, he went.", "No.", "Then, at last, the sun rose."]
    assert [t for t, _ in texts(make(tmp_path, "a.csv", "\n".join(lines)), "en")] == lines
    quoted = "\n".join(f'"{line}"' for line in lines)
    assert [t for t, _ in texts(make(tmp_path, "b.csv", "text\n" + quoted), "en")] == lines
    assert [t for t, _ in texts(make(tmp_path, "c.csv", quoted), "en")] == lines


def test_rows_of_another_width_are_skipped_by_line(tmp_path: Path) -> None:
    rows = ["source\ttarget", *(f"{e}\t{z}" for e, z in zip(EN, ZH, strict=True)), "only one", "a\tb\tc", "", "x\t很好的。\t"]
    report = import_corpus([make(tmp_path, "a.tsv", "\n".join(rows))], "zh").report
    assert report.kept == 4
    assert report.skipped == {"wrong number of columns": 2, "empty": 1}
    assert report.files[0].examples["wrong number of columns"] == [(5, "only one"), (6, "a b c")]


def test_missing_source_is_skipped(tmp_path: Path) -> None:
    rows = ["source\ttarget", *(f"{e}\t{z}" for e, z in zip(EN, ZH, strict=True)), "\t没有原文的一句。"]
    assert import_corpus([make(tmp_path, "a.tsv", "\n".join(rows))], "zh").report.skipped == {"no source": 1}


def test_excel_first_line(tmp_path: Path) -> None:
    assert texts(make(tmp_path, "a.csv", "sep=;\nsource;target\nGood day.;你好，先生。"), "zh") == [("你好，先生。", "Good day.")]


CELL = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]) | st.sampled_from(' ",\t\n;'), min_size=1)


@given(
    rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8),
    delimiter=st.sampled_from(",;\t"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_csv_writes_is_read_back(rows: list[tuple[str, str]], delimiter: str, quoting: int) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerows(rows)  # type: ignore[arg-type]
    lines = iter(out.getvalue().split("\n")[:-1])
    assert [parse_record(lines, Dialect(delimiter, True)) for _ in rows] == [list(row) for row in rows]
    if any(delimiter in cell or "\n" in cell or '"' in cell for row in rows for cell in row):
        assert sniff(out.getvalue().split("\n")[:-1], "\t" if delimiter == "\t" else ",;").quoted or delimiter != "\t"


@given(st.lists(st.tuples(*[st.text(st.sampled_from("ab \"'.,"), min_size=1)] * 2), min_size=1, max_size=8))
def test_unquoted_tsv_is_never_joined_over_lines(rows: list[tuple[str, str]]) -> None:
    lines = ["\t".join(row) for row in rows]
    dialect = sniff(lines, "\t")
    if dialect.quoted:  # only where the quotes are in order to the letter
        assert [parse_record(iter([line]), dialect) for line in lines].count(None) <= len(lines) // 20
    elif dialect.delimiter:
        assert [parse_record(iter([line]), dialect) for line in lines] == [list(row) for row in rows]


# --- JSON Lines


def test_jsonl_keys(tmp_path: Path) -> None:
    rows = [
        {"text": ZH[0]},
        {"target": ZH[1], "source": EN[1], "domain": "prose"},
        {"tgt": ZH[2], "src": EN[2]},
        {"translation": "春天来了。", "source": "Spring has come."},
        {"translation": {"en": "It rains.", "zh": "下雨了。"}},
        {"en": "Snow fell.", "zh": "下雪了。"},
    ]
    lines = [*(json.dumps(row, ensure_ascii=False) for row in rows), json.dumps("只有一句话。")]
    corpus = import_corpus([make(tmp_path, "a.jsonl", "\n".join(lines))], "zh", source_language="en")
    assert corpus.segments[1] == Segment(text=ZH[1], source=EN[1], file="a.jsonl", line=2, domain="prose")
    assert [(s.text, s.source) for s in corpus.segments] == [
        (ZH[0], None),
        (ZH[1], EN[1]),
        (ZH[2], EN[2]),
        ("春天来了。", "Spring has come."),
        ("下雨了。", "It rains."),
        ("下雪了。", "Snow fell."),
        ("只有一句话。", None),
    ]


def test_bad_json_lines_are_skipped_by_line(tmp_path: Path) -> None:
    lines = ['{"text": "A good line of text."}', "not json {", '{"id": 3}', '{"text": 5}', "[" * 9000, "null", "1" * 5000]
    report = import_corpus([make(tmp_path, "a.jsonl", "\n".join(lines))], "en").report
    assert report.kept == 1
    assert report.skipped == {"no text in the object": 3, "not JSON": 3}
    assert [line for line, _ in report.files[0].examples["not JSON"]] == [2, 5, 7]


def test_lone_surrogates_in_json_can_be_saved(tmp_path: Path) -> None:
    corpus = import_corpus([make(tmp_path, "a.jsonl", '{"text": "A broken \\ud83d picture sign."}')], "en")
    assert corpus.texts() == ["A broken picture sign."]
    corpus.save(tmp_path / "out")


@few
@given(data=st.binary(min_size=1, max_size=300), ending=st.sampled_from([".txt", ".csv", ".tsv", ".jsonl"]))
def test_any_bytes_give_a_corpus_or_one_sentence(data: bytes, ending: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / f"a{ending}"
    path.write_bytes(data)
    try:
        corpus = import_corpus([path], "en")
    except CorpusError as error:
        text = str(error)
    else:
        text = f"{path.name} was read."
        assert corpus.segments
        assert corpus.report.segments == corpus.report.kept + sum(corpus.report.skipped.values())
    assert path.name in text
    assert str(path.parent) not in text
    assert "\n" not in text


@pytest.mark.skipif(not DATA.is_dir(), reason="the reference data sets are not on this machine")
@pytest.mark.parametrize(
    ("name", "language", "target", "lines"),
    [
        ("heldout/ntrex.en-zh.tsv", "zh", 1, 999),
        ("heldout/ntrex.en-zh.tsv", "en", 0, 999),
        ("domains/de-en/koran.test.tsv", "en", 1, 1000),
        ("domains/de-en/law.test.tsv", "de", 0, 1000),
    ],
)
@pytest.mark.slow
def test_real_tables_keep_every_character(name: str, language: str, target: int, lines: int) -> None:
    corpus = import_corpus([DATA / name], language)
    rows = [line.split("\t") for line in (DATA / name).read_text(encoding="utf-8").split("\n")]
    assert corpus.report.lines == lines
    assert len(corpus) > 0.98 * lines
    for segment in corpus.segments:
        raw = rows[segment.line - 1]
        assert "".join(segment.text.split()) == "".join(raw[target].replace("\u200b", "").replace("\xad", "").split())
