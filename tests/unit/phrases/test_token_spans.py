"""Punctuation, offsets, trimming, language codes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.phrases.languages import plain_code, stanza_code
from engine.phrases.token_spans import align, clean_spans, is_punctuation, parts, trim

MARKS = [*"()[]{}“”‘’«»„\"'.,;:!?。，、？（）「」《》—-", "``", "''", "-LRB-", "-RRB-"]
TOKENS = st.lists(st.sampled_from([*MARKS, "king", "国王", "don't", "%", "1,000"]), max_size=12)


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        ("the king ,", "the king"),
        (", the king .", "the king"),
        ("( a cat )", "a cat"),
        ("“ a cat ” .", "a cat"),
        ("he said ( twice )", "he said ( twice )"),
        ("he said “ go ” .", "he said “ go ”"),
        ("( a ) and ( b )", "( a ) and ( b )"),
        ('" a " and " b "', '" a " and " b "'),
        ("er sagte „ ja “ .", "er sagte „ ja “"),
        ("-LRB- a cat -RRB-", "a cat"),
        ("`` a cat ''", "a cat"),
        ("to be , or not to be", "to be , or not to be"),
        ("50 %", "50 %"),
        ("国王 。", "国王"),
        ("《 狂人日记 》", "狂人日记"),
        ("看 《 狂人日记 》 。", "看 《 狂人日记 》"),
        ("a cat )", "a cat"),
        ("( a cat", "a cat"),
        (". . .", ""),
        ("( )", ""),
    ],
)
def test_trim(tokens: str, kept: str) -> None:
    words = tokens.split()
    first, last = trim(words, 0, len(words))
    assert " ".join(words[first:last]) == kept


@given(TOKENS)
def test_trim_ends_on_words_or_whole_pairs_and_twice_is_once(tokens: list[str]) -> None:
    first, last = trim(tokens, 0, len(tokens))
    assert 0 <= first <= last <= len(tokens)
    assert trim(tokens, first, last) == (first, last)
    outside = tokens[:first] + tokens[last:]
    assert all(is_punctuation(token) or token in ("-LRB-", "-RRB-") for token in outside)


@given(st.lists(st.text(min_size=1, max_size=5).filter(lambda t: not any(c.isspace() for c in t)), max_size=10), st.data())
def test_align_finds_tokens_through_any_spacing(tokens: list[str], data: st.DataObject) -> None:
    text, expected = "", []
    for token in tokens:
        text += data.draw(st.sampled_from(["", " ", "  ", "\u3000", "\n"]))
        expected.append((len(text), len(text) + len(token)))
        text += token
    assert align(tokens, text) == expected


def test_align_knows_treebank_spellings_and_refuses_other_text() -> None:
    assert align(["``", "Go", "''", "-LRB-", "now", "-RRB-"], '"Go" (now)') == [(0, 1), (1, 3), (3, 4), (5, 6), (6, 9), (9, 10)]
    assert align(["New York"], "NewYork") == [(0, 7)]
    assert align(["a", "c"], "a b c") is None
    assert align(["abc"], "ab") is None


@given(st.text(alphabet="ab ，。. \n国王", max_size=300), st.integers(2, 40))
def test_parts_cover_all_but_spaces(text: str, limit: int) -> None:
    result = list(parts(text, limit))
    assert "".join("".join(text[a:b].split()) for a, b in result) == "".join(text.split())
    assert all(0 < b - a <= limit for a, b in result)
    assert all(text[a:b] == text[a:b].strip() for a, b in result)
    assert all(before[1] <= after[0] for before, after in pairwise(result))


def test_parts_cut_after_punctuation() -> None:
    text = "一二三四五，六七八九十。" * 3
    assert [text[a:b] for a, b in parts(text, 14)] == ["一二三四五，六七八九十。"] * 3


def test_spans_keep_the_topmost_label_and_the_bounds() -> None:
    tokens = ["the", "old", "king", "."]
    spans = [(0, 4, "S"), (0, 3, "NP"), (2, 3, "NN"), (3, 4, ".")]
    assert list(clean_spans(spans, tokens, shortest=1, longest=3)) == [(0, 3, "S"), (2, 3, "NN")]
    assert list(clean_spans(spans, tokens, shortest=2, longest=2)) == []


@pytest.mark.parametrize(
    ("given_code", "plain", "stanza"),
    [
        ("zh", "zh", "zh-hans"),
        ("zh_CN", "zh", "zh-hans"),
        ("zh-TW", "zh", "zh-hant"),
        ("zho_Hant", "zh", "zh-hant"),
        ("zho_Hans", "zh", "zh-hans"),
        ("cmn", "zh", "zh-hans"),
        ("eng_Latn", "en", "en"),
        ("EN-us", "en", "en"),
        ("de", "de", "de"),
        ("pt-BR", "pt", "pt"),
        ("no", "no", "nb"),
        ("", "", ""),
    ],
)
def test_language_codes(given_code: str, plain: str, stanza: str) -> None:
    assert (plain_code(given_code), stanza_code(given_code)) == (plain, stanza)
