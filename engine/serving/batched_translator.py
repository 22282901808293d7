"""A translator for texts and documents that works through the common queue, so that its sentences share batches with others."""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.progress import Progress
from engine.corpora.formats.documents.model import Result, Unit
from engine.decoding.word_alignment import Alignment, align
from engine.serving.model_cache import Batcher, TranslationSpec
from engine.serving.units.translate import TranslationCache, Translator, translate_units


class BatchedTranslator(Translator):
    """One piece of work through a queue."""

    def __init__(self, batcher: Batcher, work: TranslationSpec) -> None:
        self.batcher, self.work = batcher, work
        self.source, self.target = work.source, work.target

    def key(self) -> str:
        return repr(self.work)

    def batches(self, sentences: Sequence[str]) -> list[tuple[list[int], float]]:
        """All at once: the queue makes the batches."""
        return [(list(range(len(sentences))), float(sum(map(len, sentences))))]

    def translate(self, sentences: Sequence[str], progress: Progress) -> list[str]:
        progress.check()
        return self.batcher.submit(self.work, sentences).result()

    def align(self, pairs: Sequence[tuple[str, str]], progress: Progress) -> list[Alignment]:
        base = self.batcher.models.base(self.work.base, self.work.source, self.work.target)
        return align(base, pairs, progress=progress)


def translate_through(batcher: Batcher, work: TranslationSpec, units: Sequence[Unit]) -> list[Result]:
    """One result a unit, in order: sentences by the queue, placeholders and tags in their places. Waits for them.

    Raises Busy where too much is waiting, and what translating raises.
    """
    return translate_units(units, BatchedTranslator(batcher, work), TranslationCache(None, ""), Progress())
