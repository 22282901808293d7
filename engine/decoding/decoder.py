"""A model's decoder during a search, token by token: its caches, sources and active hypotheses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from engine.base.cache_argument import cache_argument
from engine.decoding.beam_cache import search_cache
from engine.decoding.marian_step import MarianStep, Source, hooked


class Decoder:
    """The decoder with its caches, sources (b, S, d) and their mask (b, S)."""

    def __init__(self, model: Any, encoded: Tensor, mask: Tensor, batch_beams_per_sentence: bool) -> None:
        self.model, self.encoded, self.mask = model, encoded, mask
        self.step = MarianStep.of(model)
        bias = getattr(model, "final_logits_bias", None)
        self.bias = bias if bias is not None and bool(bias.any()) else None  # (1, V)
        self.cache, self.named = search_cache(len(model.get_decoder().layers)), cache_argument(model)
        self.readers = source_attention(model) if batch_beams_per_sentence else []
        # Hooked modules and the model's forward need a copy of the source for each hypothesis.
        self.hooked = self.readers if self.step is None else [module for module in self.readers if hooked(module)]
        self.by_row = self.step is None or bool(self.hooked) or not self.readers
        self.beams = 1
        self.source: Source | None = None
        self.stack = contextlib.ExitStack()

    def __call__(self, token: Tensor, past: int) -> Tensor:
        """Logits (R, V) of the next token after the tokens (R, L), which follow `past` earlier ones."""
        if self.step is None or token.shape[1] > 1:
            output = self.model(
                decoder_input_ids=token,
                encoder_outputs=BaseModelOutput(last_hidden_state=self.encoded),
                attention_mask=self.mask,
                **{self.named: self.cache},
                use_cache=True,
                return_dict=True,
            )
            return output.logits[:, -1].float()  # (R, V)
        if self.source is None:
            self.source = Source.of(self.encoded, self.mask, self.beams if self.hooked else 1)
        states = self.step(token, self.source, self.cache, past)  # (R, 1, d)
        logits = self.model.lm_head(states)[:, 0].float()  # (R, V)
        return logits if self.bias is None else logits + self.bias  # (R, V)

    def widen(self, beams: int) -> None:
        """Continue with this many hypotheses per sentence."""
        self.beams, self.source = beams, None
        if self.by_row:
            self.encoded, self.mask = self.encoded.repeat_interleave(beams, 0), self.mask.repeat_interleave(beams, 0)
        if not self.readers:
            self.cache.cross_attention_cache.batch_repeat_interleave(beams)
        elif self.hooked:
            self.stack.enter_context(by_sentence(self.hooked, beams))

    def reorder(self, rows: Tensor, remaining: Tensor | None) -> None:
        """Keep the hypotheses (R,), given by their previous rows; `remaining` (b,) are the remaining sentences if any have left."""
        self.cache.self_attention_cache.batch_select_indices(rows)
        if remaining is None:
            return
        wide = (remaining[:, None] * self.beams + torch.arange(self.beams, device=remaining.device)).flatten()  # (R,)
        keep = wide if self.by_row else remaining
        self.encoded, self.mask, self.source = self.encoded[keep], self.mask[keep], None  # (R or b, S, d), (R or b, S)
        self.cache.cross_attention_cache.batch_select_indices(remaining if self.readers else wide)


def source_attention(model: Any) -> list[nn.Module]:
    """The decoder's cross-attention modules, one per layer; empty if a layer has none under the usual name."""
    results = [getattr(layer, "encoder_attn", None) for layer in getattr(model.get_decoder(), "layers", ())]
    return [] if None in results else [module for module in results if module is not None]


@contextlib.contextmanager
def by_sentence(readers: list[nn.Module], beams: int) -> Iterator[None]:
    """Within the block, the modules receive the hypotheses of a sentence, rows (b * K, 1, d), as its queries (b, K, d).

    Keys, values and mask need no copies then. Hooks of plugins, registered earlier, receive queries and output as (b, K, d).
    """

    def gather(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        states = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]  # (b * K, 1, d)
        queries = states.reshape(-1, beams, states.shape[-1])  # (b, K, d)
        changed = dict(kwargs)
        if changed.get("attention_mask") is not None:
            changed["attention_mask"] = changed["attention_mask"][::beams]  # (b, 1, 1, S)
        if "hidden_states" in kwargs:
            changed["hidden_states"] = queries
            return args, changed
        return (queries, *args[1:]), changed

    def scatter(module: nn.Module, args: Any, output: Any) -> Any:
        states = output[0]  # (b, K, d)
        return (states.reshape(-1, 1, states.shape[-1]), *output[1:])  # (b * K, 1, d)

    handles = [module.register_forward_pre_hook(gather, with_kwargs=True) for module in readers]
    handles += [module.register_forward_hook(scatter) for module in readers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
