"""Phrase pairs from the user's own translations: consistency as Och and Ney define it, against a slow search."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory import phrase_alignment as alignment
from engine.memory.phrase_alignment import (
    align_words,
    can_align,
    consistent_span,
    read_links,
    sources_of_phrases,
    spans_of,
    symmetric,
)

LINKS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14)


def consistent(source, target, links):
    """Och and Ney (2004): a link inside; every link from inside on one side ends inside on the other."""
    (i1, i2), (j1, j2) = source, target
    linked = any(i1 <= i <= i2 and j1 <= j <= j2 for i, j in links)
    return linked and all((i1 <= i <= i2) == (j1 <= j <= j2) for i, j in links)


@given(LINKS, st.integers(0, 5), st.integers(0, 5))
def test_the_span_is_the_least_of_all_consistent_ones(links, a, b):
    first, last = min(a, b), max(a, b)
    all_of_them = [
        (i1, i2) for i1, i2 in itertools.combinations_with_replacement(range(6), 2) if consistent((i1, i2), (first, last), links)
    ]
    result = consistent_span(first, last, links)
    if not all_of_them:
        assert result is None
    else:
        assert result == min(all_of_them, key=lambda span: span[1] - span[0])
        assert all(i1 <= result[0] and result[1] <= i2 for i1, i2 in all_of_them)


@given(LINKS, LINKS)
def test_both_directions_become_one(forward, reverse):
    links = symmetric(forward, reverse)
    assert forward & reverse <= links <= forward | reverse
    for i, j in forward | reverse:  # the last step: no word is left alone that a link could join to another lonely one
        assert any(i == a or j == b for a, b in links)


def test_the_textbook_example_of_growing():
    forward = {(0, 0), (1, 1), (1, 2), (3, 3)}
    reverse = {(0, 0), (1, 1), (2, 2), (4, 4)}
    assert symmetric(forward, reverse) == {(0, 0), (1, 1), (1, 2), (2, 2), (3, 3), (4, 4)}


def diagonal(pairs):
    """Stands for the aligner: the i-th word with the i-th."""
    return [{(i, i) for i in range(min(len(a), len(b)))} for a, b in pairs]


def test_a_phrase_gets_the_words_that_stand_for_it():
    pairs = [("The old house, red", "Das alte Haus, rot"), ("the new house", "das neue Haus")]
    result = sources_of_phrases(["alte Haus", "Haus, rot", "das neue", "neue Tür", "haus"], pairs, ("en", "de"), diagonal)
    assert result == {"alte Haus": "old house", "Haus, rot": "house, red", "das neue": "the new", "haus": "house"}


def test_the_most_frequent_source_stands():
    pairs = [("a cat", "eine Katze"), ("one dog", "eine Hündin"), ("one hen", "eine Henne")]
    assert sources_of_phrases(["eine"], pairs, ("en", "de"), diagonal) == {"eine": "one"}


def test_sentences_without_words_and_no_pairs_are_passed_over():
    assert sources_of_phrases(["ja"], [("…", "ja"), ("yes", "ja")], ("en", "de"), diagonal) == {"ja": "yes"}
    assert sources_of_phrases(["ja"], [], ("en", "de"), diagonal) == {}
    assert sources_of_phrases([], [("yes", "ja")], ("en", "de"), diagonal) == {}


def test_chinese_is_cut_into_characters():
    assert [("雨停了。"[a:b]) for a, b in spans_of("雨停了。", "zh")] == ["雨", "停", "了"]


def test_links_of_a_file(tmp_path):
    file = tmp_path / "links"
    file.write_text("0-0 1-2\n\n3-1\n", encoding="ascii")
    assert read_links(file) == [{(0, 0), (1, 2)}, set(), {(3, 1)}]


@pytest.mark.skipif(not can_align(), reason="eflomal is not installed")
def test_real_alignments_of_a_small_language():
    """Thirty nouns, ten adjectives, two orders of words: the aligner finds which is which."""
    draw = random.Random(3)
    nouns = {f"noun{i}": f"nomen{i}" for i in range(30)}
    words = {f"adj{i}": f"adi{i}" for i in range(10)}
    pairs = []
    for _ in range(400):
        a, b, c = draw.choice(list(words)), draw.choice(list(nouns)), draw.choice(list(nouns))
        pairs.append((f"the {a} {b} sees {c}", f"{nouns[b]} {words[a]} {nouns[c]} videt"))
    phrases = [f"{nouns[b]} {words[a]}" for a, b in itertools.product(words, nouns)]
    result = sources_of_phrases(phrases, pairs, ("en", "it"))
    turned = {f"{nouns[b]} {words[a]}": f"{a} {b}" for a, b in itertools.product(words, nouns)}
    right = sum(turned[phrase] in source for phrase, source in result.items())
    assert right > 0.8 * len(result) > 100


def test_without_the_aligner_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(alignment, "can_align", lambda: False)
    with pytest.raises(alignment.MissingError, match="eflomal is not installed"):
        align_words([(["a"], ["b"])])
