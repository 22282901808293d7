"""Loaded bases and plugins that many callers share, and one queue that puts their texts into common batches.

    models = Models(settings)
    batcher = Batcher(models)
    batcher.submit(Work(base="en-zh", source="en", target="zh"), ["The rain stopped."]).result()

A model works on one batch at a time, whoever asks. So while it is busy, requests gather, and those for the same base and
settings go together into the next batch, each with its own plugin where plugins can share one (engine/plugins/mixed_batch.py).
Requests take turns in it: a long one does not hold up a short one.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base.decoding_options import Decoding
from engine.core.settings import Settings
from engine.errors import InputError, TailorError

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.plugins import Plugin

PART = 32  # texts in one batch
MOST_ALONE = 10_000  # works of which it is remembered that they failed
MOST_WAITING = 2_000_000  # characters, beyond which new requests are turned away


class OverloadedError(TailorError):
    """More is waiting to be translated than can be done soon."""


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
        places = {base.path for base in self._bases.pop(path).values()}
        for key in [key for key in self._plugins if key[0] in places]:
            del self._plugins[key]


@dataclass(frozen=True)
class TranslationSpec:
    """What texts are translated with; texts of equal works may share a batch. `plugin` is a bundle's path."""

    base: str
    source: str
    target: str
    plugin: str = ""
    strength: float = 1.0
    decoding: tuple[tuple[str, Any], ...] = ()  # over the plugin's own settings

    @classmethod
    def of(cls, base: str, source: str, target: str, plugin: str = "", strength: float = 1.0,
           decoding: Mapping[str, Any] | None = None) -> TranslationSpec:  # fmt: skip
        """The same from a mapping of settings. Raises OptionError on a bad one."""
        Decoding.from_mapping(decoding or {})
        used = plugin if strength else ""
        return cls(base, source, target, used, strength if used else 1.0, tuple(sorted((decoding or {}).items())))


@dataclass(eq=False)
class _Request:
    work: TranslationSpec
    texts: list[str]
    future: Future[list[str]] = field(default_factory=Future)
    results: list[str] = field(default_factory=list)
    given: int = 0  # texts that are in a batch or done


class Batcher:
    """One thread that translates what is submitted."""

    def __init__(self, models: ModelCache) -> None:
        self.models = models
        self.batches = 0  # done since the start
        self._waiting: deque[_Request] = deque()
        self._characters = 0
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._alone: set[TranslationSpec] = set()  # works that failed last time, and spoil no other's batch again

    def submit(self, work: TranslationSpec, texts: Sequence[str]) -> Future[list[str]]:
        """Translations of the texts, in order, once they are there. Raises Busy when too much is waiting.

        Cancelling the future takes what was not begun out of the queue.
        """
        request = _Request(work, list(texts))
        if not texts:
            request.future.set_result([])
            return request.future
        with self._change:
            if self._characters and self._characters + sum(map(len, texts)) > MOST_WAITING:
                raise OverloadedError(
                    "Too much is waiting to be translated. Try again in a minute, with fewer texts at once."
                )
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
            self.batches += 1
            self._batch(batch)

    def _batch(self, batch: list[tuple[_Request, list[str]]]) -> None:
        """Translate these texts of these requests. What goes wrong with one plugin is the end of its requests alone."""
        works = [request.work for request, some in batch for _ in some]
        try:
            results = iter(self._translate(works, [text for _, some in batch for text in some]))
        except BaseException as error:
            if len(set(works)) > 1:
                for work in dict.fromkeys(works):
                    self._batch([one for one in batch if one[0].work == work])
                return
            if len(self._alone) >= MOST_ALONE:
                self._alone.clear()
            self._alone.add(works[0])
            for request, _ in batch:
                self._end(request, error)
            return
        self._alone.difference_update(works)  # what was wrong has passed
        for request, some in batch:
            request.results += [next(results) for _ in some]
            if len(request.results) == len(request.texts):
                self._end(request)

    def _next(self) -> list[tuple[_Request, list[str]]]:
        """The texts of the next batch: of the first request, and in turns of those that can share a batch with it."""
        for request in [one for one in self._waiting if one.future.cancelled()]:
            self._forget(request)
        if not self._waiting:
            return []
        alike = self._alike(self._waiting[0].work)
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

    def _alike(self, first: TranslationSpec) -> list[_Request]:
        """Waiting requests for a batch with `first`, in their order: not more plugins than may be in memory."""
        company = self._company(first)
        joins = {first: True}
        results: list[_Request] = []
        for request in self._waiting:
            if len(results) == PART:
                break
            work = request.work
            if work not in joins:
                full = sum(joins.values()) == self.models.settings.loaded_plugins
                joins[work] = not full and company is not None and self._company(work) == company
            if joins[work]:
                results.append(request)
        return results

    def _company(self, work: TranslationSpec) -> Hashable | None:
        """What works must have in common to share a batch with this one; None where it must be alone: its plugin is not in memory,
        so that others would wait until it is, or cannot share one, or it failed before.
        """
        from engine.plugins.mixed_batch import can_mix

        if work in self._alone:
            return None
        try:
            base = self.models.held_base(work.base, work.source, work.target)
            plugin = self.models.held(work.plugin, base) if base is not None and work.plugin else None
            if base is None or (work.plugin and plugin is None) or not can_mix(base, [plugin], work.strength):
                return None
        except TailorError:  # said when the work's own turn comes
            return None
        return work.base, work.source, work.target, work.strength, own_decoding(work, base, plugin)

    def _translate(self, works: Sequence[TranslationSpec], texts: Sequence[str]) -> list[str]:
        """Translate texts of works over one base, those of one strength and decoding together."""
        from engine.plugins.mixed_batch import translate_mixed

        self.models.take_cores()
        base = self.models.base(works[0].base, works[0].source, works[0].target)
        different = list(dict.fromkeys(works))
        loaded = self.models.plugins([work.plugin for work in different], base)
        plugins = dict(zip(different, loaded, strict=True))
        groups: dict[tuple[float, Decoding], list[int]] = {}
        for index, work in enumerate(works):
            groups.setdefault((work.strength, own_decoding(work, base, plugins[work])), []).append(index)
        results = [""] * len(texts)
        for (strength, decoding), places in groups.items():
            some = [texts[index] for index in places]
            own = [plugins[works[index]] for index in places]
            result = translate_mixed(base, some, own, strength=strength, decoding=decoding)
            for index, text in zip(places, result, strict=True):
                results[index] = text
        return results

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


def own_decoding(work: TranslationSpec, base: BaseModel, plugin: Plugin | None) -> Decoding:
    """The work's settings over those of the plugin's card, over those of the base."""
    own = plugin.card.get("decoding", {}) if plugin else {}
    return base.decoding({**own, **dict(work.decoding)})
