"""A queue that combines the texts of many callers into shared batches.

    batcher = Batcher(ModelCache(settings))
    batcher.submit(TranslationSpec(base="en-zh", source="en", target="zh"), ["The rain stopped."]).result()

A model processes one batch at a time. While it is busy, requests accumulate, and those for the same base and settings share the
next batch, each with its plugin if the plugins can be mixed (engine/plugins/mixed_batch.py). Clients take turns, as do the
requests of one client; long texts are split, so that they do not delay short ones.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.base.decoding_options import Decoding
from engine.core.flagged import flag_of, flagged
from engine.core.languages import unspaced
from engine.corpora.terminology import Term, parse_terms
from engine.errors import TailorError
from engine.messages import Message
from engine.serving.model_cache import ModelCache
from engine.serving.plugin_loader import PluginLoader
from engine.serving.turns import OverloadedError, Ticket, Turns, weight

if TYPE_CHECKING:
    from engine.plugins import Plugin

PART = 32  # texts per batch
MOST_WEIGHT = 4000  # total weight of a batch (turns.weight)
RECENT = 8  # batches for which a request counts as recent, so that another of its client is expected soon
LONGEST = 1000  # weight up to which a text is not split
MOST_ALONE = 10_000  # failed works that are remembered
MOST_WAITING = 4_000_000  # characters in the queue beyond which new requests are rejected
MOST_EACH = 400_000  # characters in the queue per client


@dataclass(frozen=True)
class TranslationSpec:
    """The model and settings for a translation; equal specs can share a batch. `plugin` is the path of a bundle."""

    base: str
    source: str
    target: str
    plugin: str = ""
    strength: float = 1.0
    decoding: tuple[tuple[str, Any], ...] = ()  # overrides the plugin's settings
    alignment: bool = False  # align pairs (text, translation) instead of translating
    terms: str = ""  # a glossary to enforce, in the format of `parse_terms`

    @classmethod
    def of(cls, base: str, source: str, target: str, plugin: str = "", strength: float = 1.0,
           decoding: Mapping[str, Any] | None = None, terms: str = "") -> TranslationSpec:  # fmt: skip
        """Create a spec from a mapping of decoding settings. Raises OptionError if one is invalid."""
        Decoding.from_mapping(decoding or {})
        used = plugin if strength else ""
        settings = tuple(sorted((decoding or {}).items()))
        return cls(base, source, target, used, strength if used else 1.0, settings, terms=terms)


OTHER = TranslationSpec("", "", "")  # for work that is not a translation


@dataclass(eq=False)
class _Request:
    work: TranslationSpec
    ticket: Ticket
    texts: list[Any]  # pieces of the submitted texts, or pairs to align
    owners: list[int]  # the index of the text that each piece belongs to
    size: int  # characters
    future: Future[list[Any]] = field(default_factory=Future)
    results: dict[int, Any] = field(default_factory=dict)
    position: int = 0  # number of texts in a batch or done
    call: Callable[[], Any] | None = None  # called instead of translating


_Share = tuple[_Request, list[int]]  # a request and indices of its texts


class Batcher:
    """A queue of texts, and threads that translate them. Clients take turns, as do the requests of one client."""

    part = PART
    most_weight = MOST_WEIGHT
    small_weight = MOST_WEIGHT // 8
    most_each = MOST_EACH
    threads = 1

    def __init__(self, models: ModelCache) -> None:
        self.models = models
        self.batches = 0  # processed since the start
        self._waiting: deque[_Request] = deque()
        self._backlog: Counter[str] = Counter()  # queued characters by client
        self._turns = Turns()
        self._recent: deque[set[Ticket]] = deque(maxlen=RECENT)  # tickets of the last batches
        self._change = threading.Condition()
        self._loader = PluginLoader(models, self._change)
        self._started = 0
        self._closed = False
        self._quarantined: set[TranslationSpec] = set()  # works that failed last time and are translated separately

    def submit(self, work: TranslationSpec, texts: Sequence[Any], ticket: Ticket | None = None) -> Future[list[Any]]:
        """Queue texts; the future returns their translations in order, or the alignments of pairs if the work specifies so.

        A text heavier than `LONGEST` is split at sentence ends and rejoined. Raises OverloadedError if the queue is full.
        Texts not yet started leave the queue when the future is cancelled or the ticket ends; the future then has the ticket's
        error.
        """
        ticket = ticket or Ticket()
        ticket.check()
        pieces = [_pieces(text, work) for text in texts]
        request = _Request(
            work, ticket, [piece for parts in pieces for piece in parts],
            [i for i, parts in enumerate(pieces) for _ in parts], sum(sum(map(len, parts)) for parts in pieces),
        )  # fmt: skip
        if not texts:
            request.future.set_result([])
            return request.future
        return self._put(request)

    def run(self, call: Callable[[], Any], text: str, ticket: Ticket | None = None) -> Future[list[Any]]:
        """Queue a call that uses the models; the future returns its result as the only element.

        For work on one sentence, `text`, that is not a translation. Raises OverloadedError like `submit`.
        """
        ticket = ticket or Ticket()
        ticket.check()
        return self._put(_Request(OTHER, ticket, [text], [0], len(text), call=call))

    def _put(self, request: _Request) -> Future[list[Any]]:
        with self._change:
            self._admit(request.ticket.client, request.size)
            self._waiting.append(request)
            while self._started < self.threads:
                # Daemon threads, so that a batch that hangs does not keep the program from ending.
                threading.Thread(target=self._run, name="translate", daemon=True).start()
                self._started += 1
            self._change.notify_all()
        return request.future

    def _admit(self, client: str, size: int) -> None:
        """Add to the client's backlog. Raises OverloadedError if the queue is full or the client exceeds its limit.

        The client limit never rejects a client's only request. A backlog counts for other clients only up to that limit.
        """
        backlog = self._backlog[client]
        everybody = sum(min(amount, self.most_each) for amount in self._backlog.values())
        if (backlog and backlog + size > self.most_each) or (everybody and everybody + min(size, self.most_each) > MOST_WAITING):
            raise OverloadedError("Too much is waiting to be translated. Try again in a minute, with fewer texts at once.")
        self._backlog[client] += size

    def close(self) -> None:
        """End the threads once the queue is empty."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def _run(self) -> None:
        while True:
            with self._change:
                while not (batch := self._next()):
                    if self._closed and not self._waiting:
                        return
                    self._change.wait()
            self.batches += 1
            self._batch(batch)

    def _batch(self, batch: list[_Share]) -> None:
        """Translate the texts of a batch. If it fails, its works are retried separately, so that only faulty ones fail."""
        if (request := batch[0][0]).call is not None:
            try:
                self.models.take_cores()
                request.results[0] = request.call()
            except BaseException as error:
                self._end(request, error)
            else:
                self._end(request)
            return
        works = [request.work for request, indices in batch for _ in indices]
        try:
            results = iter(self._translate(works, [request.texts[i] for request, indices in batch for i in indices]))
        except BaseException as error:
            if len(set(works)) > 1:
                for work in dict.fromkeys(works):
                    self._batch([share for share in batch if share[0].work == work])
                return
            if len(self._quarantined) >= MOST_ALONE:
                self._quarantined.clear()
            self._quarantined.add(works[0])
            for request, _ in batch:
                self._end(request, error)
            return
        self._quarantined.difference_update(works)  # these works succeed again
        for request, indices in batch:
            with self._change:
                request.results |= {i: next(results) for i in indices}
                done = len(request.results) == len(request.texts)
            if done:
                self._end(request)

    def _next(self) -> list[_Share]:
        """The next batch: texts of the client whose turn it is, and of other requests that can share the batch."""
        for request in list(self._waiting):
            if request.future.cancelled():
                self._forget(request)
            else:
                try:
                    request.ticket.check()
                except TailorError as error:
                    self._end(request, error)
        ready = [request for request in self._waiting if not self._loading(request.work)]
        if not ready:
            return []
        alike = self._compatible(self._in_turn(ready))
        self._turns.next(alike[0].ticket.client)
        share, client_limit, capacity = self._bounds(alike)
        texts: Counter[str] = Counter()
        full, batch = 0, []
        for request in alike:
            begin, client = request.position, request.ticket.client
            while request.position < min(len(request.texts), begin + share) and texts[client] < client_limit:
                work = weight(request.texts[request.position])
                if full and full + work > capacity:
                    break
                full += work
                texts[client] += 1
                self._turns.give(client, work)
                request.position += 1
            if request.position == begin:
                continue
            batch.append((request, list(range(begin, request.position))))
            self._waiting.remove(request)
            if request.position < len(request.texts):
                self._waiting.append(request)  # at the end, after other requests
        return batch

    def _bounds(self, alike: Sequence[_Request]) -> tuple[int, int, int]:
        """The maximum number of texts per request and per client in a batch of these requests, and its maximum weight.

        In a shared batch, all get as many texts as the one with the fewest. A request or client alone in a batch gets a small
        one while others were recent, so that these need not wait long.
        """
        self._recent.append({request.ticket for request in alike})
        recent = set().union(*self._recent)
        share = max(1, self.part // len(alike))
        texts = [min(share, len(request.texts) - request.position) for request in alike]
        fewest = min(texts)
        clients: Counter[str] = Counter()
        for request, count in zip(alike, texts, strict=True):
            clients[request.ticket.client] += min(fewest, count)
        alone = (len(alike) == 1 < len(recent)) or (len(clients) == 1 < len({ticket.client for ticket in recent}))
        return fewest, min(clients.values()), self.small_weight if alone else self.most_weight

    def _loading(self, work: TranslationSpec) -> bool:
        """Whether requests of this work wait for their plugin to load while others are translated."""
        return self._loader.loading(work)

    def _in_turn(self, ready: Sequence[_Request]) -> list[_Request]:
        """Sort requests by the work done for their clients, least first, counting each client's earlier requests in the list."""
        before: Counter[str] = Counter()
        keys = []
        for request in ready:
            client = request.ticket.client
            keys.append(self._turns.had(client) + before[client])
            before[client] += weight(request.texts[request.position])
        return [request for _, request in sorted(zip(keys, ready, strict=True), key=itemgetter(0))]

    def _compatible(self, waiting: Sequence[_Request]) -> list[_Request]:
        """The requests that can share a batch with the first: their plugins fit in memory, and no text is much longer."""
        if waiting[0].call is not None:
            return [waiting[0]]
        first = waiting[0].work
        longest = max(LONGEST // 4, 2 * weight(waiting[0].texts[waiting[0].position]))
        company = self._batch_key(first)
        joins = {first: True}
        results: list[_Request] = []
        for request in waiting:
            if len(results) == self.part:
                break
            work = request.work
            if request.call is not None:
                continue
            if work not in joins:
                full = sum(joins.values()) == self.models.settings.loaded_plugins
                joins[work] = not full and company is not None and self._batch_key(work) == company
            if joins[work] and weight(request.texts[request.position]) <= longest:
                results.append(request)
        return results

    def _batch_key(self, work: TranslationSpec) -> Hashable | None:
        """The key that works sharing a batch have in common; None if this work cannot share a batch.

        That is if its base or plugin is not in memory or cannot be mixed, it failed before, or it aligns or enforces terms.
        """
        from engine.plugins.mixed_batch import can_mix

        if work in self._quarantined or work.alignment or work.terms:
            return None
        try:
            base = self.models.held_base(work.base, work.source, work.target)
            plugin = self.models.cached_plugin(work.plugin, base) if base is not None and work.plugin else None
            if base is None or (work.plugin and plugin is None) or not can_mix(base, [plugin], work.strength):
                return None
        except TailorError:  # raised again when the work is translated
            return None
        return work.base, work.source, work.target, work.strength, own_decoding(work, base, plugin)

    def _translate(self, works: Sequence[TranslationSpec], texts: Sequence[Any]) -> list[Any]:
        """Translate texts with one base, grouped by strength and decoding settings; or align pairs."""
        from engine.decoding.translate import in_order
        from engine.decoding.word_alignment import align
        from engine.plugins.mixed_batch import translate_mixed

        self.models.take_cores()
        base = self.models.base(works[0].base, works[0].source, works[0].target)
        if works[0].alignment:
            return align(base, texts)
        if works[0].terms:
            return self._with_terms(works[0], base, texts)
        different = list(dict.fromkeys(works))
        loaded = self.models.plugins([work.plugin for work in different], base)
        plugins = dict(zip(different, loaded, strict=True))
        groups: dict[tuple[float, Decoding], list[int]] = {}
        for index, work in enumerate(works):
            groups.setdefault((work.strength, own_decoding(work, base, plugins[work])), []).append(index)
        parts: list[tuple[list[int], list[str]]] = []
        for (strength, decoding), indices in groups.items():
            group_texts = [texts[index] for index in indices]
            group_plugins = [plugins[works[index]] for index in indices]
            parts.append((indices, translate_mixed(base, group_texts, group_plugins, strength=strength, decoding=decoding)))
        return in_order(parts)

    def _with_terms(self, work: TranslationSpec, base: BaseModel, texts: Sequence[str]) -> list[str]:
        from engine.decoding.translate import translate

        (plugin,) = self.models.plugins([work.plugin], base)
        decoding = own_decoding(work, base, plugin)
        return translate(base, texts, plugin, strength=work.strength, decoding=decoding, terms=terms_of(work))

    def _end(self, request: _Request, error: BaseException | None = None) -> None:
        with self._change:
            self._forget(request)
        with contextlib.suppress(InvalidStateError):  # cancelled meanwhile
            if error is not None:
                request.future.set_exception(error)
            else:
                request.future.set_result(_joined(request))

    def _forget(self, request: _Request) -> None:
        if request in self._waiting:
            self._waiting.remove(request)
        self._backlog[request.ticket.client] -= request.size
        request.size = 0
        self._backlog += Counter()  # drops clients without a backlog


def _pieces(text: Any, work: TranslationSpec) -> list[Any]:
    """Split a long text into pieces, so that other requests need not wait for all of it."""
    if work.alignment or weight(text) <= LONGEST:
        return [text]
    from engine.decoding.translate import cut

    return cut(text, LONGEST, lambda parts: [weight(part) for part in parts], "" if unspaced(work.source) else " ")


def _joined(request: _Request) -> list[Any]:
    """Join the results of the pieces into one result per submitted text."""
    if request.work.alignment:
        return [request.results[i] for i in range(len(request.texts))]
    joined: list[list[str]] = [[] for _ in range(request.owners[-1] + 1)]
    for i, owner in enumerate(request.owners):
        joined[owner].append(request.results[i])
    space = "" if unspaced(request.work.target) else " "
    return [parts[0] if len(parts) == 1 else flagged(space.join(parts), list(map(flag_of, parts))) for parts in joined]


@lru_cache(maxsize=64)
def terms_of(work: TranslationSpec) -> list[Term]:
    """The terms of the work's glossary. Raises InputError, with the line, if one is invalid."""
    return parse_terms(work.terms.splitlines(), Message("The terms"), work.target, work.source)


def own_decoding(work: TranslationSpec, base: BaseModel, plugin: Plugin | None) -> Decoding:
    """The decoding settings: the base's, overridden by those of the plugin's card, overridden by the work's."""
    plugin_decoding = plugin.card.get("decoding", {}) if plugin else {}
    return base.decoding({**plugin_decoding, **dict(work.decoding)})
