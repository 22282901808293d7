"""Ratings of two systems: win, tie and lose in percent, the agreement of raters, and the significance.

The table is Table 2 of Xu et al., Pluggable Neural Machine Translation Models via Memory-augmented Adapters (2023): for content,
fluency and style the share of sentences on which the first system wins, ties and loses, in one row per rater, their average, and
Fleiss' kappa.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.text_table import table
from engine.errors import InputError
from engine.messages import mark

QUESTIONS = (mark("content"), mark("fluency"), mark("style"))
CHOICES = ("win", "tie", "lose")  # of the first system against the second
RESAMPLES = 1000
# Altman, Practical Statistics for Medical Research (1991), table 14.2; the paper uses the same words.
WORDS = ((0.2, mark("poor")), (0.4, mark("fair")), (0.6, mark("moderate")), (0.8, mark("good")), (1.0, mark("very good")))

Ratings = Mapping[str, Mapping[int, Mapping[str, str]]]  # {rater: {item: {question: choice}}}


def fleiss_kappa(counts: Sequence[Sequence[int]]) -> float | None:
    """Fleiss' kappa, from -1 to 1: agreement beyond chance of several raters on named categories.

    `counts` (N, k): how many raters put item i into category j; every row has the same sum n of at least 2. None if there are no
    items, or if all ratings are in one category, since agreement beyond chance is then undefined. Raises InputError on rows of
    different sums. Fleiss, Measuring Nominal Scale Agreement Among Many Raters, Psychological Bulletin 76 (1971), equations 1 to 7.
    """
    if not counts:
        return None
    raters = sum(counts[0])
    if any(sum(row) != raters or len(row) != len(counts[0]) for row in counts):
        raise InputError("Fleiss' kappa needs the same number of ratings for every item. Omit the others.")
    if raters < 2:
        raise InputError("Fleiss' kappa needs at least two raters for every item.")
    items = len(counts)
    agree = sum(sum(n * (n - 1) for n in row) for row in counts) / (items * raters * (raters - 1))  # P
    shares = [sum(row[j] for row in counts) / (items * raters) for j in range(len(counts[0]))]  # p_j
    chance = sum(share * share for share in shares)  # P_e
    return None if math.isclose(chance, 1.0) else (agree - chance) / (1.0 - chance)


def kappa_interval(counts: Sequence[Sequence[int]], seed: int = 1) -> tuple[float, float] | None:
    """The 95 % percentile-bootstrap interval of Fleiss' kappa over items; None if it is undefined."""
    import numpy as np

    if len(counts) < 2 or fleiss_kappa(counts) is None:
        return None
    rows = np.asarray(counts, dtype=float)  # (N, k)
    raters = rows[0].sum()
    agree = (rows * (rows - 1)).sum(1) / (raters * (raters - 1))  # (N,)
    samples = np.random.default_rng(seed).integers(0, len(rows), (RESAMPLES, len(rows)))  # (R, N)
    chance = ((rows[samples].sum(1) / (len(rows) * raters)) ** 2).sum(1)  # (R,)
    defined = ~np.isclose(chance, 1.0)
    values = (agree[samples].mean(1)[defined] - chance[defined]) / (1.0 - chance[defined])  # (R',)
    low, high = np.percentile(values, (2.5, 97.5))
    return float(low), float(high)


def agreement_word(kappa: float) -> str:
    """`moderate` for 0.476, in Altman's words."""
    return next((word for limit, word in WORDS if kappa <= limit), WORDS[-1][1])


def sign_test(wins: int, losses: int) -> float:
    """The two-sided exact p of the sign test: how likely so uneven a split is if neither is better; ties are left out.

    Dixon and Mood, The Statistical Sign Test, Journal of the American Statistical Association 41 (1946).
    """
    total, fewer = wins + losses, min(wins, losses)
    return min(1.0, 2 * sum(math.comb(total, i) for i in range(fewer + 1)) / 2**total)


@dataclass(frozen=True)
class Shares:
    """Numbers of wins, ties and losses of the first system, and their shares in percent."""

    win: int
    tie: int
    lose: int

    @property
    def total(self) -> int:
        return self.win + self.tie + self.lose

    @property
    def percent(self) -> tuple[float, float, float]:
        """Win, tie, lose; zeros without decisions."""
        total = self.total or 1
        return (100 * self.win / total, 100 * self.tie / total, 100 * self.lose / total)


@dataclass(frozen=True)
class Agreement:
    """Fleiss' kappa over the `items` that every rater of the question decided; None if it is undefined."""

    kappa: float | None
    low: float | None
    high: float | None
    items: int
    raters: int

    @property
    def word(self) -> str:
        return "" if self.kappa is None else agreement_word(self.kappa)


@dataclass(frozen=True)
class Question:
    """One question: each rater's shares, their average in percent, agreement, and the sign test over items.

    An item counts for the system that more of its raters chose; even items are left out of the test.
    """

    name: str
    raters: Mapping[str, Shares]
    average: tuple[float, float, float]
    agreement: Agreement
    items_for: int
    items_against: int
    p: float | None

    def to_mapping(self) -> dict[str, object]:
        return {
            "raters": {
                name: {"win": shares.win, "tie": shares.tie, "lose": shares.lose, "percent": [round(x, 2) for x in shares.percent]}
                for name, shares in self.raters.items()
            },
            "average_percent": [round(share, 2) for share in self.average],
            "kappa": self.agreement.kappa,
            "kappa_low": self.agreement.low,
            "kappa_high": self.agreement.high,
            "kappa_items": self.agreement.items,
            "sign_test": {"for": self.items_for, "against": self.items_against, "p": self.p},
        }


@dataclass(frozen=True)
class Summary:
    """The table of a rating round."""

    questions: tuple[Question, ...]

    def __getitem__(self, name: str) -> Question:
        return next(question for question in self.questions if question.name == name)

    @property
    def raters(self) -> list[str]:
        """Raters who decided at least one item."""
        return list(dict.fromkeys(name for question in self.questions for name in question.raters))

    def to_mapping(self) -> dict[str, object]:
        """A plain mapping that JSON can hold."""
        return {question.name: question.to_mapping() for question in self.questions}

    def table(self) -> str:
        """The table as text: one row per rater, the average, Fleiss' kappa and the sign test."""
        heads = ["", *(f"{question.name} {choice}" for question in self.questions for choice in CHOICES)]
        rows: list[list[str]] = []
        for name in self.raters:
            cells = [_percents(question.raters[name].percent) if name in question.raters else [""] * 3
                     for question in self.questions]  # fmt: skip
            rows.append([name, *(cell for group in cells for cell in group)])
        rows.append(["average", *(cell for question in self.questions for cell in _percents(question.average))])
        kappas = [question.agreement.kappa for question in self.questions]
        rows.append(["kappa", *(cell for k in kappas for cell in ("–" if k is None else f"{k:.3f}", "", ""))])
        tests = [question.p for question in self.questions]
        rows.append(["sign test p", *(cell for p in tests for cell in ("–" if p is None else f"{p:.3f}", "", ""))])
        return table(heads, rows)


def _percents(shares: Sequence[float]) -> list[str]:
    return [f"{share:.1f}%" for share in shares]


def summarize(ratings: Ratings, *, seed: int = 1) -> Summary:
    """The table of the raters' choices, {rater: {item: {question: choice}}}; questions may be unanswered. Raises InputError on an
    unknown choice.
    """
    return Summary(tuple(_question(name, ratings, seed) for name in QUESTIONS))


def _question(name: str, ratings: Ratings, seed: int) -> Question:
    decided: dict[str, dict[int, str]] = {}
    for rater, items in ratings.items():
        chosen = {item: answers[name] for item, answers in items.items() if name in answers}
        for choice in chosen.values():
            if choice not in CHOICES:
                raise InputError(
                    "{choice!r} is not a rating choice; use one of {choices}.", choice=choice, choices=", ".join(CHOICES)
                )
        if chosen:
            decided[rater] = chosen
    shares = {
        rater: Shares(*(sum(choice == option for choice in chosen.values()) for option in CHOICES))
        for rater, chosen in decided.items()
    }
    percents = [share.percent for share in shares.values()]
    average = tuple(sum(column) / len(percents) for column in zip(*percents, strict=True)) if percents else (0, 0, 0)
    balance: dict[int, int] = {}
    for chosen in decided.values():
        for item, choice in chosen.items():
            balance[item] = balance.get(item, 0) + (choice == "win") - (choice == "lose")
    items_for = sum(value > 0 for value in balance.values())
    items_against = sum(value < 0 for value in balance.values())
    p = sign_test(items_for, items_against) if items_for + items_against else None
    return Question(name, shares, average, _agreement(decided, seed), items_for, items_against, p)  # type: ignore[arg-type]


def _agreement(decided: Mapping[str, Mapping[int, str]], seed: int) -> Agreement:
    if len(decided) < 2:
        return Agreement(None, None, None, 0, len(decided))
    shared = sorted(set.intersection(*(set(chosen) for chosen in decided.values())))
    counts = [[sum(chosen[item] == option for chosen in decided.values()) for option in CHOICES] for item in shared]
    low, high = kappa_interval(counts, seed) or (None, None)
    return Agreement(fleiss_kappa(counts), low, high, len(shared), len(decided))
