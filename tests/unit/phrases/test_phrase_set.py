"""Phrase sets on disk, counting, options, trees."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError, OptionError, StorageError
from engine.phrases import Phrase, PhraseOptions, PhraseSet, Tree
from engine.phrases.extract import Collector

PHRASES = st.builds(
    Phrase,
    text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    length=st.integers(1, 200),
    count=st.integers(1, 10**6),
    label=st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    example=st.integers(0, 10**6),
)


@given(st.lists(PHRASES, max_size=8), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_what_is_saved_is_loaded(tmp_path: Path, phrases: list[Phrase], parser: str) -> None:
    path = tmp_path / "phrases.jsonl"
    PhraseSet(phrases, parser).save(path)
    assert PhraseSet.load(path) == PhraseSet(phrases, parser)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["phrases.info.json", "phrases.jsonl"]


def test_lines_have_the_documented_keys(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "phrases.jsonl"
    PhraseSet([Phrase("国王", 1, 3, "NP", 0)], "a parser").save(path)
    assert path.read_text(encoding="utf-8") == '{"text": "国王", "length": 1, "count": 3, "label": "NP", "example": 0}\n'
    (tmp_path / "deep" / "phrases.info.json").unlink()
    assert PhraseSet.load(path).parser == ""


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        "{}",
        '{"text": "a", "length": 1, "count": 1, "label": "NP"}',
        '{"text": "a", "length": "1", "count": 1, "label": "NP", "example": 0}',
        '{"text": "a", "length": true, "count": 1, "label": "NP", "example": 0}',
        '{"text": "a", "length": 0, "count": 1, "label": "NP", "example": 0}',
        '{"text": "a", "length": 1, "count": 1, "label": "NP", "example": -1}',
        '{"text": " ", "length": 1, "count": 1, "label": "NP", "example": 0}',
        "[" * 100_000,
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "phrases.jsonl"
    good = json.dumps({"text": "a", "length": 1, "count": 1, "label": "NP", "example": 0})
    path.write_text(f"{good}\n{line}\n")
    with pytest.raises(InputError, match="line 2"):
        PhraseSet.load(path)


def test_other_damage(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        PhraseSet.load(tmp_path / "none.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        PhraseSet.load(tmp_path / "bytes.jsonl")
    PhraseSet([], "p").save(tmp_path / "a.jsonl")
    (tmp_path / "a.info.json").write_text("[1]")
    assert PhraseSet.load(tmp_path / "a.jsonl") == PhraseSet([], "")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "phrases.jsonl"
    PhraseSet([Phrase("old", 1, 1, "NN", 0)]).save(path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StorageError, match="disk is full"):
        PhraseSet([Phrase("new", 1, 1, "NN", 0)]).save(path)
    assert PhraseSet.load(path).phrases[0].text == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_same_phrases_become_one() -> None:
    collector = Collector()
    collector.add("The king", 2, "NP", 4)
    collector.add("the king", 2, "NP", 7, weight=2)
    collector.add("the  king", 2, "X", 9)
    collector.add("a ship", 2, "NP", 1)
    collector.add("Rome", 1, "NNP", 3)
    result = collector.phrases()
    assert result == [Phrase("Rome", 1, 1, "NNP", 3), Phrase("the king", 2, 4, "NP", 7), Phrase("a ship", 2, 1, "NP", 1)]
    assert PhraseSet(result).by_length() == {1: 1, 2: 2}
    assert [phrase.text for phrase in collector.phrases(min_count=2)] == ["the king"]


def test_doubtful_phrases_need_two_places() -> None:
    collector = Collector()
    collector.add("of the", 2, "statistical", 0, weight=5, sound=False)  # one sentence, repeated: one place
    collector.add("I pray you", 3, "statistical", 0, sound=False)
    collector.add("i pray you", 3, "statistical", 1, sound=False)
    collector.add("once sound", 2, "statistical", 1, sound=True)
    assert [phrase.text for phrase in collector.phrases()] == ["once sound", "I pray you"]


def test_options() -> None:
    assert [PhraseOptions().longest(code) for code in ("en", "eng_Latn", "zh", "de")] == [8, 8, 10, 10]
    assert PhraseOptions(l_max=5).longest("en") == 5
    for bad in ({"l_max": 0}, {"parser": "best"}, {"min_count": 0}):
        with pytest.raises(OptionError):
            PhraseOptions.from_mapping(bad)


def test_a_deep_tree_can_be_walked_and_written() -> None:
    tree = Tree("word", "x")
    for _ in range(5000):
        tree = Tree("statistical", "x", (tree,))
    assert len(list(tree.walk())) == 5001
    assert [leaf.text for leaf in tree.leaves()] == ["x"]
    small = Tree("S", "a b", (Tree("X", "a"), Tree("Y", "b")))
    assert small.to_mapping() == {
        "label": "S",
        "text": "a b",
        "children": [{"label": "X", "text": "a", "children": []}, {"label": "Y", "text": "b", "children": []}],
    }
    assert tree.to_mapping()["label"] == "statistical"
