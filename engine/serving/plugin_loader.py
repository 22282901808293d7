"""Loads plugins in a thread of its own, so that texts for others are translated meanwhile.

The first requests for a plugin that is not in memory would otherwise each be a batch that waits for its file, and twenty of
them in a row hold up everybody.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from engine.serving.model_cache import ModelCache

if TYPE_CHECKING:
    from engine.serving.batcher import TranslationSpec

MOST_FAILED = 1000  # bundles of which it is remembered that they could not be loaded

Key = tuple[str, str, str, str]  # base, source, target, bundle


class PluginLoader:
    """`change` is notified after each plugin; the caller holds its lock."""

    def __init__(self, models: ModelCache, change: threading.Condition) -> None:
        self.models = models
        self._change = change
        self._queue: dict[Key, None] = {}  # in order
        self._failed: set[Key] = set()
        self._running = False

    def loading(self, work: TranslationSpec) -> bool:
        """Whether the work's plugin is being loaded or waits for that. Begins it where the base and room are there.

        False too where it could not be loaded: the batch that needs it meets the error again.
        """
        key = (work.base, work.source, work.target, work.plugin)
        if not work.plugin or key in self._failed:
            return False
        if key in self._queue:
            return True
        base = self.models.held_base(*key[:3])
        if base is None or self.models.held(work.plugin, base) or len(self._queue) >= self.models.room():
            return False
        self._queue[key] = None
        if not self._running:
            self._running = True
            threading.Thread(target=self._run, name="load-plugins", daemon=True).start()
        return True

    def _run(self) -> None:
        while True:
            with self._change:
                if not self._queue:
                    self._running = False
                    return
                key = next(iter(self._queue))
            failed = False
            try:
                self.models.plugin(key[3], self.models.base(*key[:3]))
            except BaseException:
                failed = True
            with self._change:
                del self._queue[key]
                if failed:
                    if len(self._failed) >= MOST_FAILED:
                        self._failed.clear()
                    self._failed.add(key)
                self._change.notify_all()
