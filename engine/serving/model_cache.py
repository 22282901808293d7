"""Loaded bases and plugins that many callers share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.cores import model_threads
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
        self._opening = threading.RLock()  # of a plugin: callers without one do not wait for it
        self._bases: OrderedDict[str, dict[tuple[str, str], BaseModel]] = OrderedDict()  # by direction: one model
        self._files: dict[
            str, tuple[Path, frozenset[tuple[str, int]]]
        ] = {}  # each base's folder, and its files when read
        self._plugins: OrderedDict[tuple[str, str, str, str, float], Plugin] = OrderedDict()

    def take_cores(self) -> int:
        """Give the calling thread its CPU threads for models, and say how many: those of the settings, half of them beside a job.

        Each product ends when the last of its threads does, and one that a job keeps from its core holds up all: beside a
        training on 2 cores a sentence took four times as long with both (bench/README.md, "Translating beside a job").
        """
        import torch

        with self._lock:
            # What torch takes by itself is only to be seen before it is changed.
            own = self.settings.threads
            self._threads = self._threads or (model_threads(own) if own else torch.get_num_threads())
        threads = max(1, self._threads // 2) if self._sharing() else self._threads
        torch.set_num_threads(threads)  # of this thread alone: each has its own number
        return threads

    def base(self, path: str, source: str, target: str) -> BaseModel:
        """The base for a direction, loaded once for all its directions, and again where its files were replaced.

        Raises ModelError or MissingError.
        """
        from engine.base import BaseModel
        from engine.base.registry import BaseRegistry

        with self._lock:
            if path in self._bases and self._replaced(path):
                self._drop(path)
            if path not in self._bases:
                while len(self._bases) >= self.settings.loaded_bases:  # memory is given back before more is taken
                    self._drop(next(iter(self._bases)))
                folder = BaseRegistry(self.settings).find(path)
                self._files[path] = folder, _files_of(folder)
                self._bases[path] = {(source, target): BaseModel.load(path, source, target, settings=self.settings)}
            self._bases.move_to_end(path)
            known = self._bases[path]
            if (source, target) not in known:
                known[source, target] = next(iter(known.values())).for_direction(source, target)
            return known[source, target]

    def plugin(self, path: str, base: BaseModel) -> Plugin:
        """The plugin of a bundle, loaded over that base. Raises InputError where the bundle is gone, BundleError."""
        from engine.plugins import Plugin

        if not Path(path).is_file():
            raise InputError("The bundle {path} is no longer there. Train the plugin again or import it.", path=path)
        key = self._key(path, base)
        with self._opening:
            with self._lock:
                if key in self._plugins:
                    self._plugins.move_to_end(key)
                    return self._plugins[key]
            loaded = Plugin.load(path, base, cache=self.settings.home_dir / "unpacked")
            with self._lock:
                while self._plugins and self.room() <= 0:
                    self._plugins.popitem(last=False)
                if any(base is one for known in self._bases.values() for one in known.values()):
                    self._plugins[key] = loaded  # else its base was dropped meanwhile
            return loaded

    def plugins(self, paths: Sequence[str], base: BaseModel) -> list[Plugin | None]:
        """Plugins for one batch, None where the path is empty. Those in memory are taken first, so that what is loaded does not
        push them out. Raises as `plugin` does.
        """
        different = set(filter(None, paths))
        result = {path: plugin for path in different if (plugin := self.held(path, base)) is not None}
        for path in sorted(different, key=lambda path: path not in result):
            result[path] = self.plugin(path, base)
        return [result.get(path) for path in paths]

    def held_base(self, path: str, source: str, target: str) -> BaseModel | None:
        """The base for a direction where it is in memory; waits for nobody."""
        return self._bases.get(path, {}).get((source, target))

    def _replaced(self, path: str) -> bool:
        """Whether other files than were loaded are in the base's folder; one that was removed still translates."""
        folder, files = self._files[path]
        present = _files_of(folder)
        return bool(present) and present != files

    def room(self) -> int:
        """How many more plugins may be loaded before one is pushed out."""
        return self.settings.loaded_plugins - len(self._plugins)

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


def _files_of(folder: Path) -> frozenset[tuple[str, int]]:
    """Names of a folder's own files and when each was changed, not of what is in folders in it, such as that of a training;
    empty where there is no folder.
    """
    try:
        return frozenset((file.name, file.stat().st_ctime_ns) for file in folder.iterdir() if file.is_file())
    except OSError:
        return frozenset()
