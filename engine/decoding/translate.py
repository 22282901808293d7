"""Translating many texts: batches by length, order kept, a line for a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.decoding.beam import beam_search
from engine.decoding.options import Decoding
from engine.decoding.products import fast_products
from engine.errors import InputError
from engine.fitting import Fit
from engine.languages import unspaced
from engine.progress import Progress

if TYPE_CHECKING:
    from engine.base.model import BaseModel
    from engine.plugins import Plugin, PluginStack
    from engine.plugins.mixed import Mixed

__all__ = ["length_batches", "translate"]

# Sentence models are trained on sentences; a line beyond `Decoding.longest` tokens is cut at sentence ends first.
# Where it is cut: at sentence ends; what is too long still, at commas and the like; what is too long still, between words.
BREAKS = (
    re.compile(r"(?<=[。！？；…])|(?<=[.!?;])\s+"),
    re.compile(r"(?<=[，、：])|(?<=[,:])\s+"),
    re.compile(r"\s+"),
)


def length_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices grouped by similar length, longest first, at most `budget` padded tokens a group.

    The longest come first so that a batch too big for the memory fails at once, not after an hour.
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


def split_long(base: BaseModel, text: str, limit: int, level: int = 0) -> list[str]:
    """Cut a text at sentence ends, else clauses, else words, so that each part has at most `limit` tokens."""
    if len(base.encode([text])[0]) <= limit:
        return [text]
    if level == len(BREAKS):
        # A stretch without any break is cut by characters; a token holds one at least, so half the limit is safe.
        step = max(1, limit // 2)
        return [text[i : i + step] for i in range(0, len(text), step)]
    parts = [part for part in BREAKS[level].split(text) if part]
    sizes = [len(ids) for ids in base.encode(parts)]
    space = "" if unspaced(base.source) else " "
    merged: list[str] = []
    room = limit
    for part, size in zip(parts, sizes, strict=True):
        if size > limit:
            merged += split_long(base, part, limit, level + 1)
            room = limit
        elif merged and room + size <= limit:
            merged[-1] += space + part
            room += size
        else:
            merged.append(part)
            room = size
    return merged


def translate(
    base: BaseModel,
    texts: Sequence[str],
    plugin: Plugin | PluginStack | Mixed | Sequence[Plugin | PluginStack | None] | None = None,
    *,
    strength: float = 1.0,
    decoding: Decoding | None = None,
    progress: Progress | None = None,
) -> list[str]:
    """Translate each text by beam search with the base, customized by `plugin` at `strength` (0: the base exactly).

    A sequence of plugins names one for each text. Returns one translation a text, in order; an empty text gives an empty
    one. A text longer than `decoding.longest` is cut at sentence ends and put together
    again. Raises Cancelled when `progress` says so, between two batches.
    """
    import torch
    from transformers import LogitsProcessorList

    from engine.plugins.mixed import Mixed

    decoding = decoding or Decoding()
    progress = progress or Progress()
    if isinstance(plugin, Sequence):
        return by_plugin(base, texts, plugin, strength, decoding, progress)
    if plugin is not None:
        own = plugin.translate(
            base, texts, lambda some: translate(base, some, decoding=decoding), strength, decoding, progress
        )
        if own is not None:
            return own
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
    done = 0
    results = [""] * len(pieces)
    progress.advance(0, len(pieces))
    acting = plugin if strength else None
    search = partial(
        beam_search,
        fixed_rows=acting is not None and acting.fixed_rows,
        share_source=acting is None or acting.shares_source,
        stay=getattr(acting, "stay", None),
    )
    with base.using(plugin, strength), torch.inference_mode(), fast_products(base):
        hooks = LogitsProcessorList(plugin.logits_processors(base, strength) if plugin else [])
        # Processors of a plugin may keep what belongs to a row from step to step: there the library's own search.
        quick: dict[str, Any] = {} if hooks or decoding.beam == 1 else {"custom_generate": search}

        def decode(batch: list[int]) -> None:
            if isinstance(plugin, Mixed):
                batch = [batch[place] for place in plugin.arrange([owners[i] for i in batch])]
            inputs = base.pad_batch([rows[i] for i in batch])  # (B, S)
            if plugin and strength:
                plugin.see(base, inputs)
            output = base.model.generate(
                input_ids=inputs,
                attention_mask=(inputs != base.pad).long(),
                num_beams=decoding.beam,
                length_penalty=decoding.length_penalty,
                max_new_tokens=min(base.max_tokens, int(inputs.shape[1] * decoding.max_length_ratio) + 8),
                no_repeat_ngram_size=decoding.no_repeat_ngram,
                forced_bos_token_id=base.family.forced_bos(base.target),
                do_sample=False,
                logits_processor=hooks,
                **quick,
            )  # (B, T)
            for i, text in zip(batch, base.decode(output), strict=True):
                results[i] = text

        fit = Fit("batch_tokens (a decoding setting)")
        for batch in length_batches([len(row) for row in rows], decoding.batch_tokens):
            fit.each(batch, decode)
            done += len(batch)
            progress.advance(done, len(pieces))
    joined: list[list[str]] = [[] for _ in texts]
    for owner, text in zip(owners, results, strict=True):
        joined[owner].append(text)
    space = "" if unspaced(base.target) else " "
    return [space.join(parts) for parts in joined]


def by_plugin(
    base: BaseModel, texts: Sequence[str], plugins: Sequence[Plugin | PluginStack | None], strength: float,
    decoding: Decoding, progress: Progress,
) -> list[str]:  # fmt: skip
    """Translate texts of which each names its plugin: in common batches where plugins work in the base's layers alone, each on
    its rows; else those of one plugin together.
    """
    from engine.plugins.mixed import Mixed

    if len(plugins) != len(texts):
        raise InputError(f"{len(plugins)} plugins were given for {len(texts)} texts. Give one for each.")
    mixed = Mixed.of(base, plugins, strength)
    if mixed is not None:
        return translate(base, texts, mixed, strength=strength, decoding=decoding, progress=progress)
    groups: dict[int, list[int]] = {}
    for i, plugin in enumerate(plugins):
        groups.setdefault(id(plugin), []).append(i)
    results = [""] * len(texts)
    done = 0
    for rows in groups.values():
        progress.advance(done, len(texts))
        found = translate(base, [texts[i] for i in rows], plugins[rows[0]], strength=strength, decoding=decoding)
        for i, text in zip(rows, found, strict=True):
            results[i] = text
        done += len(rows)
    progress.advance(done, len(texts))
    return results
