"""What the page of phrases rests on: counts, keyness, exclusions, the table and the trees, on real text."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora import Corpus, import_corpus
from engine.corpora.types import Segment
from engine.errors import InputError
from engine.memory import assign_layers
from engine.phrases import Drawing, Phrase, PhraseOptions, PhraseSet, Tree, extract_phrases
from engine.phrases.exclusions import EXCLUSIONS_FILE, Exclusions
from engine.phrases.keyness import keyness, level
from engine.phrases.occurrences import Finder, phrase_key
from engine.phrases.table import TABLE_FILE, PhraseTable, layers_of, open_table
from engine.phrases.tree_store import TREES_FILE, read_tree, writing_trees
from engine.workflows.explore.phrase_map import plane
from tests.conftest import ROOT, SAMPLES

LITERARY = SAMPLES / "literary-zh" / "literary-zh.txt"
STATISTICAL = PhraseOptions(parser="statistical")


# -- counting


def test_phrases_are_counted_as_words_in_a_row() -> None:
    finder = Finder(["the rain", "rain", "Rain stopped", "well-known"], "en")
    counts, words = finder.count(["The rain, rain stopped.", "A well-known rain; rained."])
    assert counts.tolist() == [1, 3, 1, 1]
    assert words == 8


def test_chinese_is_counted_by_characters() -> None:
    counts, words = Finder(["不曾", "不曾停歇", "DNA"], "zh").count(["雨不曾停歇，不曾。", "DNA 不停"])
    assert counts.tolist() == [2, 1, 1]
    assert words == 10


@given(st.lists(st.sampled_from("雨停不曾了"), min_size=1, max_size=40).map("".join))
def test_counts_are_those_of_a_plain_search(text: str) -> None:
    phrases = ["雨", "不曾", "雨停了", "停停停"]
    counts, words = Finder(phrases, "zh").count([text])
    plain = [sum(text.startswith(phrase, position) for position in range(len(text))) for phrase in phrases]
    assert counts.tolist() == plain
    assert words == len(text)


# -- keyness


def test_log_likelihood_of_a_worked_example() -> None:
    # 10 of 1,000 words against 1 of 1,000: 2 (10 ln(10/5.5) + ln(1/5.5))
    result = keyness(np.array([10]), np.array([1]), 1000, 1000)
    assert result.log_likelihood[0] == pytest.approx(2 * (10 * math.log(10 / 5.5) + math.log(1 / 5.5)))
    assert result.log_ratio[0] == pytest.approx(math.log2(10))
    assert level(result.log_likelihood[0]) == "p < 0.01"
    assert result.low[0] < result.log_ratio[0] < result.high[0]


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1000, 9000), st.integers(1000, 9000))
def test_keyness_is_careful_and_the_same_from_both_sides(a: int, b: int, n: int, m: int) -> None:
    result = keyness(np.array([a]), np.array([b]), n, m)
    swapped = keyness(np.array([b]), np.array([a]), m, n)
    assert result.log_likelihood[0] >= 0
    assert result.log_likelihood[0] == pytest.approx(swapped.log_likelihood[0], abs=1e-6)
    assert result.value[0] == pytest.approx(-swapped.value[0])
    assert abs(result.value[0]) <= max(abs(result.low[0]), abs(result.high[0]))
    if a / n == b / m:
        assert result.value[0] == 0


def test_more_evidence_for_the_same_ratio_counts_more() -> None:
    result = keyness(np.array([2, 20, 200]), np.array([1, 10, 100]), 10_000, 10_000)
    assert result.value.tolist() == sorted(result.value.tolist())
    assert result.value[0] == 0
    assert 0 < result.value[2] < 1 == pytest.approx(result.log_ratio[2])


def test_without_general_text_nothing_is_said() -> None:
    assert keyness(np.array([3]), np.array([0]), 100, 0).value.tolist() == [0]


# -- exclusions


def test_exclusions_are_kept_undone_and_stamped(tmp_path: Path) -> None:
    assert not Exclusions.load(tmp_path)
    assert Exclusions.load(tmp_path).content() == []
    Exclusions.exclude(tmp_path, ["Acme  GmbH", "page 3"], sentences=True)
    result = Exclusions.exclude(tmp_path, ["the"])
    assert "acme gmbh" in result
    assert result.last == "exclude 1 phrase"
    assert result.content() == [["acme gmbh", "page 3", "the"], ["acme gmbh", "page 3"]]
    assert Exclusions.load(tmp_path).content() == result.content()
    assert Exclusions.restore(tmp_path, ["ACME GmbH"]).sentence_content() == ["page 3"]
    assert Exclusions.undo(tmp_path).sentence_content() == ["acme gmbh", "page 3"]
    assert not Exclusions.undo(tmp_path).phrases.keys() - {"acme gmbh", "page 3"}
    assert not Exclusions.undo(tmp_path)
    with pytest.raises(InputError, match="nothing to undo"):
        Exclusions.undo(tmp_path)
    with pytest.raises(InputError, match="No phrase was chosen"):
        Exclusions.exclude(tmp_path, [])


def test_a_torn_line_loses_only_itself(tmp_path: Path) -> None:
    Exclusions.exclude(tmp_path, ["one"])
    with (tmp_path / EXCLUSIONS_FILE).open("a") as file:
        file.write('{"action": "exclude", "phra')
    assert set(Exclusions.exclude(tmp_path, ["two"]).phrases) == {"one", "two"}


def test_a_phrase_goes_alone_or_with_its_sentences(tmp_path: Path) -> None:
    phrases = [Phrase(text, 1, 1, "X", 0) for text in ("Acme", "at Acme", "the acmes", "rain", "the rain")]
    result = Exclusions.exclude(tmp_path, ["rain"])
    assert [phrase.text for phrase in result.keep(phrases, "en")] == ["Acme", "at Acme", "the acmes", "the rain"]
    assert not result.holder("en")("The rain at Acme.")
    result = Exclusions.exclude(tmp_path, ["ACME"], sentences=True)
    assert [phrase.text for phrase in result.keep(phrases, "en")] == ["the acmes", "the rain"]
    assert result.holder("en")("The rain at Acme.")
    assert not result.holder("en")("The acmes.")


# -- the table


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    corpus = import_corpus([LITERARY], "zh")
    corpus.save(folder)
    with writing_trees(folder / TREES_FILE) as trees:
        extract_phrases(corpus.texts(), "zh", STATISTICAL, drawing=Drawing(trees)).save(folder / "phrases.jsonl")
    return folder


def test_the_table_knows_what_makes_a_style(workspace: Path) -> None:
    table = open_table(workspace, "zh", ROOT / "assets")
    phrases = PhraseSet.load(workspace / "phrases.jsonl")
    assert table.texts == [phrase.text for phrase in phrases]
    assert table.lengths.tolist() == [phrase.length for phrase in phrases]
    assert (table.own >= 1).all(), "a phrase occurs where it was found"
    typical = [table.texts[row] for row in np.argsort(-table.keyness.value)[:5]]
    assert all(table.keyness.log_ratio[table.texts.index(text)] > 1 for text in typical)
    again = PhraseTable.load(workspace / TABLE_FILE)
    assert again is not None
    assert again.texts == table.texts
    assert again.keyness.value.tolist() == table.keyness.value.tolist()


def test_the_table_is_made_again_when_the_phrases_change(tmp_path: Path) -> None:
    segments = [Segment("The rain had stopped.", domain="a"), Segment("Rain, rain, rain.", domain="b")]
    for result in (["rain"], ["rain", "had stopped"]):
        PhraseSet([Phrase(text, len(text.split()), 1, "X", 0) for text in result]).save(tmp_path / "phrases.jsonl")
        table = open_table(tmp_path, "en", ROOT / "assets", segments)
        assert table.texts == result
        assert table.domains == ["a", "b"]
        assert table.by_domain[0].tolist() == [1, 3]
    (tmp_path / TABLE_FILE).write_bytes(b"PK\x03\x04 broken")
    assert open_table(tmp_path, "en", ROOT / "assets", segments).texts == result


def test_an_empty_table_is_a_table(tmp_path: Path) -> None:
    PhraseSet([]).save(tmp_path / "phrases.jsonl")
    assert len(open_table(tmp_path, "xx", ROOT / "assets", [])) == 0
    assert len(open_table(tmp_path, "xx", ROOT / "assets", [])) == 0


@given(st.lists(st.integers(1, 12), max_size=80), st.integers(1, 12))
def test_layers_are_those_of_the_memory(lengths: list[int], layers: int) -> None:
    assert layers_of(np.array(lengths, dtype=np.int32), layers).tolist() == assign_layers(lengths, layers)


# -- trees


def test_every_sentence_has_its_tree(workspace: Path) -> None:
    corpus = Corpus.load(workspace)
    for sentence in corpus.texts()[::37]:
        tree = read_tree(workspace / TREES_FILE, sentence)
        assert tree is not None
        assert "".join(leaf.text for leaf in tree.leaves()) == "".join(sentence.split())
    assert read_tree(workspace / TREES_FILE, "没有这句。") is None
    assert read_tree(workspace / "none.sqlite", "x") is None


def test_a_tree_comes_back_as_it_was_and_a_failed_file_leaves_the_old(tmp_path: Path) -> None:
    tree = Tree("S", "a b", (Tree("NP", "a"), Tree("VP", "b")))
    with writing_trees(tmp_path / "t#?.sqlite") as trees:
        trees("a b", tree)

    def fails() -> None:
        with writing_trees(tmp_path / "t#?.sqlite") as trees:
            trees("c", tree)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert read_tree(tmp_path / "t#?.sqlite", "a b") == tree
    assert read_tree(tmp_path / "t#?.sqlite", "c") is None


# -- the map


def test_the_plane_keeps_what_differs_most() -> None:
    random = np.random.default_rng(1)
    centre = np.array([0.0, 0.0, 5.0, 5.0])
    vectors = centre + random.normal(size=(300, 4)) * np.array([2.0, 0.5, 0.01, 0.01])
    points, explained = plane(vectors)
    assert points.shape == (300, 2)
    assert abs(np.corrcoef(points[:, 0], vectors[:, 0])[0, 1]) > 0.95
    assert explained[0] > explained[1] > 0
    assert plane(vectors)[0].tolist() == points.tolist()


def test_keys_are_those_that_extraction_merges_by() -> None:
    assert phrase_key("  The\u3000Rain ") == phrase_key("the rain") == "the rain"
    assert json.dumps(phrase_key("雨")) == json.dumps("雨")
