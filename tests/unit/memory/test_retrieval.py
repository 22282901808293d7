"""Retrieval against its slow definitions, and what the methods rely on: nothing finds itself, the same question has the
same answer."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora.tokenize import words
from engine.corpora.types import SentencePair
from engine.errors import BundleError
from engine.memory import idf as idf_module
from engine.memory.dense_ngrams import DenseNgrams, gram_vectors
from engine.memory.idf import Idf
from engine.memory.neighbours import IdfNgrams, IdfSentences
from engine.memory.ngrams import all_ngrams, reduced_ngrams
from engine.memory.retrieval_set import load_sentences, save_sentences
from engine.memory.self_match import OwnText
from engine.memory.vector_index import VectorIndex, factory
from tests.properties import few

WORD = st.sampled_from([*"abcdefg", "the", "the", "of", ","])
SENTENCE = st.lists(WORD, min_size=1, max_size=14)
CORPUS = st.lists(SENTENCE, min_size=1, max_size=12)


def slow_idf(corpus):
    """f_t = log(|C| / n_t), word for word."""
    return {t: math.log(len(corpus) / sum(t in s for s in corpus)) for s in corpus for t in s}


def slow_similarity(f, unknown, query, other):
    """Equation 1: 2 Σ_{X ∩ X'} f - Σ_{X ∪ X'} f."""
    x, y = set(query), set(other)
    return 2 * sum(f.get(t, unknown) for t in x & y) - sum(f.get(t, unknown) for t in x | y)


def slow_best(corpus, query, pieces, shut):
    """All (similarity, piece, owner) of pieces that share a token of weight with the query, of sentences that are open."""
    f = slow_idf(corpus)
    unknown = math.log(len(corpus))
    results = []
    for owner, piece in pieces:
        if owner in shut or not any(f.get(t, 0) > 0 for t in set(piece) & set(query)):
            continue
        results.append((slow_similarity(f, unknown, query, piece), owner))
    return results


@given(CORPUS, SENTENCE, st.integers(1, 5), st.sets(st.integers(0, 11), max_size=3), st.sampled_from([1, 2048]))
def test_sentences_are_ranked_by_the_slow_definition(corpus, query, most, blocked, long):
    blocked = {i for i in blocked if i < len(corpus)}
    idf_module.LONG, before = long, idf_module.LONG  # 1: the search tries to end at every word
    try:
        result = IdfSentences(corpus).neighbours(query, most, blocked)
    finally:
        idf_module.LONG = before
    expected = sorted((s for s, _ in slow_best(corpus, query, list(enumerate(corpus)), blocked)), reverse=True)[:most]
    assert [hit.score for hit in result] == pytest.approx(expected, abs=1e-9)
    assert not blocked & {hit.sentence for hit in result}
    f, unknown = slow_idf(corpus), math.log(len(corpus))
    for hit in result:
        assert hit.score == pytest.approx(slow_similarity(f, unknown, query, corpus[hit.sentence]), abs=1e-9)


@given(CORPUS, SENTENCE, st.sampled_from([(2,), (4, 6), (6, 10, 18)]), st.sampled_from([1, 2048]))
def test_each_ngram_finds_the_nearest_that_is_not_taken(corpus, query, widths, long):
    idf_module.LONG, before = long, idf_module.LONG
    try:
        hits = list(IdfNgrams(corpus, widths).hits(query))
    finally:
        idf_module.LONG = before
    taken, expected = set(), []
    by_place = {(hit.width, hit.start): hit for hit in hits}
    for width in sorted(widths):
        pieces = [(i, gram) for i, sentence in enumerate(corpus) for gram in reduced_ngrams(sentence, width)]
        for number, gram in enumerate(reduced_ngrams(query, width)):
            result = slow_best(corpus, gram, pieces, taken)
            hit = by_place.get((width, number * (width // 2)))
            assert (hit is None) == (not result)
            if hit is None:
                continue
            best = max(result)[0]
            assert hit.score == pytest.approx(best, abs=1e-9)
            assert any(owner == hit.sentence and s == pytest.approx(best, abs=1e-9) for s, owner in result)
            taken.add(hit.sentence)
            expected.append(hit)
    assert len(hits) == len(expected) == len({hit.sentence for hit in hits})


@given(st.lists(st.integers(0, 9), max_size=60), st.sampled_from([2, 6, 10, 18]))
def test_the_reduced_set_is_as_defined(tokens, width):
    t = len(tokens)
    expected = [tuple(tokens[i - 1 : i - 1 + width]) for i in range(1, t + 1) if i % (width // 2) == 1 or width == 2]
    assert reduced_ngrams(tokens, width) == expected


def test_the_reduced_set_of_a_sentence_by_hand():
    assert reduced_ngrams("abcdefgh", 6) == [tuple("abcdef"), tuple("defgh"), tuple("gh")]


@given(st.lists(st.integers(0, 40), max_size=8), st.sampled_from([2, 6, 10, 18]))
def test_ngrams_of_many_sentences_are_those_of_each(lengths, width):
    sentences = [[(i, j) for j in range(n)] for i, n in enumerate(lengths)]
    flat = [token for sentence in sentences for token in sentence]
    owners, begins, sizes = all_ngrams(np.array(lengths, dtype=np.int64), width)
    got = [(o, tuple(flat[b : b + s])) for o, b, s in zip(owners, begins, sizes, strict=True)]
    assert got == [(i, gram) for i, sentence in enumerate(sentences) for gram in reduced_ngrams(sentence, width)]


@few
@given(CORPUS)
def test_idf_is_the_logarithm_of_the_share(corpus):
    idf = Idf(corpus)
    assert {word: float(idf.weights[i]) for word, i in idf.ids.items()} == pytest.approx(slow_idf(corpus))


def test_words_are_cut_alike_in_every_script():
    assert words("The Rain, stopped…") == ["the", "rain", ",", "stopped", ".", ".", "."]
    assert words("雨停了。OK") == ["雨", "停", "了", "。", "ok"]
    assert words("über ＡＢＣ 12") == ["über", "abc", "12"]


@pytest.mark.parametrize("metric", ["dot", "l2"])
def test_vectors_are_found_exactly_where_they_are_few(metric):
    draw = np.random.default_rng(0)
    vectors, query = draw.normal(size=(50, 8)).astype(np.float32), draw.normal(size=(3, 8)).astype(np.float32)
    numbers, scores = VectorIndex(vectors, metric).search(query, 5)
    for row in range(3):
        product = vectors @ query[row]
        expected = product if metric == "dot" else -np.square(vectors - query[row]).sum(1)
        assert list(numbers[row]) == list(np.argsort(-expected)[:5])
        assert scores[row] == pytest.approx(np.sort(expected)[::-1][:5] * (1 if metric == "dot" else -1), abs=1e-4)


def test_a_search_goes_on_until_it_has_left_all_that_is_blocked_behind():
    vectors = np.eye(4, dtype=np.float32).repeat(30, 0) * np.linspace(2, 1, 120, dtype=np.float32)[:, None]
    owners = np.repeat(np.arange(40), 3)
    result = VectorIndex(vectors, "dot").search_unblocked(vectors[0], 2, set(range(10)), owners)
    assert len(result) == 2
    assert all(owners[number] >= 10 for number, _ in result)
    assert VectorIndex(vectors, "dot").search_unblocked(vectors[0], 2, set(range(40)), owners) == []


def test_a_large_set_gets_the_papers_index():
    assert factory(99_999) == "Flat"
    assert factory(100_000) == "IVF1024_HNSW32,SQ8"


def test_dense_ngrams_are_means_and_the_nearest_is_the_least_squared_distance():
    draw = np.random.default_rng(1)
    sentences = [draw.normal(size=(n, 5)).astype(np.float32) for n in (7, 3, 12, 20, 1)]
    query, width = draw.normal(size=(8, 5)).astype(np.float32), 6
    grams = [(i, gram) for i, s in enumerate(sentences) for gram in (s[b : b + width].mean(0) for b in range(0, len(s), 3))]
    lengths = np.array([len(s) for s in sentences])
    vectors = {width: np.concatenate([gram_vectors(s, width) for s in sentences])}
    assert vectors[width] == pytest.approx(np.stack([gram for _, gram in grams]), abs=1e-6)
    hits = list(DenseNgrams(vectors, lengths, widths=[width]).hits(query, [2]))
    taken = {2}
    for hit, begin in zip(hits, range(0, 8, 3), strict=True):
        mean = query[begin : begin + width].mean(0)
        distance, owner = min((float(np.square(gram - mean).sum()), i) for i, gram in grams if i not in taken)
        assert (hit.sentence, hit.start) == (owner, begin)
        assert -hit.score == pytest.approx(distance, abs=1e-4)
        taken.add(owner)


TEXTS = ["雨停了。", "他什么也不曾说。", "雨停了！", "路是长的。", "河边的老茶馆，去年竟关了门。", "河边的老茶馆去年竟关了门"]
SOURCES = ["The rain stopped.", "He said nothing.", "It no longer rained.", "the rain stopped", "Closed.", "Shut."]


def test_a_sentence_is_known_again_by_either_side_whatever_its_marks():
    own_text = OwnText(TEXTS, SOURCES)
    assert own_text.of("The rain stopped.", "雨停了。") == {0, 2, 3}  # 2 by its target, 3 by its source
    assert own_text.of("", "雨 停 了") == {0, 2, 3}
    assert own_text.of("The old teahouse closed.", "河边的老茶馆，去年竟关了门。") == {4, 5}
    assert own_text.of("Something else.", "别的话。") == set()


def test_no_sentence_finds_itself_or_its_like():
    corpus = [words(source) for source in SOURCES]
    own_text, engine = OwnText(TEXTS, SOURCES), IdfNgrams(corpus)
    for i, sentence in enumerate(corpus):
        shut = own_text.of(SOURCES[i], TEXTS[i])
        assert i in shut
        assert not shut & {hit.sentence for hit in engine.neighbours(sentence, None, shut)}


def test_the_same_question_has_the_same_answer():
    corpus = [words(source) for source in SOURCES] * 4
    engine = IdfNgrams(corpus)
    assert engine.neighbours(words("the rain stopped"), 5) == engine.neighbours(words("the rain stopped"), 5)


def test_a_set_survives_its_file_and_damage_is_named(tmp_path):
    pairs = [SentencePair("a", "甲", "law"), SentencePair("b\u2028c", "乙")]
    save_sentences(pairs, tmp_path / "pairs.jsonl")
    assert load_sentences(tmp_path / "pairs.jsonl") == pairs
    save_sentences(pairs, tmp_path / "pairs.jsonl", sources=False)
    assert [pair.source for pair in load_sentences(tmp_path / "pairs.jsonl", sources=False)] == ["", ""]
    with pytest.raises(BundleError, match="line 1 of pairs"):
        load_sentences(tmp_path / "pairs.jsonl")
    (tmp_path / "pairs.jsonl").write_text('{"source": "a", "target": "b"}\n{"source": 1, "target": "b"}\n')
    with pytest.raises(BundleError, match="line 2 of pairs"):
        load_sentences(tmp_path / "pairs.jsonl")
    with pytest.raises(BundleError, match=r"it has no gone\.jsonl"):
        load_sentences(tmp_path / "gone.jsonl")
