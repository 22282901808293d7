"""Long texts in parts: translations cut at `longest` tokens, back-translations clause by clause."""

import pytest

from engine.base.decoding_options import Decoding
from engine.decoding.greedy_search import back_translate, join_clauses
from engine.decoding.translate import split_long, translate
from tests.bases import tiny_base


@pytest.fixture(scope="module")
def base():
    return tiny_base()


def test_a_text_beyond_the_limit_is_translated_in_parts(base):
    first, second = "The rain stopped in the evening.", "We walked home along the river."
    limit = max(len(ids) for ids in base.encode([first, second]))
    parts = Decoding(longest=limit, beam=1)
    assert translate(base, [f"{first} {second}"], decoding=parts) == ["".join(translate(base, [first, second], decoding=parts))]
    assert translate(base, [first], decoding=parts) == translate(base, [first], decoding=Decoding(beam=1))


def test_a_text_is_cut_at_sentence_ends_before_commas_before_words(base):
    sentence, clauses = ("The rain stopped in the evening.", ["When we came home that night,", "nobody spoke to us at all."])
    limit = max(len(ids) for ids in base.encode([sentence, *clauses]))
    assert split_long(base, " ".join([sentence, *clauses]), limit) == [sentence, *clauses]
    words = split_long(base, " ".join(clauses), 5)
    assert " ".join(words) == " ".join(clauses)
    assert all(len(ids) <= 5 for ids in base.encode(words))
    assert "".join(split_long(base, "x" * 90, 10)) == "x" * 90


def test_back_translation_goes_clause_by_clause_and_keeps_lines(base):
    long, short = "When the rain stopped, we walked home along the river, and nobody spoke.", "We walked."
    sources = back_translate(base, [long, "", short], clause_tokens=8)
    assert len(sources) == 3
    assert sources[1] == ""
    assert sources[2] == back_translate(base, [short])[0]
    assert sources == back_translate(base, [long, "", short], clause_tokens=8)
    assert sources[0] != back_translate(base, [long], clause_tokens=128)[0]


@pytest.mark.parametrize(
    ("sources", "translations", "target", "whole"),
    [
        (["雨停了，", "我们走回家。"], ["The rain stopped.", "We walked home."], "en", "The rain stopped, we walked home."),
        (["雨停了。", "我们走回家。"], ["The rain stopped.", "We walked."], "en", "The rain stopped. We walked."),
        (["雨停了，", "我走回家。"], ["The rain stopped.", "I'm home."], "en", "The rain stopped, I'm home."),
        (["The rain stopped,", "we walked."], ["雨停了。", "我们走回家。"], "zh", "雨停了，我们走回家。"),
        (["雨"], ["Rain."], "en", "Rain."),
        ([], [], "en", ""),
    ],
)
def test_clauses_become_one_sentence(sources, translations, target, whole):
    assert join_clauses(sources, translations, target) == whole
