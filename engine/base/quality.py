"""The quality of a base in words, from the table of scores on its card."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.core.languages import canonical, same_language
from engine.errors import TailorError
from engine.messages import mark

# Meaning of a corpus BLEU below each value, from https://docs.cloud.google.com/translate/docs/advanced/automl-evaluate.
LEVELS = (
    (10.0, mark("almost useless")),
    (20.0, mark("the gist is hard to get")),
    (30.0, mark("the gist is clear, with significant errors of grammar")),
    (40.0, mark("understandable to good")),
    (50.0, mark("high quality")),
    (60.0, mark("very high quality")),
    (101.0, mark("often better than human")),
)
# The kind of text in well-known test sets.
TEST_SETS = {
    "ntrex": mark("news"),
    "newstest": mark("news"),
    "flores": mark("encyclopaedic text"),
    "tatoeba": mark("short sentences"),
}
DIRECTION = re.compile(r"(?<![\w-])([\w-]{1,40}) to ([\w-]{1,40})|([a-z]{2,3}(?:_\w{1,8})?)[-.]([a-z]{2,3}(?:_\w{1,8})?)")


@dataclass(frozen=True)
class Score:
    """BLEU (0 to 100) of one direction on one test set; `source` and `target` are empty if the card does not specify them."""

    test: str
    source: str
    target: str
    bleu: float

    @property
    def words(self) -> str:
        """The meaning of this BLEU, in a few words."""
        return next(words for bound, words in LEVELS if self.bleu < bound)

    @property
    def text(self) -> str:
        """The kind of text in the test set, such as `news`; empty if unknown."""
        return next((kind for name, kind in TEST_SETS.items() if self.test.lower().startswith(name)), "")


def card_scores(body: str) -> list[Score]:
    """The scores of a card's tables that have a column BLEU; unreadable rows are skipped.

    Known formats: ours (`file`, `direction`) and OPUS-MT's (`testset`, `langpair`).
    """
    return [score for table in _tables(body) for score in _scores(table)]


def direction_scores(scores: list[Score], source: str, target: str) -> list[Score]:
    """The scores of one direction; all of them if the table names no directions."""
    directed = [score for score in scores if score.source]
    if not directed:
        return scores
    return [score for score in directed if same_language(score.source, source) and same_language(score.target, target)]


def quality_words(scores: list[Score]) -> str:
    """The scores of one direction in words, lowest first: `news: the gist is hard to get (BLEU 10.7)`; empty if there are none."""
    parts = [
        f"{score.text or score.test}: {score.words} (BLEU {score.bleu:.1f})"
        for score in sorted(scores, key=lambda score: score.bleu)
    ]
    return "; ".join(parts[:3])


def _tables(body: str) -> Iterator[list[list[str]]]:
    """The cells of each Markdown table, header first."""
    table: list[list[str]] = []
    for line in [*body.splitlines(), ""]:
        if line.strip().startswith("|"):
            table.append([cell.strip(" *`\t") for cell in line.strip().strip("|").split("|")])
        elif table:
            yield [table[0], *table[2:]]
            table = []


def _scores(table: list[list[str]]) -> Iterator[Score]:
    head = [cell.lower() for cell in table[0]]
    if "bleu" not in head or "beam" in head:  # a table of decoding settings, not of test sets
        return
    name = next((head.index(label) for label in ("testset", "test set", "file", "dataset") if label in head), 0)
    direction_column = next((head.index(label) for label in ("direction", "langpair", "language pair") if label in head), name)
    for row in table[1:]:
        if len(row) < len(head):
            continue
        try:
            bleu = float(row[head.index("bleu")])
        except ValueError:
            continue
        if 0 <= bleu <= 100:
            source, target = _direction(row[direction_column])
            yield Score(re.sub(r"[-.](test\.)?[a-z_]{2,9}[-.][a-z_]{2,9}$", "", row[name]), source, target, bleu)


def _direction(text: str) -> tuple[str, str]:
    """(source, target) as canonical tags, from `en to zh`, `eng-fra` or `Tatoeba-test.zho.eng`; empty if there is none."""
    for match in reversed(list(DIRECTION.finditer(text))):
        source, target = match[1] or match[3], match[2] or match[4]
        try:
            return canonical(source), canonical(target)
        except TailorError:
            continue
    return "", ""
