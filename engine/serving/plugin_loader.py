"""Loads plugins in a separate thread, so that texts for other plugins are translated meanwhile.

Otherwise, each first request for a plugin that is not in memory would form a batch that waits for its file, and several of
them in a row would block all clients.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from engine.serving.model_cache import ModelCache

if TYPE_CHECKING:
    from engine.serving.batcher import TranslationSpec

MOST_FAILED = 1000  # bundles remembered as not loadable

Key = tuple[str, str, str, str]  # base, source, target, bundle


class PluginLoader:
    """Loads queued plugins; `change` is notified after each, and callers hold its lock."""

    def __init__(self, models: ModelCache, change: threading.Condition) -> None:
        self.models = models
        self._change = change
        self._queue: dict[Key, None] = {}  # in order
        self._failed: set[Key] = set()
        self._running = False

    def loading(self, work: TranslationSpec) -> bool:
        """Whether the work's plugin is being loaded or queued; queues it if the base is in memory and there is room.

        Also False if loading failed before, so that the batch that needs the plugin raises the error.
        """
        key = (work.base, work.source, work.target, work.plugin)
        if not work.plugin or key in self._failed:
            return False
        if key in self._queue:
            return True
        base = self.models.held_base(*key[:3])
        if base is None or self.models.cached_plugin(work.plugin, base) or len(self._queue) >= self.models.free_slots():
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
