"""Fills in the missing translations of a comparison, a few lines at a time, so that it can be watched, stopped and resumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from engine.corpora.terminology import Term
from engine.evaluation.edit_distance import difference, sentence_score
from engine.messages import mark
from engine.store.records import System
from engine.workflows.compare.systems import SystemTranslator

if TYPE_CHECKING:
    from engine.store import Store
    from engine.store.comparisons import ComparisonLineRow

Translate = Callable[[System, Sequence[str]], list[str]]
ENFORCED = mark("Terminology was enforced in these translations, but not in those of general text.")


def fill(
    store: Store, comparison_id: int, translate: Translate, language: str, part: int, revision: int | None = None
) -> Iterator[list[ComparisonLineRow]]:
    """Translate missing lines, `part` at a time; each part is stored and yielded as soon as it is finished.

    Lines that another process has filled in the meantime are not translated again. If a strength is changed meanwhile, the current
    lines are discarded and restarted; with `revision`, the sheet's revision at the start, the function returns instead, and the
    caller that changed the strength continues.
    """
    worked = False
    while True:
        sheet = store.sheets.get(comparison_id)
        if revision is not None and sheet.revision != revision:
            return
        lines = store.sheets.pending(comparison_id, part)
        if not lines:
            break
        done = [judged(line, language) for line in translated(lines, sheet.systems, translate)]
        if store.sheets.fill(comparison_id, sheet.revision, done):
            worked = True
            yield done
    if worked:
        store.sheets.mirror(comparison_id)


def translated(lines: Sequence[ComparisonLineRow], systems: Sequence[System], translate: Translate) -> list[ComparisonLineRow]:
    """The lines with all their translations. The first system is the base alone, whose texts a plugin of strength 0 shares."""
    columns: list[list[str | None]] = []
    for index, system in enumerate(systems):
        column: list[str | None] = [line.texts[index] for line in lines]
        lacking = [i for i, text in enumerate(column) if text is None]
        if lacking and index and not float(system["strength"]):
            new_texts = [columns[0][i] for i in lacking]
        else:
            new_texts = list(translate(system, [lines[i].source for i in lacking])) if lacking else []
        for i, text in zip(lacking, new_texts, strict=True):
            column[i] = text
        columns.append(column)
    return [dataclasses.replace(line, texts=[column[i] for column in columns]) for i, line in enumerate(lines)]


def enforcing(translate: SystemTranslator, terms: Sequence[Term]) -> Translate:
    """A translating function that enforces these terms for the systems that request it."""
    return lambda system, texts: translate(system, texts, terms=terms if system.get("enforced") else ())


def judged(line: ComparisonLineRow, language: str) -> ComparisonLineRow:
    """The line with the scores of its texts, if it has a reference, and the plugins' largest difference from the base alone."""
    vanilla, *customized = (text or "" for text in line.texts)
    scores = line.scores
    if line.reference:
        scores = [None if text is None else round(sentence_score(text, line.reference), 2) for text in line.texts]
    return dataclasses.replace(
        line,
        scores=scores,
        change=largest_change(scores),
        difference=round(max((difference(vanilla, text, language) for text in customized), default=0.0), 4),
    )


def largest_change(scores: Sequence[float | None]) -> float | None:
    """The plugins' score change that is largest in absolute value."""
    if not scores or scores[0] is None:
        return None
    changes = [score - scores[0] for score in scores[1:] if score is not None]
    return round(max((abs(change), change) for change in changes)[1], 2) if changes else None
