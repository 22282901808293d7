"""Ratings: kappa and the sign test against published figures, and the table of a round."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.evaluation.rater_agreement import CHOICES, QUESTIONS, agreement_word, fleiss_kappa, kappa_interval, sign_test, summarize
from tests.properties import few

# Thirty patients, six psychiatrists, five diagnoses: table 1 of Fleiss (1971), `diagnoses` of the R package irr.
FLEISS_1971 = [
    (0, 0, 0, 6, 0), (0, 3, 0, 0, 3), (0, 1, 4, 0, 1), (0, 0, 0, 0, 6), (0, 3, 0, 3, 0), (2, 0, 4, 0, 0), (0, 0, 4, 0, 2),
    (2, 0, 3, 1, 0), (2, 0, 0, 4, 0), (0, 0, 0, 0, 6), (1, 0, 0, 5, 0), (1, 1, 0, 4, 0), (0, 3, 3, 0, 0), (1, 0, 0, 5, 0),
    (0, 2, 0, 3, 1), (0, 0, 5, 0, 1), (3, 0, 0, 1, 2), (5, 1, 0, 0, 0), (0, 2, 0, 4, 0), (1, 0, 2, 0, 3), (0, 0, 0, 0, 6),
    (0, 1, 0, 5, 0), (0, 2, 0, 1, 3), (2, 0, 0, 4, 0), (1, 0, 0, 4, 1), (0, 5, 0, 1, 0), (4, 0, 0, 0, 2), (0, 2, 0, 4, 0),
    (1, 0, 5, 0, 0), (0, 0, 0, 0, 6),
]  # fmt: skip
# Ten subjects, fourteen raters, five categories: the worked example of the article on Fleiss' kappa in Wikipedia.
WIKIPEDIA = [
    (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1), (7, 7, 0, 0, 0), (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
]  # fmt: skip


def test_kappa_of_published_examples() -> None:
    assert fleiss_kappa(FLEISS_1971) == pytest.approx(0.430, abs=0.0005)
    assert fleiss_kappa(WIKIPEDIA) == pytest.approx(0.210, abs=0.0005)


def test_kappa_of_one_diagnosis_against_the_others() -> None:
    """The values for each diagnosis that irr prints for these data: 0.245, 0.245, 0.520, 0.471, 0.566."""
    for index, expected in enumerate((0.245, 0.245, 0.520, 0.471, 0.566)):
        assert fleiss_kappa([(row[index], 6 - row[index]) for row in FLEISS_1971]) == pytest.approx(expected, abs=0.0005)


def test_kappa_where_it_is_not_defined_and_where_it_is_refused() -> None:
    assert fleiss_kappa([]) is None
    assert fleiss_kappa([(3, 0, 0), (3, 0, 0)]) is None, "all of one kind: nothing to agree on beyond chance"
    assert fleiss_kappa([(3, 0), (0, 3)]) == 1.0
    with pytest.raises(InputError, match="same number of ratings"):
        fleiss_kappa([(3, 0), (2, 0)])
    with pytest.raises(InputError, match="at least two raters"):
        fleiss_kappa([(1, 0), (0, 1)])


def test_kappa_interval_holds_kappa_and_narrows_with_more_items() -> None:
    low, high = kappa_interval(FLEISS_1971) or (0, 0)
    assert low < 0.430 < high
    more = kappa_interval(FLEISS_1971 * 9) or (0, 0)
    assert (more[1] - more[0]) == pytest.approx((high - low) / 3, rel=0.25)
    assert kappa_interval(FLEISS_1971) == (low, high), "seeded: the same each time"
    assert kappa_interval(FLEISS_1971[:1]) is None


def test_sign_test_against_tables() -> None:
    assert sign_test(0, 6) == pytest.approx(2 / 64)
    assert sign_test(10, 2) == pytest.approx(0.0386, abs=0.0001)  # binom.test(2, 12) in R: 0.03857
    assert sign_test(15, 5) == pytest.approx(0.0414, abs=0.0001)  # binom.test(5, 20): 0.04139
    assert sign_test(7, 7) == 1.0
    assert sign_test(2, 10) == sign_test(10, 2)
    assert sign_test(3000, 2000) < 1e-40


@pytest.mark.parametrize(
    ("kappa", "word"), [(-0.1, "poor"), (0.476, "moderate"), (0.446, "moderate"), (0.656, "good"), (0.9, "very good")]
)
def test_words_of_agreement_are_those_of_the_paper(kappa: float, word: str) -> None:
    assert agreement_word(kappa) == word


def split(win: int, tie: int, lose: int) -> list[str]:
    return ["win"] * win + ["tie"] * tie + ["lose"] * lose


def test_the_averages_of_the_papers_table_come_out() -> None:
    """Table 2 of the paper: 65.0 / 11.3 / 23.7 for content of three raters over a hundred sentences."""
    counts = {"Rater 1": (64, 12, 24), "Rater 2": (64, 13, 23), "Rater 3": (67, 9, 24)}
    ratings = {name: {item: {"content": choice} for item, choice in enumerate(split(*numbers))} for name, numbers in counts.items()}
    summary = summarize(ratings)
    content = summary["content"]
    assert [round(share, 1) for share in content.average] == [65.0, 11.3, 23.7]
    assert content.raters["Rater 3"].percent == (67.0, 9.0, 24.0)
    assert content.agreement.items == 100
    assert (content.p or 1) < 0.001
    assert summary["style"].average == (0, 0, 0)
    assert summary["style"].p is None
    text = summary.table()
    assert "65.0%" in text
    assert "kappa" in text
    assert summary.to_mapping()["content"]["average_percent"] == [65.0, 11.33, 23.67]


def test_raters_who_are_not_done_count_with_what_they_did() -> None:
    one = {item: dict.fromkeys(QUESTIONS, "win") for item in range(8)} | {8: dict.fromkeys(QUESTIONS, "lose")}
    two = {item: {"content": "win" if item != 2 else "lose"} for item in (0, 1, 2, 8)}
    summary = summarize({"one": one, "two": two, "three": {}})
    content = summary["content"]
    assert list(content.raters) == ["one", "two"]
    assert content.agreement.items == 4, "kappa is of what both decided"
    assert (content.items_for, content.items_against) == (7, 0), "items 2 and 8 are even"
    assert summary["fluency"].agreement.kappa is None, "one rater agrees with nobody"
    assert summary.raters == ["one", "two"]


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(InputError, match="'better' is not a rating choice"):
        summarize({"one": {0: {"style": "better"}}})


@few
@given(st.integers(2, 5), st.integers(1, 40), st.randoms(use_true_random=False))
def test_turning_the_systems_round_turns_the_table(raters: int, items: int, chance: random.Random) -> None:
    ratings = {
        f"r{r}": {i: {q: chance.choice(CHOICES) for q in QUESTIONS} for i in range(items) if chance.random() < 0.9}
        for r in range(raters)
    }
    turned = dict(zip(CHOICES, reversed(CHOICES), strict=True))
    other = {
        name: {i: {q: turned[choice] for q, choice in answers.items()} for i, answers in by_item.items()}
        for name, by_item in ratings.items()
    }
    for question, mirrored in zip(summarize(ratings).questions, summarize(other).questions, strict=True):
        assert question.average == pytest.approx(tuple(reversed(mirrored.average)))
        assert (question.items_for, question.items_against, question.p) == (mirrored.items_against, mirrored.items_for, mirrored.p)
        assert question.agreement.kappa == pytest.approx(mirrored.agreement.kappa)
        if question.raters:
            assert sum(question.average) == pytest.approx(100)
        if question.agreement.kappa is not None:
            assert -1 <= question.agreement.kappa <= 1
