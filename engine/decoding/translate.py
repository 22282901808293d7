"""Translating many texts: batched by length, results in input order, one per line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, TypeVar

from engine.base.adapter import Adapter
from engine.base.decoding_options import Decoding
from engine.base.model import BaseModel
from engine.base.onednn import fast_products
from engine.core import metrics
from engine.core.flagged import Flagged, flag_of, flagged
from engine.core.languages import unspaced
from engine.core.oom import HalveOnOom
from engine.core.progress import Part, Progress
from engine.corpora.terminology import Term
from engine.decoding.beam_search import beam_search
from engine.decoding.enforce_terms import Beginning, enforce
from engine.decoding.guard import ALLOWANCE, CONSTRAINTS, Problem, longest_allowed, problem

T = TypeVar("T")

BY_PREFIX = "by_prefix"  # attribute of a logits processor: see `Method.logits_processors`

# Sentence models are trained on sentences, so a line longer than `Decoding.longest` tokens is split: at sentence ends; if still
# too long, at commas and similar; if still too long, between words.
BREAKS = (re.compile(r"(?<=[。！？；…])|(?<=[.!?;])\s+"), re.compile(r"(?<=[，、：])|(?<=[,:])\s+"), re.compile(r"\s+"))


def length_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices grouped by similar length, longest first, at most `budget` padded tokens per group.

    The longest come first so that a batch too big for the memory fails at once.
    """
    rows: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        width = lengths[rows[0]] if rows else lengths[i]
        if rows and width * (len(rows) + 1) > budget:
            yield rows
            rows = []
        rows.append(i)
    if rows:
        yield rows


def in_order(parts: Iterable[tuple[Sequence[int], Sequence[T]]]) -> list[T]:
    """Merge partial results into the original order; each part holds the indices of its results."""
    return [item for _, item in sorted((pair for part in parts for pair in zip(*part, strict=True)), key=itemgetter(0))]


def split_long(base: BaseModel, text: str, limit: int) -> list[str]:
    """Split a text at sentence ends, else clauses, else words, so that each part has at most `limit` tokens."""
    return cut(text, limit, lambda parts: list(map(len, base.encode(parts))), "" if unspaced(base.source) else " ")


def cut(text: str, limit: int, sizes: Callable[[list[str]], list[int]], space: str, level: int = 0) -> list[str]:
    """Like `split_long` with any measure: `sizes` measures texts (at least 1 per character); `space` joins parts."""
    if sizes([text])[0] <= limit:
        return [text]
    if level == len(BREAKS):
        # A stretch without any break is split by characters. A token has at least one character, so half the limit is safe.
        step = max(1, limit // 2)
        return [text[i : i + step] for i in range(0, len(text), step)]
    parts = [part for part in BREAKS[level].split(text) if part]
    merged: list[str] = []
    used = limit
    for part, size in zip(parts, sizes(parts), strict=True):
        if size > limit:
            merged += cut(part, limit, sizes, space, level + 1)
            used = limit
        elif merged and used + size <= limit:
            merged[-1] += space + part
            used += size
        else:
            merged.append(part)
            used = size
    return merged


def translate(
    base: BaseModel,
    texts: Sequence[str],
    plugin: Adapter | None = None,
    *,
    strength: float = 1.0,
    decoding: Decoding | None = None,
    progress: Progress | None = None,
    terms: Sequence[Term] = (),
) -> list[str]:
    """Translate each text by beam search with the base, customized by `plugin` at `strength` (0: the base exactly).

    Returns one translation per text, in order; an empty text gives an empty one. A text longer than `decoding.longest` tokens
    is split at sentence ends and joined again. With `decoding.guard`, repetitive and overlong translations are searched for
    again and returned as `Flagged`. A translation that lacks one of the `terms` found in its source is rewritten with it
    (`enforce`); methods with a decoding procedure of their own ignore terms. `decoding` defaults to the base's. Raises
    Cancelled between two batches if `progress` is cancelled.
    """
    with metrics.TRANSLATION_SECONDS.time():
        translations = search(base, texts, plugin, strength, decoding or base.decoding(), progress or Progress(), terms)
    metrics.TRANSLATIONS.inc(len(texts))
    metrics.TRANSLATED_CHARACTERS.inc(sum(map(len, texts)))
    return translations


def search(
    base: BaseModel,
    texts: Sequence[str],
    plugin: Adapter | None,
    strength: float,
    decoding: Decoding,
    progress: Progress,
    terms: Sequence[Term] = (),
) -> list[str]:
    """Like `translate` but without updating metrics: for parts of a translation."""
    if plugin is not None and strength and (routes := plugin.routes(base, texts)):
        routed: list[tuple[list[int], list[str]]] = []
        done = 0
        for adapter, places in routes:
            batch, part = [texts[i] for i in places], Part(progress, done, len(texts))
            routed.append((places, search(base, batch, adapter, strength, decoding, part, terms)))
            done += len(places)
        return in_order(routed)
    if plugin is not None:
        translated = plugin.translate(
            base, texts, lambda batch: search(base, batch, None, 1.0, decoding, Progress()), strength, decoding, progress
        )
        if translated is not None:
            return [_looked_at(*pair) for pair in zip(texts, translated, strict=True)] if decoding.guard else translated
    limit = min(base.max_tokens, decoding.longest)
    pieces: list[str] = []
    owners: list[int] = []
    with base.lock:
        clean = [" ".join(text.split()) for text in texts]
        for i, ids in enumerate(base.encode(clean)):
            parts = [clean[i]] if len(ids) <= limit else split_long(base, clean[i], limit)
            pieces += [part for part in parts if part]
            owners += [i for part in parts if part]
        rows = base.encode(pieces)
    with attached(base, plugin, strength):
        beams = Search(base, plugin, strength, rows, owners)
        beams.run(length_batches([len(row) for row in rows], decoding.batch_tokens), decoding, progress)
        if decoding.guard:
            beams.repair(pieces, decoding, progress)
    if terms:
        enforce(beams, pieces, terms, decoding, progress)
    joined: list[list[str]] = [[] for _ in texts]
    for owner, text in zip(owners, beams.texts, strict=True):
        joined[owner].append(text)
    space = "" if unspaced(base.target) else " "
    return [flagged(space.join(parts), [flag_of(part) for part in parts]) for parts in joined]


@contextlib.contextmanager
def attached(base: BaseModel, plugin: Adapter | None, strength: float) -> Iterator[None]:
    """Within the block, the base is locked and translates with the plugin."""
    import torch

    with base.lock, fast_products(base), base.using(plugin, strength), torch.inference_mode():
        yield


class Search:
    """The search of one call over its encoded texts `rows`; `owners` are the indices of the texts they belong to.

    The plugin must be attached.
    """

    def __init__(self, base: BaseModel, plugin: Adapter | None, strength: float, rows: list[list[int]], owners: list[int]) -> None:
        from transformers import LogitsProcessorList

        self.base, self.plugin, self.strength, self.rows, self.owners = base, plugin, strength, rows, owners
        self.adapter = plugin if strength else None
        self.hooks = LogitsProcessorList(plugin.logits_processors(base, strength) if plugin else [])
        self.quick = partial(
            beam_search,
            needs_fixed_batch=self.adapter is not None and self.adapter.needs_fixed_batch,
            batch_beams_per_sentence=self.adapter is None or self.adapter.batches_beams_per_sentence,
            on_batch_shrink=None if self.adapter is None else self.adapter.on_batch_shrink,
        )
        self.texts = [""] * len(rows)
        self.tokens = [0] * len(rows)  # of each translation
        self.fit = HalveOnOom("batch_tokens (a decoding setting)")

    @cached_property
    def pieces(self) -> list[str]:
        """The vocabulary (V,)."""
        return self.base.tokenizer.convert_ids_to_tokens(range(self.base.model.config.vocab_size))

    def run(self, batches: Iterable[list[int]], decoding: Decoding, progress: Progress) -> None:
        """Translate all rows. Raises Cancelled between two batches."""
        done = 0
        progress.advance(0, len(self.rows))
        for batch in batches:
            self.fit.run(batch, partial(self.decode, decoding=decoding))
            done += len(batch)
            progress.advance(done, len(self.rows))

    def decode(self, batch: list[int], decoding: Decoding, begin: Beginning | None = None) -> None:
        """Translate these rows in one batch, or a single row whose translation has a given beginning."""
        arrange = getattr(self.plugin, "arrange", None)  # for a batch whose rows have different plugins
        if arrange is not None:
            batch = [batch[position] for position in arrange([self.owners[i] for i in batch])]
        output = self.generate(batch, decoding, begin)  # (B, T)
        counts = (output != self.base.pad).sum(1).tolist()
        for i, text, count in zip(batch, self.base.decode(output), counts, strict=True):
            self.texts[i], self.tokens[i] = text, count

    def generate(self, batch: list[int], decoding: Decoding, begin: Beginning | None = None, count: int = 1) -> Any:
        """Token ids of the `count` best hypotheses of each row (B * count, T), best first."""
        import torch

        base = self.base
        inputs = base.pad_batch([self.rows[i] for i in batch])  # (B, S)
        if self.adapter is not None:
            self.adapter.set_source(base, inputs)
        # A plugin's processor may keep state per row from step to step; it then needs the library's search.
        by_row = not all(getattr(hook, BY_PREFIX, False) for hook in self.hooks)
        by_library = by_row or decoding.beam == 1
        quick: dict[str, Any] = {} if by_library else {"custom_generate": self.quick}
        if begin is not None:
            start = base.shift_right(torch.tensor([begin.labels], device=inputs.device))  # (1, T)
            quick |= {"decoder_input_ids": start, "begin_suppress_tokens": begin.barred}
        return base.model.generate(
            input_ids=inputs,
            attention_mask=base.mask(inputs),
            num_beams=decoding.beam,
            num_return_sequences=count,
            length_penalty=decoding.length_penalty,
            max_new_tokens=min(base.max_tokens, int(inputs.shape[1] * decoding.max_length_ratio) + ALLOWANCE),
            no_repeat_ngram_size=decoding.no_repeat_ngram,
            forced_bos_token_id=base.family.forced_bos(base.target),
            do_sample=False,
            logits_processor=self.hooks,
            **quick,
        )

    def repair(self, pieces: Sequence[str], decoding: Decoding, progress: Progress) -> None:
        """Search again, with constraints, for repetitive or overlong translations; the better result is kept, with a flag."""
        allowed = [longest_allowed(len(row), decoding.max_length_ratio) for row in self.rows]

        def trouble(i: int) -> Problem | None:
            return problem(pieces[i], self.texts[i], self.tokens[i], allowed[i])

        first = {i: result for i in range(len(pieces)) if (result := trouble(i)) is not None}
        remaining = dict(first)
        for ngram in CONSTRAINTS:
            tighter = decoding.replace(no_repeat_ngram=min(ngram, decoding.no_repeat_ngram or ngram))
            for batch in self._alike(remaining, decoding.batch_tokens):
                progress.check()
                before = {i: (self.texts[i], self.tokens[i]) for i in batch}
                self.fit.run(batch, partial(self.decode, decoding=tighter))
                for i in batch:
                    now = trouble(i) if self.texts[i] else remaining[i]
                    if now is None:
                        del remaining[i]
                    elif now.share < remaining[i].share:
                        remaining[i] = now
                    else:
                        self.texts[i], self.tokens[i] = before[i]
        for i, result in first.items():
            self.texts[i] = Flagged(self.texts[i], remaining[i].kind if i in remaining else f"{result.kind}-repaired")

    def _alike(self, indices: Iterable[int], budget: int) -> list[list[int]]:
        """Batches of rows of equal length, so that each translation's length limit depends only on its source."""
        by_length: dict[int, list[int]] = {}
        for i in indices:
            by_length.setdefault(len(self.rows[i]), []).append(i)
        return [
            [rows[k] for k in batch] for length, rows in by_length.items() for batch in length_batches([length] * len(rows), budget)
        ]


def _looked_at(source: str, translation: str) -> str:
    """Flag a problem in the translation of a method with its own decoding, which cannot be repeated under constraints."""
    result = None if flag_of(translation) else problem(source, translation)
    return translation if result is None else Flagged(translation, result.kind)
