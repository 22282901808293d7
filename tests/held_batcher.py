"""A queue whose batches wait until they are let go, so that a test decides who comes meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from engine.core.settings import load_settings
from engine.errors import MissingError
from engine.serving.batcher import Batcher, TranslationSpec
from engine.serving.model_cache import ModelCache

__all__ = ["A", "B", "HeldBatcher"]

A, B = TranslationSpec("a", "en", "zh"), TranslationSpec("b", "en", "zh")


class HeldBatcher(Batcher):
    """Texts come back in capitals. `company` are works that can share a batch."""

    def __init__(self, company: Sequence[TranslationSpec] = (), **settings: Any) -> None:
        super().__init__(ModelCache(load_settings().replace(**settings)))
        self.company = company
        self.broken = "broken"
        self.go = threading.Semaphore(0)
        self.seen: list[tuple[TranslationSpec, list[str]]] = []
        self.entered = threading.Semaphore(0)

    def _batch_key(self, work: TranslationSpec) -> str | None:
        return "all of them" if work in self.company and work not in self._quarantined else None

    def _translate(self, works: Sequence[TranslationSpec], texts: Sequence[str]) -> list[str]:
        self.entered.release()
        assert self.go.acquire(timeout=120)
        self.seen.append((works[0], list(texts)))
        if any(self.broken in (work.base, work.plugin) for work in works):
            raise MissingError("There is no base broken.")
        return [text.upper() for text in texts]
