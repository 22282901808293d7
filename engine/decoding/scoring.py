"""Scoring by teacher forcing: the likelihood of a given translation under the base, with or without a plugin."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.base.adapter import Adapter
from engine.base.model import BaseModel
from engine.base.onednn import fast_products
from engine.core.oom import HalveOnOom
from engine.decoding.translate import in_order


def score(
    base: BaseModel, pairs: Sequence[tuple[str, str]], plugin: Adapter | None = None, *, strength: float = 1.0, size: int = 32
) -> list[tuple[float, int]]:
    """Sum of natural log-probabilities and number of target tokens, end of sentence included, of each pair, in order.

    Language codes are excluded: decoding forces them, so they are not the system's choice.
    """
    if plugin is not None and strength:
        plugin.check_likelihood()
        if routes := plugin.routes(base, [source for source, _ in pairs]):
            parts = (
                (places, score(base, [pairs[i] for i in places], adapter, strength=strength, size=size))
                for adapter, places in routes
            )
            return in_order(parts)
    sources = [ids[: base.max_tokens] for ids in base.encode([source for source, _ in pairs])]
    targets = [ids[: base.max_tokens] for ids in base.encode_target([target for _, target in pairs])]
    codes = torch.tensor(sorted(base.family.direction_ids()), device=base.device, dtype=torch.long)  # (C,)
    order = sorted(range(len(pairs)), key=lambda i: len(targets[i]) + len(sources[i]))
    results: list[tuple[float, int]] = [(0.0, 0)] * len(pairs)
    with base.lock, fast_products(base), base.using(plugin, strength), torch.inference_mode():

        def score_some(rows: list[int]) -> None:
            inputs, labels = (
                base.pad_batch([sources[i] for i in rows]),
                base.pad_batch([targets[i] for i in rows]),
            )  # (B, S), (B, T)
            if plugin is not None and strength:
                plugin.set_source(base, inputs)
            logits = base.logits(inputs, labels)  # (B, T, V)
            picked = logits.float().log_softmax(-1).gather(-1, labels[..., None]).squeeze(-1)  # (B, T)
            real = (labels != base.pad) & ~torch.isin(labels, codes)  # (B, T)
            sums, counts = (picked * real).sum(1).tolist(), real.sum(1).tolist()
            for i, total, count in zip(rows, sums, counts, strict=True):
                results[i] = (total, count)

        fit = HalveOnOom("longest (a decoding setting), or take shorter sentences")
        for begin in range(0, len(order), size):
            fit.run(order[begin : begin + size], score_some)
    return results
