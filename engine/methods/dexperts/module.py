"""Two small language models over the base's target vocabulary, and the difference of their logits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.base import BaseModel
from engine.base.cache_argument import cache_argument
from engine.errors import OptionError
from engine.methods.dexperts.config import DExpertsConfig

STD = 0.02  # of untrained GPT-2 embeddings


class LanguageModel(nn.Module):
    """A GPT-2 with tied input and output embeddings that reads the same inputs as the base's decoder."""

    def __init__(self, words: int, positions: int, hidden: int, heads: int, config: DExpertsConfig) -> None:
        super().__init__()
        from transformers import GPT2Config, GPT2Model

        shape = GPT2Config(
            vocab_size=words, n_positions=positions, n_embd=hidden, n_layer=config.layers, n_head=heads,
            resid_pdrop=config.dropout, embd_pdrop=config.dropout, attn_pdrop=config.dropout,
            bos_token_id=None, eos_token_id=None, pad_token_id=None,
        )  # fmt: skip
        self.network = GPT2Model(shape)
        self.named = cache_argument(self.network)

    def states(self, inputs: Tensor, cache: Any = None) -> Tensor:
        """Hidden states (B, T, h) of decoder inputs (B, T), which continue the cached tokens if a cache is given."""
        result = self.network(input_ids=inputs, use_cache=cache is not None, **{self.named: cache})
        return result.last_hidden_state  # (B, T, h)

    def logits(self, states: Tensor) -> Tensor:
        return F.linear(states, self.network.wte.weight)  # (..., V)


@dataclass
class PrefixCache:
    """The models' caches for the prefixes of the last decoding step, so that each step processes only one token."""

    rows: dict[tuple[int, ...], int] = field(default_factory=dict)  # {prefix: its row in the caches}
    caches: list[Any] = field(default_factory=list)


class DExpertsModule(nn.Module):
    """Expert and anti-expert. Both are initialised with the same weights, so that the untrained difference is zero."""

    def __init__(self, base: BaseModel, config: DExpertsConfig) -> None:
        super().__init__()
        self.config = config
        self.strength = 1.0  # set by `attach`
        output = base.model.get_output_embeddings().weight  # (V, d)
        hidden = config.hidden or base.d_model
        heads = config.heads or max(1, hidden // 64)
        if hidden % heads:
            raise OptionError(
                "heads: a hidden size of {hidden} cannot be shared by {heads} heads. Specify a divisor of it.",
                hidden=hidden,
                heads=heads,
            )
        shape = (len(output), base.max_tokens + 2, hidden, heads, config)
        self.expert, self.anti = LanguageModel(*shape), LanguageModel(*shape)
        if hidden == output.shape[1]:
            with torch.no_grad():
                embeddings = output.float()  # (V, d)
                self.expert.network.wte.weight.copy_(embeddings * (STD / embeddings.std()))  # (V, d)
        self.anti.load_state_dict(self.expert.state_dict())

    def difference(self, inputs: Tensor, real: Tensor | None = None) -> Tensor:
        """z⁺ - z⁻ (B, T, V) at all positions of decoder inputs (B, T), or (M, V) where `real` (B, T) is true."""
        states = [model.states(inputs) for model in (self.expert, self.anti)]  # (B, T, h) each
        if real is not None:
            states = [state[real] for state in states]  # (M, h) each
        return self.expert.logits(states[0]) - self.anti.logits(states[1])  # (B, T, V) or (M, V)

    def next_difference(self, prefixes: Tensor, memory: PrefixCache) -> Tensor:
        """z⁺ - z⁻ (R, V) after each prefix (R, t). Rows may be reordered, repeated or missing compared with the last step."""
        from transformers import DynamicCache

        rows = prefixes.tolist()
        cached_rows = [memory.rows.get(tuple(row[:-1])) for row in rows]
        if memory.caches and all(row is not None for row in cached_rows):
            chosen = torch.tensor(cached_rows, device=prefixes.device)  # (R,)
            for cache in memory.caches:
                cache.batch_select_indices(chosen)
            inputs = prefixes[:, -1:]  # (R, 1)
        else:
            memory.caches = [DynamicCache(), DynamicCache()]
            inputs = prefixes  # (R, t)
        memory.rows = {tuple(row): number for number, row in enumerate(rows)}
        last = [
            model.logits(model.states(inputs, cache)[:, -1])  # (R, V)
            for model, cache in zip((self.expert, self.anti), memory.caches, strict=True)
        ]
        return last[0] - last[1]  # (R, V)
