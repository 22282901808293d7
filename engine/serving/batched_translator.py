"""A translator for texts and documents that uses the shared queue, so that sentences of several requests share batches."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence

from engine.core.progress import Progress
from engine.corpora.formats.documents.model import Result, Unit
from engine.decoding.word_alignment import Alignment
from engine.serving.batcher import Batcher, TranslationSpec
from engine.serving.turns import Ticket
from engine.serving.units.translate import TranslationCache, Translator, translate_units

PORTION = 20_000  # characters of a request that are prepared and queued at once
SHORT = 2_000  # characters up to which units are prepared without taking LARGE_TEXTS
LARGE_TEXTS = threading.Lock()  # splitting large texts into sentences blocks other Python threads, so one at a time


class BatchedTranslator(Translator):
    """Translates one request through the queue; stops when its ticket ends."""

    def __init__(self, batcher: Batcher, work: TranslationSpec, ticket: Ticket) -> None:
        self.batcher, self.work, self.ticket = batcher, work, ticket
        self.source, self.target = work.source, work.target

    def key(self) -> str:
        return repr(self.work)

    def batches(self, sentences: Sequence[str]) -> list[tuple[list[int], float]]:
        """All sentences in one batch, since the queue forms the actual batches."""
        return [(list(range(len(sentences))), float(sum(map(len, sentences))))]

    def preparing(self, units: Sequence[Unit]) -> contextlib.AbstractContextManager[object]:
        return LARGE_TEXTS if sum(len(unit.text) for unit in units) > SHORT else contextlib.nullcontext()

    def translate(self, sentences: Sequence[str], progress: Progress) -> list[str]:
        return self.batcher.submit(self.work, sentences, self.ticket).result()

    def align(self, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[Alignment]:
        work = TranslationSpec(self.work.base, self.work.source, self.work.target, alignment=True)
        return self.batcher.submit(work, pairs, self.ticket).result()


def translate_through(batcher: Batcher, work: TranslationSpec, units: Sequence[Unit], ticket: Ticket) -> list[Result]:
    """Translate units through the queue and wait for the results: one per unit, in order, with placeholders and tags restored.

    Raises OverloadedError if the queue is full, Cancelled or DeadlineError if the ticket has ended, and translation errors.
    """
    translator, finished = BatchedTranslator(batcher, work, ticket), TranslationCache(None, "")
    results: list[Result] = []
    for portion in _portions(units):
        results += translate_units(portion, translator, finished, ticket)
    return results


def _portions(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Units in portions of `PORTION` characters, so that a client's texts are not prepared faster than they are translated."""
    portion: list[Unit] = []
    size = 0
    for unit in units:
        if portion and size + len(unit.text) > PORTION:
            yield portion
            portion, size = [], 0
        portion.append(unit)
        size += len(unit.text)
    if portion:
        yield portion
