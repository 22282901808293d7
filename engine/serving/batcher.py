"""One queue that puts the texts of many callers into common batches.

    batcher = Batcher(ModelCache(settings))
    batcher.submit(TranslationSpec(base="en-zh", source="en", target="zh"), ["The rain stopped."]).result()

A model works on one batch at a time, whoever asks. So while it is busy, requests gather, and those for the same base and
settings go together into the next batch, each with its own plugin where plugins can share one (engine/plugins/mixed_batch.py).
Clients take turns in it, and the requests of one client: a long text is cut, and does not hold up a short one.
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

PART = 32  # texts in one batch
MOST_WEIGHT = 4000  # of its texts together, as turns.weight counts
RECENT = 8  # batches for which a request counts as one that may be followed by another soon
LONGEST = 1000  # weight of a text that is translated as a whole
MOST_ALONE = 10_000  # works of which it is remembered that they failed
MOST_WAITING = 4_000_000  # characters, beyond which new requests are turned away
MOST_EACH = 400_000  # of them for one client


@dataclass(frozen=True)
class TranslationSpec:
    """What texts are translated with; texts of equal works may share a batch. `plugin` is a bundle's path."""

    base: str
    source: str
    target: str
    plugin: str = ""
    strength: float = 1.0
    decoding: tuple[tuple[str, Any], ...] = ()  # over the plugin's own settings
    alignment: bool = False  # of pairs (text, translation) instead
    terms: str = ""  # a glossary whose terms are enforced, as `parse_terms` reads it

    @classmethod
    def of(cls, base: str, source: str, target: str, plugin: str = "", strength: float = 1.0,
           decoding: Mapping[str, Any] | None = None, terms: str = "") -> TranslationSpec:  # fmt: skip
        """The same from a mapping of settings. Raises OptionError on a bad one."""
        Decoding.from_mapping(decoding or {})
        used = plugin if strength else ""
        settings = tuple(sorted((decoding or {}).items()))
        return cls(base, source, target, used, strength if used else 1.0, settings, terms=terms)


OTHER = TranslationSpec("", "", "")  # of what is no translation


@dataclass(eq=False)
class _Request:
    work: TranslationSpec
    ticket: Ticket
    texts: list[Any]  # pieces of the texts that were given; pairs, where they are aligned
    owners: list[int]  # the text that each is a piece of
    size: int  # characters
    future: Future[list[Any]] = field(default_factory=Future)
    results: dict[int, Any] = field(default_factory=dict)
    given: int = 0  # texts that are in a batch or done
    call: Callable[[], Any] | None = None  # what is run in the place of a translation


_Share = tuple[_Request, list[int]]  # a request and places of its texts


class Batcher:
    """A queue of texts, and a thread that translates them. Clients take turns, and so do the requests of one."""

    part = PART
    most_weight = MOST_WEIGHT
    small_weight = MOST_WEIGHT // 8
    most_each = MOST_EACH
    threads = 1

    def __init__(self, models: ModelCache) -> None:
        self.models = models
        self.batches = 0  # done since the start
        self._waiting: deque[_Request] = deque()
        self._backlog: Counter[str] = Counter()  # characters that clients wait for
        self._turns = Turns()
        self._recent: deque[set[Ticket]] = deque(maxlen=RECENT)  # requests of the last batches
        self._change = threading.Condition()
        self._loader = PluginLoader(models, self._change)
        self._started = 0
        self._closed = False
        self._quarantined: set[TranslationSpec] = set()  # works that failed last time, and spoil no other's batch again

    def submit(self, work: TranslationSpec, texts: Sequence[Any], ticket: Ticket | None = None) -> Future[list[Any]]:
        """Translations of the texts, in order, once they are there; alignments of pairs, where the work says so.

        A text of more than `LONGEST` is cut at sentence ends and put together again. Raises OverloadedError where too much is
        waiting. What was not begun is taken out of the queue when the ticket has ended, whose error the future then has, or the
        future was cancelled.
        """
        ticket = ticket or Ticket()
        ticket.check()
        pieces = [_pieces(text, work) for text in texts]
        request = _Request(
            work, ticket, [piece for some in pieces for piece in some],
            [i for i, some in enumerate(pieces) for _ in some], sum(sum(map(len, some)) for some in pieces),
        )  # fmt: skip
        if not texts:
            request.future.set_result([])
            return request.future
        return self._put(request)

    def run(self, call: Callable[[], Any], text: str, ticket: Ticket | None = None) -> Future[list[Any]]:
        """What `call` returns, as the only result, once it is the client's turn to use the models; `text` is what it works on.

        For work on one sentence that is no translation. Raises OverloadedError as `submit` does.
        """
        ticket = ticket or Ticket()
        ticket.check()
        return self._put(_Request(OTHER, ticket, [text], [0], len(text), call=call))

    def _put(self, request: _Request) -> Future[list[Any]]:
        with self._change:
            self._admit(request.ticket.client, request.size)
            self._waiting.append(request)
            while self._started < self.threads:
                # Daemons, so that a batch that does not end never holds up the end of the program.
                threading.Thread(target=self._run, name="translate", daemon=True).start()
                self._started += 1
            self._change.notify_all()
        return request.future

    def _admit(self, client: str, size: int) -> None:
        """Count what a client waits for from now on. Raises OverloadedError; a client's first request comes in whatever its size,
        and what is more than a client may wait for keeps nobody else out.
        """
        own = self._backlog[client]
        everybody = sum(min(one, self.most_each) for one in self._backlog.values())
        if (own and own + size > self.most_each) or (
            everybody and everybody + min(size, self.most_each) > MOST_WAITING
        ):
            raise OverloadedError(
                "Too much is waiting to be translated. Try again in a minute, with fewer texts at once."
            )
        self._backlog[client] += size

    def close(self) -> None:
        """End the threads when they have nothing to do."""
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
        """Translate these texts of these requests. What goes wrong with one plugin is the end of its requests alone."""
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
                    self._batch([one for one in batch if one[0].work == work])
                return
            if len(self._quarantined) >= MOST_ALONE:
                self._quarantined.clear()
            self._quarantined.add(works[0])
            for request, _ in batch:
                self._end(request, error)
            return
        self._quarantined.difference_update(works)  # what was wrong has passed
        for request, indices in batch:
            with self._change:
                request.results |= {i: next(results) for i in indices}
                done = len(request.results) == len(request.texts)
            if done:
                self._end(request)

    def _next(self) -> list[_Share]:
        """The texts of the next batch: of the client whose turn it is, and in turns of those that can share a batch with it."""
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
        share, most, room = self._bounds(alike)
        texts: Counter[str] = Counter()
        full, batch = 0, []
        for request in alike:
            begin, client = request.given, request.ticket.client
            while request.given < min(len(request.texts), begin + share) and texts[client] < most:
                work = weight(request.texts[request.given])
                if full and full + work > room:
                    break
                full += work
                texts[client] += 1
                self._turns.give(client, work)
                request.given += 1
            if request.given == begin:
                continue
            batch.append((request, list(range(begin, request.given))))
            self._waiting.remove(request)
            if request.given < len(request.texts):
                self._waiting.append(request)  # at the end: others have their turn first
        return batch

    def _bounds(self, alike: Sequence[_Request]) -> tuple[int, int, int]:
        """The most texts of a request and of a client in a batch of these, and its most weight. Who has many gets no more of a
        common batch than who has least, and a small batch alone where others come again and again and would wait.
        """
        self._recent.append({request.ticket for request in alike})
        recent = set().union(*self._recent)
        share = max(1, self.part // len(alike))
        texts = [min(share, len(request.texts) - request.given) for request in alike]
        most = min(texts)
        clients: Counter[str] = Counter()
        for request, count in zip(alike, texts, strict=True):
            clients[request.ticket.client] += min(most, count)
        alone = (len(alike) == 1 < len(recent)) or (len(clients) == 1 < len({ticket.client for ticket in recent}))
        return most, min(clients.values()), self.small_weight if alone else self.most_weight

    def _loading(self, work: TranslationSpec) -> bool:
        """Whether requests of this work wait for their plugin, while others are translated."""
        return self._loader.loading(work)

    def _in_turn(self, ready: Sequence[_Request]) -> list[_Request]:
        """These requests, those of clients who had least first; a client's second one counts what its first one gets."""
        before: Counter[str] = Counter()
        keys = []
        for request in ready:
            client = request.ticket.client
            keys.append(self._turns.had(client) + before[client])
            before[client] += weight(request.texts[request.given])
        return [request for _, request in sorted(zip(keys, ready, strict=True), key=itemgetter(0))]

    def _compatible(self, waiting: Sequence[_Request]) -> list[_Request]:
        """Requests for a batch with the first one, in their order: not more plugins than may be in memory, and nothing much longer,
        which all of them would wait for.
        """
        if waiting[0].call is not None:
            return [waiting[0]]
        first = waiting[0].work
        longest = max(LONGEST // 4, 2 * weight(waiting[0].texts[waiting[0].given]))
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
            if joins[work] and weight(request.texts[request.given]) <= longest:
                results.append(request)
        return results

    def _batch_key(self, work: TranslationSpec) -> Hashable | None:
        """What works must have in common to share a batch with this one; None where it must be alone: its plugin is not in memory,
        so that others would wait until it is, or cannot share one, or it failed before.
        """
        from engine.plugins.mixed_batch import can_mix

        if work in self._quarantined or work.alignment or work.terms:
            return None
        try:
            base = self.models.held_base(work.base, work.source, work.target)
            plugin = self.models.held(work.plugin, base) if base is not None and work.plugin else None
            if base is None or (work.plugin and plugin is None) or not can_mix(base, [plugin], work.strength):
                return None
        except TailorError:  # reported when it is the work's own turn
            return None
        return work.base, work.source, work.target, work.strength, own_decoding(work, base, plugin)

    def _translate(self, works: Sequence[TranslationSpec], texts: Sequence[Any]) -> list[Any]:
        """Translate texts of works over one base, those of one strength and decoding together; or align pairs."""
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
            some = [texts[index] for index in indices]
            own = [plugins[works[index]] for index in indices]
            parts.append((indices, translate_mixed(base, some, own, strength=strength, decoding=decoding)))
        return in_order(parts)

    def _with_terms(self, work: TranslationSpec, base: BaseModel, texts: Sequence[str]) -> list[str]:
        from engine.decoding.translate import translate

        (plugin,) = self.models.plugins([work.plugin], base)
        decoding = own_decoding(work, base, plugin)
        return translate(base, texts, plugin, strength=work.strength, decoding=decoding, terms=terms_of(work))

    def _end(self, request: _Request, error: BaseException | None = None) -> None:
        with self._change:
            self._forget(request)
        with contextlib.suppress(InvalidStateError):  # cancelled in the meantime
            if error is not None:
                request.future.set_exception(error)
            else:
                request.future.set_result(_joined(request))

    def _forget(self, request: _Request) -> None:
        if request in self._waiting:
            self._waiting.remove(request)
        self._backlog[request.ticket.client] -= request.size
        request.size = 0
        self._backlog += Counter()  # without clients that wait for nothing


def _pieces(text: Any, work: TranslationSpec) -> list[Any]:
    """A text as it is translated: in pieces where it is long, so that others need not wait for the whole of it."""
    if work.alignment or weight(text) <= LONGEST:
        return [text]
    from engine.decoding.translate import cut

    return cut(text, LONGEST, lambda parts: [weight(part) for part in parts], "" if unspaced(work.source) else " ")


def _joined(request: _Request) -> list[Any]:
    """One result for each text that was given."""
    if request.work.alignment:
        return [request.results[i] for i in range(len(request.texts))]
    joined: list[list[str]] = [[] for _ in range(request.owners[-1] + 1)]
    for i, owner in enumerate(request.owners):
        joined[owner].append(request.results[i])
    space = "" if unspaced(request.work.target) else " "
    return [some[0] if len(some) == 1 else flagged(space.join(some), list(map(flag_of, some))) for some in joined]


@lru_cache(maxsize=64)
def terms_of(work: TranslationSpec) -> list[Term]:
    """The terms of the work's glossary. Raises InputError, with the line, on what is none."""
    return parse_terms(work.terms.splitlines(), Message("The terms"), work.target, work.source)


def own_decoding(work: TranslationSpec, base: BaseModel, plugin: Plugin | None) -> Decoding:
    """The work's settings over those of the plugin's card, over those of the base."""
    own = plugin.card.get("decoding", {}) if plugin else {}
    return base.decoding({**own, **dict(work.decoding)})
