"""The domain proportions of each token of a translation under a trained plugin, as plain data."""

from __future__ import annotations

import torch

from engine.base import BaseModel
from engine.methods.domain_mixing.module import MixingModule
from engine.methods.domain_mixing.states import real_tokens, run
from engine.methods.reading import encode_pair, row


def attributions(base: BaseModel, module: MixingModule, source: str, translation: str, top: int) -> list[dict[str, object]]:
    """A row per token and decoder layer; the module must be attached. `gate` is 1: the base's linear maps contribute fully.

    The end-of-sentence token has no row, since it is never an input of the decoder.
    """
    sources, labels, _ = encode_pair(base, source, translation)
    with torch.no_grad():
        _, (side, ids, states) = run(base, sources, labels)
        model = module.proportion_model()
        shares = model.proportions(side, [state[0] for state in states])  # (T, P, k)
    tokens = base.tokenizer.convert_ids_to_tokens(ids[0].tolist())
    real = real_tokens(base, ids)[0].tolist()  # (T,)
    rows = []
    for position in range(1, len(tokens)):
        if not real[position]:
            continue
        for layer, values in enumerate(shares[position].tolist()):
            ranked = sorted(zip(values, module.domains, strict=True), key=lambda pair: -pair[0])[:top]
            items: list[dict[str, object]] = [{"text": name, "source": "", "weight": weight} for weight, name in ranked]
            # Position of the token among the labels, which are the inputs shifted by one.
            rows.append(row(position - 1, tokens[position], layer, "decoder", 1.0, items))
    return rows
