"""Inline codes, the user's decisions about single sentences, leakage into test files, and imports that are too large."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora import Corpus, CorpusOptions, Decisions, ImportReport, SampleFiles, import_corpus, import_to
from engine.corpora.inline_tags import has_tags, with_placeholders, without_tags
from engine.corpora.leakage import check_leaks, find_leaks, read_test
from engine.corpora.near_duplicates import NearIndex, key, shingles
from engine.corpora.overrides import DECISIONS_FILE, segment_key
from engine.errors import CorpusError, InputError
from engine.messages import unpack
from engine.phrases import PhraseOptions, extract_phrases
from tests.documents import tmx
from tests.properties import few

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"
ZH = SAMPLES / "literary-zh" / "literary-zh.txt"
EN = (SAMPLES / "it-help-en" / "it-help.txt").read_text(encoding="utf-8").splitlines()
OPTIONS = CorpusOptions(check_language=False)


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- inline codes


@pytest.mark.parametrize(
    ("text", "stripped", "numbered"),
    [
        ("Press <b>Open</b> now.", "Press Open now.", "Press {1}Open{/1} now."),
        ("One<br/>two<BR>three", "One two three", "One{1}two{2}three"),
        ("雨<br>停了", "雨停了", "雨{1}停了"),
        ('See <a href="x">here</a>, <a href="y">there</a>', "See here, there", "See {1}here{/1}, {2}there{/2}"),
        ("Press <Enter> or <ctrl key>.", "Press <Enter> or <ctrl key>.", "Press <Enter> or <ctrl key>."),
        ("a < b and c > d, 1 <2> 3", "a < b and c > d, 1  3", "a < b and c > d, 1 {1} 3"),
        ("<name@mail.com> wrote", "<name@mail.com> wrote", "<name@mail.com> wrote"),
    ],
)
def test_tags_are_told_from_text(text: str, stripped: str, numbered: str) -> None:
    assert without_tags(text) == stripped
    assert with_placeholders(text)[0] == numbered
    assert has_tags(text) == (stripped != text)


PIECES = st.sampled_from(
    ["<b>", "</b>", "<i>", "</i>", '<x id="1"/>', '<g id="2">', '</g id="2">', "<br/>", " word ", "雨", "<", ">", "&"]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.lists(PIECES, max_size=12).map("".join))
def test_codes_leave_no_tag_behind(text: str, source: str) -> None:
    assert not has_tags(without_tags(text)) or "<" in re.sub(r"<[^<>]*>", "", text)
    mine, other = with_placeholders(text, source)
    bare = re.sub(r"\{/?\d+\}", "", mine)
    assert bare == re.sub('<(?:/?[big]|br/|x id="1"/|/?g id="2")>', "", text)
    assert other is not None
    for coded in (mine, other):
        opened = re.findall(r"\{(\d+)\}", coded)
        assert len(opened) == len(set(opened)), "no number twice in a text"


def test_the_same_tag_has_the_same_number_on_both_sides() -> None:
    text, source = '<x id="2"/>按<g id="1">打开</g id="1">', 'Press <g id="1">Open</g id="1"><x id="2"/>'
    assert with_placeholders(text, source) == ("{2}按{1}打开{/1}", "Press {1}Open{/1}{2}")


def test_no_phrase_holds_a_part_of_a_tag_or_placeholder() -> None:
    lines = [
        "Press {1}Open{/1} and wait for %s to end.",
        "Press <Enter> and wait for %(name)s to end.",
        "See https://example.org/path for the list of files.",
        "Save &quot;all&quot; files in the folder {name}.",
    ] * 8 + EN[:200]
    for parser in ("statistical", "auto"):
        result = extract_phrases(lines, "en", PhraseOptions(parser=parser, l_max=8))
        texts = [phrase.text for phrase in result.phrases]
        assert any("wait for" in text for text in texts)
        for text in texts:
            assert not re.search(r"[{}<>]|%s|%\(|https?|&quot|quot;|example", text), text


def test_placeholders_are_no_sentence_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Press <b>Open</b> now.\n<br/><img src='x'>\nAll is well.\n", encoding="utf-8")
    stripped = import_corpus([path], "en", options=OPTIONS)
    assert stripped.texts() == ["Press Open now.", "All is well."]
    assert stripped.report.noticed == {"tags, removed": 1}
    assert stripped.report.skipped == {"only markup or a link": 1}
    selected = import_corpus([path], "en", options=OPTIONS.replace(inline_tags="placeholders"))
    assert selected.texts() == ["Press {1}Open{/1} now.", "All is well."]
    assert selected.report.skipped == {"no letters": 1}


# --- decisions


def test_excluded_sentences_stay_out_and_come_back_by_undo(tmp_path: Path) -> None:
    report = import_to(tmp_path, SampleFiles([ZH], "zh"))
    first, second = Corpus.load(tmp_path).texts()[:2]
    Decisions.decide(tmp_path, "exclude", [(first, None)])
    decisions = Decisions.decide(tmp_path, "exclude", [(second, None)])
    assert decisions.last == "exclude 1 sentence"
    again = import_to(tmp_path, SampleFiles([ZH], "zh"), decisions=decisions)
    assert again.kept == report.kept - 2
    assert again.skipped == {"excluded by you": 2}
    assert not {first, second} & set(Corpus.load(tmp_path).texts())
    assert [row["text"] for row in rows(tmp_path / "skipped.jsonl")] == [first, second]
    assert Decisions.undo(tmp_path).excluded == {segment_key(first): first}
    assert not Decisions.undo(tmp_path)
    with pytest.raises(InputError, match="nothing to undo"):
        Decisions.undo(tmp_path)
    assert import_to(tmp_path, SampleFiles([ZH], "zh"), decisions=Decisions.load(tmp_path)).kept == report.kept


def test_approved_sentences_are_kept_where_a_rule_would_skip_them(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("嗯\n雨停了，他走了。\n666\n雨停了，他走了！\n雨停了，他走了。\n", encoding="utf-8")
    before = import_to(tmp_path / "w", SampleFiles([path], "zh"), options=OPTIONS)
    assert before.skipped == {"duplicate": 1, "no letters": 1, "too short": 1}
    assert before.noticed == {"near-duplicate": 1}
    usable = [row["text"] for row in rows(tmp_path / "w" / "skipped.jsonl") if row.get("usable")]
    assert usable == ["嗯", "666"]
    assert rows(tmp_path / "w" / "noticed.jsonl") == [{"row": 1, "reason": "near-duplicate", "like": 0}]
    decisions = Decisions.decide(tmp_path / "w", "approve", [("嗯", None), ("雨停了，他走了！", None)])
    after = import_to(tmp_path / "w", SampleFiles([path], "zh"), options=OPTIONS, decisions=decisions)
    assert Corpus.load(tmp_path / "w").texts() == ["嗯", "雨停了，他走了。", "雨停了，他走了！"]
    assert after.noticed == {}


def test_a_sentence_and_the_same_with_a_source_are_two(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("source\ttarget\nGood day, sir.\t你好，先生。\nHello, sir.\t你好，先生。\n", encoding="utf-8")
    decisions = Decisions.decide(tmp_path, "exclude", [("你好，先生。", "Hello, sir.")])
    import_to(tmp_path, SampleFiles([path], "zh", source_language="en"), options=OPTIONS, decisions=decisions)
    assert [segment.source for segment in Corpus.load(tmp_path).segments] == ["Good day, sir."]


def test_decisions_survive_a_torn_line_and_refuse_nonsense(tmp_path: Path) -> None:
    Decisions.decide(tmp_path, "exclude", [("One sentence.", None)])
    with (tmp_path / DECISIONS_FILE).open("a", encoding="utf-8") as file:
        file.write('{"action": "approve", "keys": {"ab')
    assert list(Decisions.load(tmp_path).excluded.values()) == ["One sentence."]
    assert len(Decisions.decide(tmp_path, "approve", [("Another.", None)]).approved) == 1
    with pytest.raises(InputError, match="is not a decision"):
        Decisions.decide(tmp_path, "delete", [("a", None)])
    with pytest.raises(InputError, match="No sentence was chosen"):
        Decisions.decide(tmp_path, "exclude", [])


@few
@given(st.lists(st.tuples(st.sampled_from(["exclude", "approve", "clear", "undo"]), st.sampled_from("abc")), max_size=12))
def test_undo_gives_back_what_was(tmp_path: Path, steps: list[tuple[str, str]]) -> None:
    (tmp_path / DECISIONS_FILE).unlink(missing_ok=True)
    before: list[list[list[str]]] = [[]]
    for action, text in steps:
        if action == "undo":
            if len(before) > 1:
                before.pop()
                assert Decisions.undo(tmp_path).to_list() == before[-1]
        else:
            before.append(Decisions.decide(tmp_path, action, [(text, None)]).to_list())
    assert Decisions.load(tmp_path).to_list() == before[-1]


# --- what lies beside the corpus, and corpora that are too large


def test_every_skipped_line_is_listed_with_its_reason(tmp_path: Path) -> None:
    files = sorted((SAMPLES / "reviews-zh").glob("*.*"))
    files = [path for path in files if path.suffix != ".md"]
    report = import_to(tmp_path, SampleFiles(files, "zh"))
    listed = rows(tmp_path / "skipped.jsonl")
    assert len(listed) == sum(report.skipped.values())
    for reason, count in report.skipped.items():
        assert sum(row["reason"] == reason for row in listed) == count
    noticed = rows(tmp_path / "noticed.jsonl")
    for reason, count in report.noticed.items():
        assert sum(row["reason"] == reason for row in noticed) == count
    texts = Corpus.load(tmp_path).texts()
    assert sum(report.lengths.values()) == len(texts)
    for row in noticed:
        assert 0 <= int(str(row["row"])) < len(texts)
    near = next(row for row in noticed if row["reason"] == "near-duplicate")
    a, b = shingles(key(texts[int(str(near["row"]))])), shingles(key(texts[int(str(near["like"]))]))
    assert len(a & b) >= 0.5 * len(a | b)


def test_of_too_many_sentences_some_are_taken_evenly(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(
            "\n".join(f"Sentence number {i} of the file called {name}<br/>." for i in range(150)), encoding="utf-8"
        )
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    report = import_to(tmp_path / "w", SampleFiles(files, "en"), options=OPTIONS.replace(max_sentences=100))
    assert [file.kept for file in report.files] == [50, 50]
    assert report.skipped == {"more than are used": 200}
    assert "Of 300 usable sentences 100 are used" in report.warnings[0]
    corpus = Corpus.load(tmp_path / "w")
    lines = [segment.line for segment in corpus.segments if segment.file == "b.txt"]
    assert lines[0] <= 3
    assert lines[-1] >= 147
    assert report.noticed["tags, removed"] == 100
    for row in rows(tmp_path / "w" / "noticed.jsonl"):
        assert int(str(row["row"])) < 100
    again = ImportReport.from_mapping(json.loads(json.dumps(report.to_mapping())))
    assert again == report


def test_a_failed_import_leaves_the_last_one_as_it_was(tmp_path: Path) -> None:
    import_to(tmp_path, SampleFiles([ZH], "zh"))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    bad = tmp_path.parent / "bad.tmx"
    bad.write_text("<tmx><tu>", encoding="utf-8")
    with pytest.raises(CorpusError):
        import_to(tmp_path, SampleFiles([bad], "zh"))

    def refuse(report: ImportReport) -> None:
        raise CorpusError("too few")

    with pytest.raises(CorpusError, match="too few"):
        import_to(tmp_path, SampleFiles([ZH], "zh"), check=refuse)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_of_several_files_those_that_can_be_read_are_read_and_the_others_are_explained(tmp_path: Path) -> None:
    broken = tmp_path / "broken.docx"
    broken.write_bytes(b"PK\x03\x04" + bytes(200))
    picture = tmp_path / "picture.txt"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    empty = tmp_path / "empty.txt"
    empty.touch()
    cut = tmp_path / "cut.tmx"
    content = tmx([(f"第{i}句话在这里，很长。", f"Sentence {i} is here, and it is long.") for i in range(40)], "zh", "en")
    cut.write_text(content[: len(content) // 2], encoding="utf-8")
    report = import_to(tmp_path / "w", SampleFiles([broken, ZH, picture, cut, empty], "zh", source_language="en"))
    errors = {file.name: file.error for file in report.files}
    assert errors[ZH.name] == ""
    assert "picture.txt is a PNG image" in errors["picture.txt"]
    assert "empty.txt is empty" in errors["empty.txt"]
    assert "the XML is damaged" in errors["cut.tmx"]
    assert errors["broken.docx"]
    assert not [error for error in errors.values() if str(tmp_path) in error]
    assert next(file for file in report.files if file.name == "cut.tmx").kept >= 10, "what comes before the damage"
    assert ImportReport.from_mapping(unpack(json.loads((tmp_path / "w/import_report.json").read_text()))) == report
    with pytest.raises(CorpusError, match=r"None of the 2 files can be read\. picture\.txt .* empty\.txt is empty"):
        import_to(tmp_path / "v", SampleFiles([picture, empty], "zh"))
    with pytest.raises(CorpusError, match="does not exist"):
        import_to(tmp_path / "v", SampleFiles([ZH, tmp_path / "gone.txt"], "zh"))


def test_a_file_in_another_language_among_many_is_warned_of(tmp_path: Path) -> None:
    english = [line for line in EN if len(line) > 40][:40]
    other = tmp_path / "english.txt"
    other.write_text("\n".join(english), encoding="utf-8")
    report = import_to(tmp_path / "w", SampleFiles([ZH, other], "zh"))
    assert any("sentences are not in Chinese; most of them look like English" in warning for warning in report.warnings)


# --- leakage


def test_leaks_are_found_exactly_and_nearly_on_both_sides(tmp_path: Path) -> None:
    letters = SAMPLES / "letters-de-en" / "letters.tsv"
    import_to(tmp_path, SampleFiles([letters], "en", source_language="de"))
    segments = Corpus.load(tmp_path).segments
    folder = tmp_path / "test_files"
    folder.mkdir()
    near = segments[5].text.rstrip(".") + " !"
    (folder / "test.txt").write_text(f"Nothing of this is in there.\n{segments[3].text}\n{near}\n", encoding="utf-8")
    (folder / "sources.txt").write_text(f"{segments[9].source}\nGanz etwas anderes steht hier.\n", encoding="utf-8")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    result = check_leaks(tmp_path, "en", "de")
    assert result["samples"] == 3
    assert {file["name"]: (file["sentences"], file["leaked"]) for file in result["files"]} == {
        "broken.pdf": (0, 0),
        "sources.txt": (2, 1),
        "test.txt": (3, 2),
    }
    assert next(file for file in result["files"] if file["name"] == "broken.pdf")["error"].startswith("broken.pdf: the PDF")
    assert [(row["row"], row["file"], row["line"], row["same"]) for row in rows(tmp_path / "leaks.jsonl")] == [
        (3, "test.txt", 2, True),
        (5, "test.txt", 3, True),
        (9, "sources.txt", 1, True),
    ]
    stamp = (tmp_path / "leaks.jsonl").stat().st_mtime_ns
    assert check_leaks(tmp_path, "en", "de") == result
    assert (tmp_path / "leaks.jsonl").stat().st_mtime_ns == stamp, "nothing has changed, so nothing is done again"
    for path in folder.iterdir():
        path.unlink()
    assert check_leaks(tmp_path, "en", "de") == {}
    assert not (tmp_path / "leaks.json").exists()


def test_short_phrases_of_everyday_are_no_leak(tmp_path: Path) -> None:
    test = tmp_path / "t.txt"
    test.write_text("Yes.\nOh, no!\nThe committee adopted the report.\n", encoding="utf-8")
    path = tmp_path / "s.txt"
    path.write_text("Yes.\nThe Committee adopted the report\nOh no.\n", encoding="utf-8")
    segments = import_corpus([path], "en", options=OPTIONS).segments
    tests = [("t.txt", record) for record in read_test(test, "en")]
    assert [row["line"] for row in find_leaks(segments, tests)] == [3]


TEXT = st.text(st.sampled_from("abcdef 雨停了他走"), min_size=1, max_size=25)


@given(st.lists(TEXT, min_size=1, max_size=12), TEXT)
def test_the_index_finds_what_a_full_comparison_finds(texts: list[str], query: str) -> None:
    result = NearIndex(texts).find(query)
    grams = shingles(key(query))
    near = [i for i, text in enumerate(texts) if 5 * len(grams & shingles(key(text))) >= 4 * len(grams | shingles(key(text)))]
    same = [i for i, text in enumerate(texts) if key(text) == key(query)]
    if same:
        assert result == (same[0], True)
    elif near:
        assert result is not None
        assert result[0] in near
        assert not result[1]
    else:
        assert result is None
