"""Which found sentences each token of a translation attended to, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.methods.interface import Method
    from engine.methods.ngram_memory.module import NgramMemoryModule


def reads(
    method: Method, base: BaseModel, module: NgramMemoryModule, source: str, translation: str, top: int
) -> list[dict[str, object]]:
    """For each target token and decoder layer: the gate's share of the base, and the `top` found pairs with the attention
    that their tokens got together (a mean over heads). The module is attached.
    """
    import torch

    sources, labels = base.pad_batch(base.encode([source])), base.pad_batch(base.label([translation]))  # (1, S), (1, T)
    tokens = base.tokenizer.convert_ids_to_tokens(labels[0].tolist())
    try:
        for _, gated in module.gates():
            gated.seen = {}
        with torch.inference_mode():
            method.see(base, module, sources)
            base.model(input_ids=sources, decoder_input_ids=base.shift_right(labels), use_cache=False)
        if module.retrieved is None:
            return []
        owners = module.retrieved.owners[0].tolist()  # all places are tokens: there is one row
        numbers = list(dict.fromkeys(owners))
        where = torch.tensor([numbers.index(owner) for owner in owners], device=base.device)  # (K,)
        rows = []
        for position, token in enumerate(tokens):
            for layer, gated in module.gates():
                if not gated.seen:
                    continue
                weights = gated.seen["weights"][0, position, : len(owners)].float()  # (K,)
                shares = weights.new_zeros(len(numbers)).index_add(0, where, weights).tolist()
                best = sorted(range(len(numbers)), key=lambda i: -shares[i])[:top]
                items = [
                    {
                        "text": module.pairs[numbers[i]].target,
                        "source": module.pairs[numbers[i]].source,
                        "weight": shares[i],
                        "row": numbers[i],
                    }
                    for i in best
                ]
                gate = float(gated.seen["gate"][0, position])
                rows.append(
                    {"position": position, "token": token, "layer": layer, "place": "encoder_attn", "gate": gate, "items": items}
                )  # fmt: skip
        return rows
    finally:
        for _, gated in module.gates():
            gated.seen = None
