"""A blind rating round: made from a comparison, rated item by item, and read as a table, a CSV or a JSON file.

Raters see A and B. Which system is A is drawn for each item, half of the items each way; the order of the items is drawn for each
rater. Both follow from the round's seed, so that reloads, restarts and exports agree.
"""

from __future__ import annotations

import hashlib
import io
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlalchemy import select

from engine.core.csv_export import write_row
from engine.errors import InputError
from engine.evaluation.rater_agreement import CHOICES, QUESTIONS, Summary, summarize
from engine.store.ratings import SKIP, AnswerRow, RaterRow, RatingItem, RoundRow, decided

if TYPE_CHECKING:
    from engine.store import Store

SIDES = ("a", "same", "b")  # a rater's choices
MOST = 2000  # maximum number of items in a round


@dataclass(frozen=True)
class Texts:
    """The texts of a comparison: sources, and each system's translations by system name."""

    sources: list[str]
    systems: dict[str, list[str]]


def texts_of(store: Store, comparison_id: int) -> Texts:
    """Sources and systems of a saved comparison, without sentences that some system has not translated yet.

    Raises InputError if there is no such comparison.
    """
    from engine.store.comparisons import ComparisonLine

    sheet = store.sheets.get(comparison_id)
    names = [str(system["name"]) for system in sheet.systems]
    query = select(ComparisonLine.source, ComparisonLine.texts).where(ComparisonLine.comparison_id == comparison_id)
    with store.read() as session:  # only two columns of up to 50,000 lines, without an object per line
        rows = session.execute(query.where(ComparisonLine.done.is_(True)).order_by(ComparisonLine.place)).all()
    columns = zip(*(row.texts for row in rows), strict=True) if rows else [[] for _ in names]
    return Texts([row.source for row in rows], dict(zip(names, map(list, columns), strict=True)))


def pick_items(texts: Texts, one: str, two: str, *, sentences: int | None = None, seed: int = 1) -> tuple[list[RatingItem], int]:
    """(items to rate, number of items left out because both systems wrote the same).

    `sentences` is the maximum number of items, drawn at random and kept in order. Raises InputError if a system is unknown, both
    are the same, or nothing is left to rate.
    """
    if len(texts.systems) < 2:
        raise InputError("This comparison is of the base alone. Compare it with a plugin, then let people rate.")
    for name in (one, two):
        if name not in texts.systems:
            raise InputError("The comparison has no system {name}. It has {systems}.", name=name, systems=", ".join(texts.systems))
    if one == two:
        raise InputError("Choose two different systems to be rated against each other.")
    rows = zip(texts.sources, texts.systems[one], texts.systems[two], strict=True)
    items: list[RatingItem] = [{"source": source, "one": first, "two": second} for source, first, second in rows]
    different = [item for item in items if " ".join(item["one"].split()) != " ".join(item["two"].split())]
    if not different:
        raise InputError(
            "{one} and {two} produced the same translation of every sentence that both have finished: there is nothing to rate.",
            one=one,
            two=two,
        )
    limit = min(MOST, sentences or MOST)
    positions = sorted(_drawn(seed, "items", len(different))[:limit])
    return [different[position] for position in positions], len(items) - len(different)


@dataclass(frozen=True)
class RoundPlan:
    """Two systems to rate against each other: at most `sentences` items, drawn by `seed`, or by a random seed if it is None."""

    one: str
    two: str
    title: str = ""
    raters: Sequence[str] = ()
    sentences: int | None = None
    seed: int | None = None
    comparison_id: int | None = None
    about: Mapping[str, object] = field(default_factory=dict)


def new_round(store: Store, project_id: int, texts: Texts, plan: RoundPlan) -> RoundRow:
    """Store a round with its raters. Raises InputError as `pick_items` does, and if two raters have the same name."""
    project, one, two = store.projects.get(project_id), plan.one, plan.two
    seed = secrets.randbelow(2**31) if plan.seed is None else plan.seed
    items, same = pick_items(texts, one, two, sentences=plan.sentences, seed=seed)
    names = [" ".join(name.split()) for name in plan.raters]
    if len(set(names)) < len(names):
        raise InputError("Two raters have the same name. Use a different name for each.")
    row = store.ratings.create(
        project_id,
        plan.title.strip() or f"{one} against {two}",
        one=one,
        two=two,
        source=project.source,
        target=project.target,
        seed=seed,
        items=items,
        about={**plan.about, "same": same, "sentences": len(texts.sources)},
        comparison_id=plan.comparison_id,
    )
    for name in names:
        store.ratings.add_rater(row.id, name)
    return row


# -- random order


def _drawn(seed: int, purpose: str, count: int) -> list[int]:
    """The numbers below `count` in an order determined by the seed and `purpose`, in every version of Python."""
    return sorted(range(count), key=lambda i: hashlib.sha256(f"{seed}/{purpose}/{i}".encode()).digest())


def sides(row: RoundRow) -> list[bool]:
    """For each item, whether system one is A; true for half of them."""
    first = set(_drawn(row.seed, "sides", row.size)[: (row.size + 1) // 2])
    return [position in first for position in range(row.size)]


def rater_order(row: RoundRow, rater: RaterRow) -> list[int]:
    """The order in which a rater gets the items."""
    return _drawn(row.seed, f"rater {rater.id}", row.size)


# -- rating


@dataclass(frozen=True)
class RatingTask:
    """A rater's next task: an item with both texts by side, the answers so far, and the rater's progress."""

    done: int
    total: int
    skipped: int
    closed: bool
    item: int | None = None
    source: str = ""
    a: str = ""
    b: str = ""
    answers: Mapping[str, str] | None = None  # {question: a, same or b}

    def to_mapping(self) -> dict[str, object]:
        """Plain data for the rater's page; nothing in it identifies the systems."""
        return {
            "done": self.done, "total": self.total, "skipped": self.skipped, "closed": self.closed, "item": self.item,
            "source": self.source, "a": self.a, "b": self.b, "answers": dict(self.answers or {}),
        }  # fmt: skip


def task(store: Store, rater: RaterRow) -> RatingTask:
    """The rater's next item: the first in the rater's order that is neither fully decided nor skipped."""
    row = store.ratings.get(rater.round_id)
    answers = store.ratings.answers(rater_id=rater.id)
    choices_by_item, skipped = decided(answers), {answer.item for answer in answers if answer.question == SKIP}
    over = {item for item, choices in choices_by_item.items() if item in skipped or len(choices) == len(QUESTIONS)}
    now = RatingTask(done=len(over), total=row.size, skipped=len(skipped), closed=row.closed is not None)
    item = next((position for position in rater_order(row, rater) if position not in over), None)
    if item is None or now.closed:
        return now
    flipped = not sides(row)[item]
    texts = (row.items[item]["one"], row.items[item]["two"])
    a, b = reversed(texts) if flipped else texts
    side_of = dict(zip(CHOICES, reversed(SIDES) if flipped else SIDES, strict=True))
    item_answers = {question: side_of[choice] for question, choice in choices_by_item.get(item, {}).items()}
    return replace(now, item=item, source=row.items[item]["source"], a=a, b=b, answers=item_answers)


def choose(store: Store, rater: RaterRow, item: int, question: str, side: str) -> None:
    """Record that the rater found side a or b better, or both the same. Raises InputError on anything else, and if the round is
    closed.
    """
    row = _open_round(store, rater, item)
    if question not in QUESTIONS or side not in SIDES:
        raise InputError(
            "There is no question {question!r} with the answer {side!r}. Reload the page.", question=question, side=side
        )
    position = SIDES.index(side)
    choice = CHOICES[position if sides(row)[item] else 2 - position]
    store.ratings.answer(rater.id, item, question, choice)


def skip(store: Store, rater: RaterRow, item: int) -> None:
    """Skip an item; its answers do not count."""
    _open_round(store, rater, item)
    store.ratings.answer(rater.id, item, SKIP, "")


def undo(store: Store, rater: RaterRow) -> None:
    """Take the last decision back, if any."""
    _open_round(store, rater, 0)
    store.ratings.undo(rater.id)


def ask_again(store: Store, rater: RaterRow) -> None:
    """Ask the skipped items again."""
    _open_round(store, rater, 0)
    store.ratings.ask_again(rater.id)


def _open_round(store: Store, rater: RaterRow, item: int) -> RoundRow:
    row = store.ratings.get(rater.round_id)
    if row.closed is not None:
        raise InputError("This rating is closed and accepts no more answers.")
    if not 0 <= item < row.size:
        raise InputError("There is no such sentence in this rating. Reload the page.")
    return row


# -- results


def ratings_of(store: Store, row: RoundRow) -> dict[str, dict[int, dict[str, str]]]:
    """{rater: {item: {question: choice}}} without skipped items."""
    answers = store.ratings.answers(row.id)
    result = {}
    for rater in store.ratings.raters(row.id):
        rater_answers = [answer for answer in answers if answer.rater_id == rater.id]
        skipped = {answer.item for answer in rater_answers if answer.question == SKIP}
        result[rater.name] = {item: choices for item, choices in decided(rater_answers).items() if item not in skipped}
    return result


def summary(store: Store, row: RoundRow) -> Summary:
    """The table of a round: system one against system two."""
    return summarize(ratings_of(store, row), seed=row.seed or 1)


COLUMNS = ("item", "rater", "source", "one", "two", "one_text", "two_text", "side_a", *QUESTIONS, "skipped", "rated")


def _lines(store: Store, row: RoundRow) -> list[dict[str, object]]:
    """One row per rater and item that was answered or skipped, in the order of items."""
    first = sides(row)
    names = {rater.id: rater.name for rater in store.ratings.raters(row.id)}
    groups: dict[tuple[int, int], list[AnswerRow]] = {}
    for answer in store.ratings.answers(row.id):
        groups.setdefault((answer.item, answer.rater_id), []).append(answer)
    lines = []
    for (item, rater), its in sorted(groups.items()):
        choices = {answer.question: answer.choice for answer in its}
        lines.append({
            "item": item + 1, "rater": names[rater], "source": row.items[item]["source"], "one": row.one, "two": row.two,
            "one_text": row.items[item]["one"], "two_text": row.items[item]["two"],
            "side_a": row.one if first[item] else row.two,
            **{question: choices.get(question, "") for question in QUESTIONS},
            "skipped": SKIP in choices,
            "rated": max(answer.moment for answer in its).isoformat(timespec="seconds"),
        })  # fmt: skip
    return lines


def as_csv(store: Store, row: RoundRow) -> str:
    """One line per rater and item; win means that system one is better."""
    out = io.StringIO()
    write_row(out, COLUMNS, "\n")
    for line in _lines(store, row):
        cells = {**line, "skipped": "yes" if line["skipped"] else ""}
        write_row(out, [cells.get(name, "") for name in COLUMNS], "\n")
    return out.getvalue()


def as_mapping(store: Store, row: RoundRow) -> dict[str, object]:
    """The whole round except the raters' links: systems, seed, items with their sides, answers, and the table."""
    first = sides(row)
    return {
        "title": row.title,
        "one": row.one,
        "two": row.two,
        "source_language": row.source,
        "target_language": row.target,
        "seed": row.seed,
        "created": row.created.isoformat(timespec="seconds"),
        "closed": row.closed.isoformat(timespec="seconds") if row.closed else None,
        "about": row.about,
        "raters": [rater.name for rater in store.ratings.raters(row.id)],
        "items": [{**item, "side_a": "one" if first[index] else "two"} for index, item in enumerate(row.items)],
        "answers": [{key: line[key] for key in ("item", "rater", *QUESTIONS, "skipped", "rated")} for line in _lines(store, row)],
        "summary": summary(store, row).to_mapping(),
    }
