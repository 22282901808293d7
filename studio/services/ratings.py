"""Rating rounds of a project, for the pages and the REST interface."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.errors import InputError
from engine.store.ratings import RoundRow
from engine.workflows.human_rating import RoundPlan, Texts, new_round, texts_of

if TYPE_CHECKING:
    from engine.store import Store
    from studio.services.service import Service

EXAMPLES = 5  # sentences of the samples that raters can unfold


def rater_address(token: str) -> str:
    """The path of a rater's page."""
    return f"/rating/{token}"


def comparison_texts(store: Store, comparison: int | None) -> Texts:
    """The texts of a comparison, cached while it is unchanged. Raises InputError without a comparison."""
    if not comparison:
        raise InputError("Choose a comparison.")
    number = int(comparison)
    return _texts(store, number, store.sheets.get(number).revision, store.sheets.count(number)[0])


@lru_cache(maxsize=2)
def _texts(store: Store, comparison: int, revision: int, done: int) -> Texts:
    return texts_of(store, comparison)


def start_round(service: Service, project: int, plan: RoundPlan, *, examples: bool) -> RoundRow:
    """Start a round on the comparison named in a plan; with `examples`, raters can unfold sentences of the samples. Raises
    InputError if no sentence differs.
    """
    texts = comparison_texts(service.store, plan.comparison_id)
    sheet = service.store.sheets.get(int(plan.comparison_id or 0))
    metadata = {
        "comparison": sheet.title,
        "systems": [system for system in sheet.systems if system["name"] in (plan.one, plan.two)],
        "examples": example_sentences(service, project) if examples else [],
    }
    return new_round(service.store, project, texts, replace(plan, about=metadata))


def rater_names(text: str) -> list[str]:
    """The names of raters, separated by newlines or commas. Raises InputError if there are none."""
    names = [line.strip() for line in text.replace(",", "\n").splitlines() if line.strip()]
    if not names:
        raise InputError("Enter at least one rater; each gets a link of their own.")
    return names


def sentence_limit(value: float | None) -> int:
    """The number of sentences to rate. Raises InputError if it is below 1."""
    if value is None or value < 1:
        raise InputError("Enter the number of sentences to rate, at least 1.")
    return int(value)


def example_sentences(service: Service, project: int) -> list[str]:
    """A few sentences of the samples of moderate length, always the same ones for the same samples."""
    texts = [text for row in service.sentences(project) if 10 <= len(text := str(row.get("text", ""))) <= 200]
    return random.Random(len(texts)).sample(texts, min(EXAMPLES, len(texts)))
