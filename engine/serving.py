"""Loaded bases and plugins that many callers share, and one queue that puts their texts into common batches.

    models = Models(settings)
    batcher = Batcher(models)
    batcher.submit(Work(base="en-zh", source="en", target="zh"), ["The rain stopped."]).result()

A model works on one batch at a time, whoever asks. So while it is busy, requests gather, and those for the same base,
plugin and settings go together into the next batch. Requests take turns in it: a long one does not hold up a short one.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.decoding.options import Decoding
from engine.errors import InputError, TailorError
from engine.settings import Settings

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.plugins import Plugin

__all__ = ["Batcher", "Busy", "Models", "Work"]

PART = 32  # texts in one batch
MOST_WAITING = 2_000_000  # characters, beyond which new requests are turned away


class Busy(TailorError):  # noqa: N818 - a state of the machine, as Cancelled is
    """More is waiting to be translated than can be done soon."""


class Models:
    """Bases and plugins in memory; those used longest ago make room for others. Safe to use from several threads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.RLock()
        self._bases: OrderedDict[str, dict[tuple[str, str], BaseModel]] = OrderedDict()  # by direction: one model
        self._plugins: OrderedDict[tuple[str, str, str, str, float], Plugin] = OrderedDict()

    def base(self, path: str, source: str, target: str) -> BaseModel:
        """The base for a direction, loaded once for all its directions. Raises ModelError or MissingError."""
        from engine.base import BaseModel

        with self._lock:
            if path not in self._bases:
                while len(self._bases) >= self.settings.loaded_bases:  # memory is given back before more is taken
                    self._drop(next(iter(self._bases)))
                self._bases[path] = {(source, target): BaseModel.load(path, source, target, settings=self.settings)}
            self._bases.move_to_end(path)
            known = self._bases[path]
            if (source, target) not in known:
                known[source, target] = next(iter(known.values())).directed(source, target)
            return known[source, target]

    def plugin(self, path: str, base: BaseModel) -> Plugin:
        """The plugin of a bundle, loaded over that base. Raises InputError where the bundle is gone, BundleError."""
        from engine.plugins import Plugin

        file = Path(path)
        if not file.is_file():
            raise InputError(f"The bundle {path} is no longer there. Train the plugin again or import it.")
        key = (base.path, base.source, base.target, path, file.stat().st_mtime)
        with self._lock:
            if key not in self._plugins:
                loaded = Plugin.load(path, base, cache=self.settings.home_dir / "unpacked")
                while len(self._plugins) >= self.settings.loaded_plugins:
                    self._plugins.popitem(last=False)
                self._plugins[key] = loaded
            self._plugins.move_to_end(key)
            return self._plugins[key]

    def _drop(self, path: str) -> None:
        places = {base.path for base in self._bases.pop(path).values()}
        for key in [key for key in self._plugins if key[0] in places]:
            del self._plugins[key]


@dataclass(frozen=True)
class Work:
    """What texts are translated with; texts of equal works may share a batch. `plugin` is a bundle's path."""

    base: str
    source: str
    target: str
    plugin: str = ""
    strength: float = 1.0
    decoding: tuple[tuple[str, Any], ...] = ()  # over the plugin's own settings

    @classmethod
    def of(cls, base: str, source: str, target: str, plugin: str = "", strength: float = 1.0,
           decoding: Mapping[str, Any] | None = None) -> Work:  # fmt: skip
        """The same from a mapping of settings. Raises OptionError on a bad one."""
        Decoding.from_mapping(decoding or {})
        used = plugin if strength else ""
        return cls(base, source, target, used, strength if used else 1.0, tuple(sorted((decoding or {}).items())))


@dataclass(eq=False)
class _Request:
    work: Work
    texts: list[str]
    future: Future[list[str]] = field(default_factory=Future)
    results: list[str] = field(default_factory=list)
    given: int = 0  # texts that are in a batch or done


class Batcher:
    """One thread that translates what is submitted."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.batches = 0  # done since the start
        self._waiting: deque[_Request] = deque()
        self._characters = 0
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, work: Work, texts: Sequence[str]) -> Future[list[str]]:
        """Translations of the texts, in order, once they are there. Raises Busy when too much is waiting.

        Cancelling the future takes what was not begun out of the queue.
        """
        request = _Request(work, list(texts))
        if not texts:
            request.future.set_result([])
            return request.future
        with self._change:
            if self._characters and self._characters + sum(map(len, texts)) > MOST_WAITING:
                raise Busy("Too much is waiting to be translated. Try again in a minute, with fewer texts at once.")
            self._characters += sum(map(len, texts))
            self._waiting.append(request)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="translate", daemon=True)
                self._thread.start()
            self._change.notify()
        return request.future

    def _run(self) -> None:
        while True:
            with self._change:
                while not (batch := self._next()):
                    self._change.wait()
            work, texts = batch[0][0].work, [text for request, some in batch for text in some]
            try:
                results = iter(self._translate(work, texts))
            except BaseException as error:
                for request, _ in batch:
                    self._end(request, error)
                continue
            finally:
                self.batches += 1
            for request, some in batch:
                request.results += [next(results) for _ in some]
                if len(request.results) == len(request.texts):
                    self._end(request)

    def _next(self) -> list[tuple[_Request, list[str]]]:
        """The texts of the next batch: of the first request, and in turns of those that want the same."""
        for request in [one for one in self._waiting if one.future.cancelled()]:
            self._forget(request)
        if not self._waiting:
            return []
        alike = [one for one in self._waiting if one.work == self._waiting[0].work][:PART]
        share = max(1, PART // len(alike))
        batch = []
        for request in alike:
            some = request.texts[request.given : request.given + share]
            request.given += len(some)
            batch.append((request, some))
            self._waiting.remove(request)
            if request.given < len(request.texts):
                self._waiting.append(request)  # at the end: others have their turn first
        return batch

    def _translate(self, work: Work, texts: list[str]) -> list[str]:
        base = self.models.base(work.base, work.source, work.target)
        plugin = self.models.plugin(work.plugin, base) if work.plugin else None
        own = plugin.card.get("decoding", {}) if plugin else {}
        decoding = Decoding.from_mapping({**own, **dict(work.decoding)})
        return base.translate(texts, plugin, strength=work.strength, decoding=decoding)

    def _end(self, request: _Request, error: BaseException | None = None) -> None:
        with self._change:
            self._forget(request)
        with contextlib.suppress(InvalidStateError):  # cancelled in the meantime
            if error is not None:
                request.future.set_exception(error)
            else:
                request.future.set_result(request.results)

    def _forget(self, request: _Request) -> None:
        if request in self._waiting:
            self._waiting.remove(request)
        if request.texts:
            self._characters -= sum(map(len, request.texts))
            request.texts = []
