"""Which sentences of the memory each token of a translation drew on, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.methods.interface import Method
    from engine.methods.translation_memory.module import TranslationMemoryModule


def reads(
    method: Method, base: BaseModel, module: TranslationMemoryModule, source: str, translation: str, top: int
) -> list[dict[str, object]]:
    """For each target token: the share of the base's own distribution (1 - λ), and the `top` found sentences with the
    attention that their tokens got together and their relevance f. The module is attached.
    """
    import torch

    sources, labels = base.pad_batch(base.encode([source])), base.pad_batch(base.label([translation]))  # (1, S), (1, T)
    tokens = base.tokenizer.convert_ids_to_tokens(labels[0].tolist())
    with torch.inference_mode():
        method.see(base, module, sources)
        base.model(input_ids=sources, decoder_input_ids=base.shift_right(labels), use_cache=False)
    result = module.retrieved
    if result is None or result.alpha is None or result.copying is None:
        return []
    owners = result.owners[0].tolist()  # all places are tokens: there is one row
    relevance = dict(zip(owners, result.relevance[0].float().tolist(), strict=True))
    numbers = list(relevance)
    where = torch.tensor([numbers.index(owner) for owner in owners], device=base.device)  # (K,)
    rows = []
    for position, token in enumerate(tokens):
        shares = torch.zeros(len(numbers), device=base.device).index_add(0, where, result.alpha[0, position]).tolist()
        items = [
            {
                "text": module.pairs[numbers[i]].target,
                "source": module.pairs[numbers[i]].source,
                "weight": shares[i],
                "relevance": relevance[numbers[i]],
                "row": numbers[i],
            }
            for i in sorted(range(len(numbers)), key=lambda i: -shares[i])[:top]
        ]
        gate = 1 - float(result.copying[0, position])
        rows.append(
            {"position": position, "token": token, "layer": -1, "place": "output", "gate": gate, "items": items}
        )
    return rows
