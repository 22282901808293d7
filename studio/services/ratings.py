"""Ratings of a project: what pages and the REST interface ask for."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.errors import InputError

if TYPE_CHECKING:
    from engine.store import Store
    from engine.store.ratings import RoundRow
    from engine.workflows.human_rating import Texts
    from studio.services.service import Service

EXAMPLES = 5  # sentences of the samples that raters can unfold


@dataclass(frozen=True)
class NewRound:
    """What the page Rate asks for: the comparison, its two systems, how many sentences, and who rates them."""

    comparison: int | None
    one: str
    two: str
    most: float | None
    names: str  # a rater a line, or between commas
    with_examples: bool


def rater_address(token: str) -> str:
    """The path of a rater's page."""
    return f"/rating/{token}"


def comparison_texts(store: Store, comparison: int | None) -> Texts:
    """What a comparison holds; kept while it stays as it is."""
    if not comparison:
        raise InputError("Choose a comparison.")
    number = int(comparison)
    return _texts(store, number, store.sheets.get(number).revision, store.sheets.count(number)[0])


@lru_cache(maxsize=2)
def _texts(store: Store, comparison: int, revision: int, done: int) -> Texts:
    from engine.workflows.human_rating import texts_of

    return texts_of(store, comparison)


def start_round(service: Service, project: int, request: NewRound) -> RoundRow:
    """Begin a round over a saved comparison. Raises InputError without a rater, or where no sentence differs."""
    from engine.workflows.human_rating import RoundPlan, new_round

    texts = comparison_texts(service.store, request.comparison)
    sheet = service.store.sheets.get(int(request.comparison or 0))
    raters = [line.strip() for line in request.names.replace(",", "\n").splitlines() if line.strip()]
    if not raters:
        raise InputError("Enter at least one rater; each gets a link of their own.")
    about = {
        "comparison": sheet.title,
        "systems": [system for system in sheet.systems if system["name"] in (request.one, request.two)],
        "examples": example_sentences(service, project) if request.with_examples else [],
    }
    plan = RoundPlan(
        request.one, request.two, raters=raters, sentences=sentence_limit(request.most),
        comparison_id=sheet.comparison_id, about=about,
    )  # fmt: skip
    return new_round(service.store, project, texts, plan)


def sentence_limit(value: float | None) -> int:
    """How many sentences are to be rated. Raises InputError below 1."""
    if value is None or value < 1:
        raise InputError("Enter the number of sentences to rate, at least 1.")
    return int(value)


def example_sentences(service: Service, project: int) -> list[str]:
    """Some sentences of the samples, not too long, the same ones for the same samples."""
    texts = [text for row in service.sentences(project) if 10 <= len(text := str(row.get("text", ""))) <= 200]
    return random.Random(len(texts)).sample(texts, min(EXAMPLES, len(texts)))
