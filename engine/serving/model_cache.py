"""A cache of loaded bases and plugins shared by many callers."""

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
    """Bases and plugins in memory, evicted by least recent use. Thread-safe.

    `sharing` returns whether a job is running on the same cores.
    """

    def __init__(self, settings: Settings, sharing: Callable[[], bool] = lambda: False) -> None:
        self.settings = settings
        self._sharing = sharing
        self._threads = 0
        self._lock = threading.RLock()
        self._opening = threading.RLock()  # held while a plugin loads; callers without one do not wait
        self._bases: OrderedDict[str, dict[tuple[str, str], BaseModel]] = OrderedDict()  # by direction
        self._files: dict[str, tuple[Path, frozenset[tuple[str, int]]]] = {}  # each base's folder, and its files when loaded
        self._plugins: OrderedDict[tuple[str, str, str, str, float], Plugin] = OrderedDict()

    def take_cores(self) -> int:
        """Set the calling thread's number of CPU threads for models and return it: as in the settings, or half alongside a job.

        A matrix product ends with the slowest of its threads, so one thread that a job keeps from its core delays all. Alongside
        training on 2 cores, using both is slower (bench/README.md, "Translating beside a job").
        """
        import torch

        with self._lock:
            # Read torch's default before it is changed.
            configured = self.settings.threads
            self._threads = self._threads or (model_threads(configured) if configured else torch.get_num_threads())
        threads = max(1, self._threads // 2) if self._sharing() else self._threads
        torch.set_num_threads(threads)  # the number is per thread
        return threads

    def base(self, path: str, source: str, target: str) -> BaseModel:
        """The base for a direction, loaded once for all its directions, and reloaded if its files were replaced.

        Raises ModelError or MissingError.
        """
        from engine.base import BaseModel
        from engine.base.registry import BaseRegistry

        with self._lock:
            if path in self._bases and self._replaced(path):
                self._drop(path)
            if path not in self._bases:
                while len(self._bases) >= self.settings.loaded_bases:  # free memory before allocating more
                    self._drop(next(iter(self._bases)))
                folder = BaseRegistry(self.settings).find(path)
                self._files[path] = folder, _files_of(folder)
                self._bases[path] = {(source, target): BaseModel.load(path, source, target, settings=self.settings)}
            self._bases.move_to_end(path)
            by_direction = self._bases[path]
            if (source, target) not in by_direction:
                by_direction[source, target] = next(iter(by_direction.values())).for_direction(source, target)
            return by_direction[source, target]

    def plugin(self, path: str, base: BaseModel) -> Plugin:
        """The plugin of a bundle, loaded for this base. Raises InputError if the bundle is missing, BundleError."""
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
                while self._plugins and self.free_slots() <= 0:
                    self._plugins.popitem(last=False)
                if any(base is cached for by_direction in self._bases.values() for cached in by_direction.values()):
                    self._plugins[key] = loaded  # otherwise its base was dropped meanwhile
            return loaded

    def plugins(self, paths: Sequence[str], base: BaseModel) -> list[Plugin | None]:
        """Plugins for one batch, None for an empty path. Raises the same errors as `plugin`.

        Plugins in memory are looked up first, so that loading others does not evict them.
        """
        different = set(filter(None, paths))
        result = {path: plugin for path in different if (plugin := self.cached_plugin(path, base)) is not None}
        for path in sorted(different, key=lambda path: path not in result):
            result[path] = self.plugin(path, base)
        return [result.get(path) for path in paths]

    def held_base(self, path: str, source: str, target: str) -> BaseModel | None:
        """The base for a direction if it is in memory, else None; does not block."""
        return self._bases.get(path, {}).get((source, target))

    def _replaced(self, path: str) -> bool:
        """Whether the files in the base's folder have changed; a removed base continues to translate."""
        folder, files = self._files[path]
        present = _files_of(folder)
        return bool(present) and present != files

    def free_slots(self) -> int:
        """How many more plugins can be loaded before one is evicted."""
        return self.settings.loaded_plugins - len(self._plugins)

    def cached_plugin(self, path: str, base: BaseModel) -> Plugin | None:
        """The plugin of a bundle if its current version is in memory, else None; does not block."""
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
    """Names and change times (ns) of the files in a folder, excluding subfolders; empty if there is no folder."""
    try:
        return frozenset((file.name, file.stat().st_ctime_ns) for file in folder.iterdir() if file.is_file())
    except OSError:
        return frozenset()
