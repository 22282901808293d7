"""Greedy decoding for back-translation: one hypothesis, finished sentences leave the batch, bfloat16 where it is fast.

There are thousands of synthetic sources, and they need to be plain rather than optimal. Greedy decoding with a shrinking batch
costs a fraction of beam search, where one overlong sentence keeps the whole batch waiting.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from engine.base.model import BaseModel
from engine.base.precision import quick_arithmetic
from engine.core.languages import unspaced
from engine.core.oom import HalveOnOom
from engine.core.progress import Progress
from engine.decoding.translate import length_batches, split_long

if TYPE_CHECKING:
    from torch import nn


# Long sentences are translated clause by clause: a weak model repeats itself on them, and an adapter trained on such sources
# learns to repeat itself (bench/README.md).
CLAUSE = 16  # tokens


def longest(row: Sequence[int]) -> int:
    """The maximum number of tokens in the translation of these source tokens."""
    return int(len(row) * 1.6) + 8


def back_translate(
    base: BaseModel, texts: Sequence[str], *, clause_tokens: int = CLAUSE, progress: Progress | None = None
) -> list[str]:
    """The base's greedy translation of each text, in order; texts longer than the base's maximum length are truncated.

    A translation ends at `longest` of its source: longer output of a weak model is repetition. A text longer than
    `clause_tokens` is split at sentence ends and commas, translated in parts and joined. Raises Cancelled between two steps if
    `progress` is cancelled.
    """
    import torch

    progress = progress or Progress()
    clean = [" ".join(text.split()) for text in texts]
    limit = min(clause_tokens, base.max_tokens)
    clauses = [
        [text] if len(ids) <= limit else [part for part in split_long(base, text, limit) if part.strip()]
        for text, ids in zip(clean, base.encode(clean), strict=True)
    ]
    rows = [ids[: base.max_tokens] for ids in base.encode([part for parts in clauses for part in parts])]
    outputs: list[list[int]] = [[] for _ in rows]
    done = 0
    with base.using(None), torch.inference_mode(), quick_arithmetic(base):

        def decode(batch: list[int]) -> None:
            limits = [longest(rows[i]) for i in batch]
            for i, ids in zip(batch, greedy_batch(base, [rows[i] for i in batch], limits, progress), strict=True):
                outputs[i] = ids

        fit = HalveOnOom("batch_tokens")
        for batch in length_batches([len(row) for row in rows], base.batch_tokens):
            fit.run(batch, decode)
            done += len(batch)
            progress.advance(done * len(texts) // len(rows), len(texts))
    progress.advance(len(texts), len(texts))
    translated: Iterator[str] = iter(base.decode(outputs))
    translations = [join_clauses(parts, [next(translated) for _ in parts], base.target) for parts in clauses]
    return [text if source.strip() else "" for source, text in zip(texts, translations, strict=True)]


def bare_translations(base: BaseModel, rows: Sequence[Sequence[int]]) -> list[str]:
    """Greedy translations of token ids (S,) by the base without the plugins currently attached to it."""
    import torch

    limits = list(map(longest, rows))
    with torch.inference_mode(), unhooked(base.model):
        return base.decode(greedy_batch(base, rows, limits, Progress()))


@contextlib.contextmanager
def unhooked(model: nn.Module) -> Iterator[None]:
    """Disable all forward hooks within the block: hooks of other calls expect the rows of their batch."""
    names = ("_forward_hooks", "_forward_pre_hooks")
    saved = [(module, name, getattr(module, name)) for module in model.modules() for name in names]
    saved = [(module, name, hooks) for module, name, hooks in saved if hooks]
    try:
        for module, name, hooks in saved:
            setattr(module, name, type(hooks)())
        yield
    finally:
        for module, name, hooks in saved:
            setattr(module, name, hooks)


def join_clauses(sources: Sequence[str], translations: Sequence[str], target: str) -> str:
    """Join the translations of clauses into one sentence; a full stop that the clause's source lacks becomes a comma."""
    solid = unspaced(target)
    joined: list[str] = []
    ended = True  # the previous part ended a sentence
    for i, (source, translation) in enumerate(zip(sources, translations, strict=True)):
        text = translation
        starts, ended = ended, source.rstrip()[-1:] in "。！？.!?"
        if not ended and i < len(translations) - 1:
            text = re.sub(r"[.。]$", "，" if solid else ",", text)
        if not starts and not text.startswith(("I ", "I'")):
            text = text[:1].lower() + text[1:]
        joined.append(text)
    return ("" if solid else " ").join(joined)


def greedy_batch(base: BaseModel, rows: Sequence[Sequence[int]], limits: Sequence[int], progress: Progress) -> list[list[int]]:
    """Decode one batch; returns the output ids of every row."""
    import torch

    from engine.decoding.decoder import Decoder

    config = base.model.config
    inputs = base.pad_batch(rows)  # (B, S)
    decoder = Decoder(base.model, base.encoder_states(inputs), base.mask(inputs), batch_beams_per_sentence=True)
    forced = base.family.forced_bos(base.target)
    start = config.decoder_start_token_id
    active = torch.arange(len(rows), device=base.device)  # (b,) positions of unfinished rows
    first = start if start is not None else forced or 0
    token = torch.full((len(rows), 1), first, device=base.device)  # (b, 1)
    caps = torch.tensor(limits, device=base.device)  # (b,)
    outputs: list[list[int]] = [[] for _ in rows]
    banned = torch.tensor([base.pad], device=base.device)  # (1,)
    for step in range(min(max(limits), base.max_tokens)):
        progress.check()
        logits = decoder(token, step)  # (b, V)
        logits = logits.index_fill(1, banned, float("-inf"))  # (b, V)
        chosen = logits.argmax(-1)  # (b,)
        if step == 0 and forced is not None and start is not None:
            chosen = torch.full_like(chosen, forced)  # (b,)
        for position, word in zip(active.tolist(), chosen.tolist(), strict=True):
            outputs[position].append(word)
        unfinished = (chosen != config.eos_token_id) & (caps > step + 1)  # (b,)
        if not bool(unfinished.any()):
            break
        token = chosen[:, None]  # (b, 1)
        # Copying the caches has a cost, so rows leave in groups.
        if int(unfinished.sum()) <= 0.85 * len(active):
            keep = unfinished.nonzero().squeeze(1)  # (b',)
            decoder.reorder(keep, keep)
            active, token, caps = active[keep], token[keep], caps[keep]  # (b',), (b', 1), (b',)
    return [trim(ids, config.eos_token_id) for ids in outputs]


def trim(ids: list[int], end: int) -> list[int]:
    """Ids up to the end of sentence: a finished row generates further tokens while it waits for its group."""
    return ids[: ids.index(end)] if end in ids else ids
