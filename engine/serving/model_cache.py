"""Loaded bases and plugins that many callers share."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.settings import Settings
from engine.errors import InputError

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.plugins import Plugin


class ModelCache:
    """Bases and plugins in memory; those used longest ago make room for others. Safe to use from several threads.

    `sharing` says whether a job is at work on the same cores.
    """

    def __init__(self, settings: Settings, sharing: Callable[[], bool] = lambda: False) -> None:
        self.settings = settings
        self._sharing = sharing
        self._threads = 0
        self._lock = threading.RLock()
        self._bases: OrderedDict[str, dict[tuple[str, str], BaseModel]] = OrderedDict()  # by direction: one model
        self._loaded: dict[str, float] = {}  # when each base was, by its path
        self._plugins: OrderedDict[tuple[str, str, str, str, float], Plugin] = OrderedDict()

    def take_cores(self) -> int:
        """Give the calling thread its CPU threads for models, and say how many: those of the settings, half of them beside a job.

        Each product ends when the last of its threads does, and one that a job keeps from its core holds up all: beside a
        training on 2 cores a sentence took four times as long with both (bench/README.md, "Translating beside a job").
        """
        import torch

        with self._lock:
            # What torch takes by itself is only to be seen before it is changed.
            self._threads = self._threads or self.settings.threads or torch.get_num_threads()
        threads = max(1, self._threads // 2) if self._sharing() else self._threads
        torch.set_num_threads(threads)  # of this thread alone: each has its own number
        return threads

    def base(self, path: str, source: str, target: str) -> BaseModel:
        """The base for a direction, loaded once for all its directions. Raises ModelError or MissingError."""
        from engine.base import BaseModel

        with self._lock:
            if path not in self._bases:
                while len(self._bases) >= self.settings.loaded_bases:  # memory is given back before more is taken
                    self._drop(next(iter(self._bases)))
                self._loaded[path] = time.time()
                self._bases[path] = {(source, target): BaseModel.load(path, source, target, settings=self.settings)}
            self._bases.move_to_end(path)
            known = self._bases[path]
            if (source, target) not in known:
                known[source, target] = next(iter(known.values())).directed(source, target)
            return known[source, target]

    def plugin(self, path: str, base: BaseModel) -> Plugin:
        """The plugin of a bundle, loaded over that base. Raises InputError where the bundle is gone, BundleError."""
        from engine.plugins import Plugin

        if not Path(path).is_file():
            raise InputError("The bundle {path} is no longer there. Train the plugin again or import it.", path=path)
        key = self._key(path, base)
        with self._lock:
            if key not in self._plugins:
                loaded = Plugin.load(path, base, cache=self.settings.home_dir / "unpacked")
                while len(self._plugins) >= self.settings.loaded_plugins:
                    self._plugins.popitem(last=False)
                self._plugins[key] = loaded
            self._plugins.move_to_end(key)
            return self._plugins[key]

    def plugins(self, paths: Sequence[str], base: BaseModel) -> list[Plugin | None]:
        """Plugins for one batch, None where the path is empty. Those in memory are taken first, so that what is loaded does not
        push them out. Raises as `plugin` does.
        """
        with self._lock:
            order = sorted(filter(None, dict.fromkeys(paths)), key=lambda path: self.held(path, base) is None)
            result = {path: self.plugin(path, base) for path in order}
        return [result.get(path) for path in paths]

    def held_base(self, path: str, source: str, target: str) -> BaseModel | None:
        """The base for a direction where it is in memory; waits for nobody."""
        return self._bases.get(path, {}).get((source, target))

    def current(self, path: str) -> bool:
        """Whether the base in memory, loaded from this folder, is still what lies there."""
        return max(one.stat().st_ctime for one in Path(path).iterdir()) < self._loaded[path]

    def held(self, path: str, base: BaseModel) -> Plugin | None:
        """The plugin of a bundle where it is in memory as it lies on disk; waits for nobody."""
        try:
            return self._plugins.get(self._key(path, base))
        except OSError:
            return None

    @staticmethod
    def _key(path: str, base: BaseModel) -> tuple[str, str, str, str, float]:
        return base.path, base.source, base.target, path, Path(path).stat().st_mtime

    def _drop(self, path: str) -> None:
        paths = {base.path for base in self._bases.pop(path).values()}
        for key in [key for key in self._plugins if key[0] in paths]:
            del self._plugins[key]
