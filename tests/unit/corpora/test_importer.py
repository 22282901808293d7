"""The import as a whole: everything is counted, the language is checked, the user is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.progress import Progress
from engine.corpora import CorpusOptions, ImportReport, import_corpus
from engine.errors import Cancelled, CorpusError, OptionError

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
EN = SAMPLES / "elizabethan-en" / "elizabethan-en.txt"
ZH = SAMPLES / "literary-zh" / "literary-zh.txt"


def test_real_samples() -> None:
    corpus = import_corpus([ZH], "zh")
    assert len(corpus) >= 480
    assert corpus.report.warnings == []
    assert corpus.report.languages["zh"] > 0.95
    assert corpus.report.files[0].encoding == "utf-8"
    text = ZH.read_text(encoding="utf-8").splitlines()
    for segment in corpus.segments:
        assert segment.text in text[segment.line - 1]
        assert segment.file == ZH.name
        assert segment.source is None


LINE = st.text(st.sampled_from('ab好。. \u200b\ufffd12<>"\t{}'), max_size=12) | st.sampled_from(
    [
        "The moon is down.",
        "天黑了。人都走了。",
        "One here. Two there. One here.",
        "<br>",
        "https://a.b",
        "x" * 200,
        '{"text": "in json"}',
    ]
)


@given(
    lines=st.lists(LINE, max_size=25),
    ending=st.sampled_from(["txt", "csv", "tsv", "jsonl"]),
    deduplicate=st.booleans(),
    several=st.booleans(),
)
def test_kept_and_skipped_add_up(
    lines: list[str], ending: str, deduplicate: bool, several: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("sum")
    files = [folder / f"one.{ending}", folder / "two.txt"]
    files[0].write_text("".join(f"{line}\n" for line in ["A first line that is well.", *lines]), encoding="utf-8")
    files[1].write_text("\n".join([*lines[:3], "A second line that is well."]), encoding="utf-8")
    options = CorpusOptions(deduplicate=deduplicate, split_sentences=several, max_line_chars=150, check_language=False)
    try:
        corpus = import_corpus(files, "en", options=options)
    except CorpusError as error:
        if ending != "txt" and "one." in str(error):
            return  # as a table or as JSON these lines say nothing
        raise
    report = corpus.report
    for file in report.files:
        assert file.segments == file.kept + sum(file.skipped.values())
        assert all(len(file.examples[reason]) == min(count, 5) for reason, count in file.skipped.items())
        assert all(1 <= line <= file.lines for examples in file.examples.values() for line, _ in examples)
        assert all(len(text) <= 80 for examples in file.examples.values() for _, text in examples)
    assert report.segments == report.kept + sum(report.skipped.values())
    assert report.kept == len(corpus.segments)
    assert report.files[1].lines == len(lines[:3]) + 1
    if ending == "txt" and not several:
        assert report.files[0].segments == report.files[0].lines == len(lines) + 1
    if deduplicate:
        assert len({(s.text, s.source) for s in corpus.segments}) == len(corpus)
        assert report.skipped.get("duplicate", 0) >= 0
    else:
        assert "duplicate" not in report.skipped
    assert ImportReport.from_mapping(json.loads(json.dumps(report.to_mapping()))) == report


def test_duplicates_over_files_and_forms(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A café here.\nA  cafe\u0301 here.\nAnother line.\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("Another line.\n", encoding="utf-8")
    corpus = import_corpus([tmp_path / "a.txt", tmp_path / "b.txt"], "en")
    assert corpus.texts() == ["A café here.", "Another line."]
    assert corpus.report.files[0].examples["duplicate"] == [(2, "A café here.")]
    assert any("b.txt adds nothing" in warning for warning in corpus.report.warnings)
    selected = import_corpus([tmp_path / "a.txt"], "en", options=CorpusOptions(deduplicate=False))
    assert len(selected) == 3


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text(f"A line of folder {folder}.\n")
    corpus = import_corpus([tmp_path / "a" / "x.txt", tmp_path / "b" / "x.txt"], "en")
    assert [s.file for s in corpus.segments] == [str(tmp_path / "a" / "x.txt"), str(tmp_path / "b" / "x.txt")]


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7 \x00\x00", b"<tmx><body>", b"12\n34\n"])
def test_a_single_file_that_cannot_be_read_is_called_by_its_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "letters.tmx").write_bytes(content)
    with pytest.raises(CorpusError, match=r"letters\.tmx") as caught:
        import_corpus([tmp_path / "letters.tmx"], "zh")
    assert str(tmp_path) not in json.dumps(caught.value.message.to_mapping())


def test_domain_from_file() -> None:
    corpus = import_corpus([EN, SAMPLES / "demo.en.txt"], "en", options=CorpusOptions(domain_from_file=True))
    assert {s.domain for s in corpus.segments} == {"elizabethan-en", "demo.en"}


def test_wrong_language_is_refused_by_name() -> None:
    with pytest.raises(CorpusError, match=r"only 0% looks like Chinese; most others look like English.*elizabethan-en.txt"):
        import_corpus([EN], "zh")
    assert import_corpus([EN], "zh", options=CorpusOptions(check_language=False)).report.languages == {}


def test_swapped_columns_are_pointed_out(tmp_path: Path) -> None:
    pairs = zip(EN.read_text().splitlines()[:40], ZH.read_text().splitlines()[:40], strict=True)
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"target": e, "source": z}) for e, z in pairs))
    with pytest.raises(CorpusError, match="seem to be swapped"):
        import_corpus([path], "zh", source_language="en")


def test_mixed_language_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "mixed.txt"
    path.write_text("\n".join(EN.read_text().splitlines()[:60] + ZH.read_text().splitlines()[:60]))
    report = import_corpus([path], "zh").report
    assert len(report.warnings) == 1
    assert "look like Chinese; most others look like English" in report.warnings[0]
    assert 0.2 < report.languages["zh"] < 0.7
    assert abs(sum(report.languages.values()) - 1) < 0.01


def test_a_few_sentences_in_another_language_only_warn(tmp_path: Path) -> None:
    path = tmp_path / "few.txt"
    path.write_text("This is a sentence in English.\nAnd this is another one.\n")
    assert "Only 0% of the sentences look like Chinese" in import_corpus([path], "zh").report.warnings[0]


def test_traditional_characters_are_chinese(tmp_path: Path) -> None:
    path = tmp_path / "tw.txt"
    lines = [f"這是我們的第{i}個句子，請將檔案儲存為其他格式。" for i in "一二三四五六七八九十"] * 3
    path.write_text("\n".join(lines))
    for code in ("zh", "zh-TW", "zh-Hant"):
        assert import_corpus([path], code, options=CorpusOptions(deduplicate=False)).report.languages == {"zh": 1.0}


def test_a_language_that_cannot_be_told_is_said() -> None:
    assert "could not be checked" in import_corpus([EN], "qq").report.warnings[0]


def test_options_are_checked() -> None:
    with pytest.raises(OptionError, match="normalization"):
        CorpusOptions(normalization="NFD")
    with pytest.raises(OptionError, match="Did you mean min_chars"):
        CorpusOptions.from_mapping({"min_char": 3})


def test_progress_grows_to_the_end_and_can_stop() -> None:
    class Watch(Progress):
        def __init__(self, stop: bool) -> None:
            super().__init__()
            self.seen: list[tuple[float, float | None]] = []
            self.stop = stop

        def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
            self.seen.append((done, total))

        def check(self) -> None:
            if self.stop:
                raise Cancelled("Stopped.")

    watch = Watch(stop=False)
    import_corpus([EN, ZH], "en", progress=watch, options=CorpusOptions(check_language=False))
    done = [item[0] for item in watch.seen]
    assert len(done) > 3
    assert done == sorted(done)
    assert watch.seen[-1] == (EN.stat().st_size + ZH.stat().st_size,) * 2
    with pytest.raises(Cancelled):
        import_corpus([EN], "en", progress=Watch(stop=True))


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the reference data sets are not on this machine")
@pytest.mark.parametrize(("name", "language", "kept"), [("train.luxun.random.zh", "zh", 0.98), ("train.shake.all.en", "en", 0.95)])
def test_style_corpora(name: str, language: str, kept: float) -> None:
    corpus = import_corpus([DATA / "mtsc" / name], language)
    assert len(corpus) > kept * corpus.report.lines
    assert set(corpus.report.skipped) <= {"duplicate", "no letters"}
    assert corpus.report.languages[language] > 0.95
    assert corpus.report.warnings == []
