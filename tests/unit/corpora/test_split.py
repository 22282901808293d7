"""Splits without leaks, and corpora on disk."""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora import Corpus, ImportReport, Segment, import_corpus, split
from engine.corpora.near_duplicates import groups, key, shingles
from engine.corpora.report import FileReport
from engine.errors import CorpusError, OptionError, StorageError
from tests.properties import few

SAMPLES = Path(__file__).resolve().parents[3] / "assets" / "samples"
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def corpus_of(texts: list[str], sources: list[str | None] | None = None) -> Corpus:
    sources = sources or [None] * len(texts)
    segments = [Segment(t, source=s, file="a.txt", line=i) for i, (t, s) in enumerate(zip(texts, sources, strict=True), 1)]
    file = FileReport("a.txt", "utf-8", len(texts), len(texts), len(texts))
    return Corpus("en", segments, ImportReport("en", files=[file]))


def jaccard(a: str, b: str) -> float:
    first, other = shingles(key(a)), shingles(key(b))
    return len(first & other) / len(first | other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("I have no doubt of it.", "I have no doubt of it!", True),
        ("I have no doubt of it.", "i HAVE  no doubt, of it", True),
        ("Article 12 is repealed.", "Article 7 is repealed.", True),
        ("他说：“好！”", "他说好。", True),
        ("ＡＢＣ公司的产品", "ABC公司的产品", True),
        ("Straße", "STRASSE", True),
        ("Where they so request, any employee may be involved.", "Where they so request, any employees may be involved.", True),
        ("I have no doubt of it.", "She went to the market.", False),
        ("12", "34", False),
    ],
)
def test_what_counts_as_near_identical(one: str, other: str, same: bool) -> None:
    numbers = groups([one, "An unrelated line between them.", other])
    assert (numbers[0] == numbers[2]) is same
    assert numbers[1] == 1


WORDS = st.lists(st.sampled_from(["the", "moon", "sun", "is", "was", "up", "down", "now", *"好天黑了3."]), min_size=1, max_size=12)


@given(st.lists(WORDS.map(" ".join), max_size=25))
def test_no_near_pair_is_missed(texts: list[str]) -> None:
    numbers = groups(texts)
    for i, j in combinations(range(len(texts)), 2):
        if jaccard(texts[i], texts[j]) >= 0.8:
            assert numbers[i] == numbers[j]
    assert all(number <= i for i, number in enumerate(numbers))
    # Without a chain of like ones, nothing is put together.
    for i, number in enumerate(numbers):
        others = [j for j, n in enumerate(numbers) if n == number and j != i]
        assert not others or any(jaccard(texts[i], texts[j]) >= 0.8 for j in others)


@given(st.lists(WORDS.map(" ".join), max_size=60), st.integers(0, 20), st.integers(0, 20), st.integers(0, 5))
def test_parts_are_disjoint_whole_and_without_leaks(texts: list[str], valid: int, test: int, seed: int) -> None:
    corpus = corpus_of(texts)
    parts = split(corpus, valid=valid, test=test, seed=seed)
    assert sorted(s.line for s in parts.train + parts.valid + parts.test) == list(range(1, len(texts) + 1))
    for part in (parts.train, parts.valid, parts.test):
        assert [s.line for s in part] == sorted(s.line for s in part)
    for first, other in combinations((parts.train, parts.valid, parts.test), 2):
        for a in first:
            assert all(jaccard(a.text, b.text) < 0.8 for b in other)
    assert len(parts.valid) <= valid
    assert len(parts.test) <= test
    if (len(parts.valid), len(parts.test)) != (valid, test):
        assert parts.notes
    if texts:
        assert parts.train
    assert split(corpus, valid=valid, test=test, seed=seed) == parts


def test_one_source_never_straddles() -> None:
    sources = [f"Satz Nummer {'abcdefghij'[i // 2]} hier" for i in range(20)]
    texts = [f"{word} is {random.Random(word).random()} {word * 3}" for word in [letter * 5 for letter in "abcdefghijklmnopqrst"]]
    parts = split(corpus_of(texts, list(sources)), valid=4, seed=3)
    assert len(parts.valid) == 4
    assert not {s.source for s in parts.valid} & {s.source for s in parts.train}


def test_sizes_seeds_and_small_corpora() -> None:
    corpus = import_corpus([SAMPLES / "literary-zh" / "literary-zh.txt"], "zh")
    parts = split(corpus, valid=40, test=30, seed=1)
    assert (len(parts.valid), len(parts.test), parts.notes) == (40, 30, [])
    assert len(parts.train) == len(corpus) - 70
    assert split(corpus, valid=40, test=30, seed=2).valid != parts.valid

    small = split(corpus, valid=500, test=500)
    assert len(small.train) >= 0.8 * len(corpus)
    assert abs(len(small.valid) - len(small.test)) <= 1
    assert f"only {len(corpus):,} sentences" in small.notes[0]
    with pytest.raises(OptionError):
        split(corpus, valid=-1)
    few = split(corpus_of(["The first line of three.", "Another thing entirely.", "Quite different words."]), valid=10, test=10)
    assert (len(few.train), len(few.valid), len(few.test)) == (1, 1, 1)
    assert split(corpus_of(["Only one."]), valid=5).train


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the reference data sets are not on this machine")
def test_a_real_corpus_has_no_leak() -> None:
    corpus = import_corpus([DATA / "mtsc" / "train.luxun.random.zh"], "zh")
    parts = split(corpus, valid=300, test=300)
    assert (len(parts.valid), len(parts.test)) == (300, 300)
    held = [shingles(key(s.text)) for s in parts.valid + parts.test]
    train = [shingles(key(s.text)) for s in parts.train]
    for drawn in random.Random(1).sample(held, 60):
        assert all(5 * len(drawn & other) < 4 * len(drawn | other) for other in train)


# --- on disk


def test_save_and_load(tmp_path: Path) -> None:
    corpus = import_corpus([SAMPLES / "elizabethan-en" / "elizabethan-en.txt", SAMPLES / "demo.en.txt"], "en")
    path = corpus.save(tmp_path / "new" / "folder")
    assert path.name == "corpus.jsonl"
    assert sorted(item.name for item in path.parent.iterdir()) == ["corpus.jsonl", "import_report.json"]
    again = Corpus.load(path.parent)
    assert again == corpus
    again.save(path.parent)
    assert Corpus.load(path.parent) == corpus


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@few
@given(segments=st.lists(st.builds(Segment, TEXT, st.none() | TEXT, TEXT, st.integers(0, 10**6), TEXT), max_size=10))
def test_any_segments_come_back(segments: list[Segment], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    file = FileReport("a.txt", kept=len(segments), segments=len(segments))
    corpus = Corpus("zh", segments, ImportReport("zh", files=[file]))
    corpus.save(folder)
    assert Corpus.load(folder) == corpus


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1]", "not an object"),
        ('{"source": "x"}', "no text"),
        ('{"text": 3}', "no text"),
        ('{"text": "x", "line": "3"}', "line is not a line number"),
        ('{"text": "x", "line": -3}', "line is not a line number"),
        ('{"text": "x", "source": 3}', "source is not text"),
        ('{"text": "x", "domain": null}', "file or domain is not text"),
        ('{"text": "x", "surprise": 1}', "unknown key 'surprise'"),
        ("\udcff", "not valid JSON"),
    ],
)
def test_damage_is_named_by_file_and_line(tmp_path: Path, line: str, what: str) -> None:
    corpus_of(["One line.", "Another line."]).save(tmp_path)
    path = tmp_path / "corpus.jsonl"
    lines = path.read_text().splitlines()
    path.write_bytes("\n".join([lines[0], line, ""]).encode(errors="surrogateescape"))
    with pytest.raises(CorpusError) as error:
        Corpus.load(tmp_path)
    assert f"{path}, line 2: {what}" in str(error.value)


def test_missing_and_mismatched_files(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"corpus\.jsonl is missing"):
        Corpus.load(tmp_path)
    corpus_of(["One line.", "Another line."]).save(tmp_path)
    path, report = tmp_path / "corpus.jsonl", tmp_path / "import_report.json"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(CorpusError, match="holds 1 sentences, but its report says 2"):
        Corpus.load(tmp_path)
    for bad in ("nonsense", "[]", json.dumps({"language": "en"}), json.dumps({"files": 3, "language": "en"})):
        report.write_text(bad)
        with pytest.raises(CorpusError):
            Corpus.load(tmp_path)
    report.unlink()
    with pytest.raises(CorpusError, match=r"import_report\.json is missing"):
        Corpus.load(tmp_path)


def test_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import os

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="disk is full"):
        corpus_of(["One line."]).save(tmp_path)
    assert list(tmp_path.iterdir()) == []
