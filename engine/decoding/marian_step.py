"""One token through a Marian decoder, without the generality of transformers' forward (masks, records, argument checks).

That generality took two thirds of a step's time at batch size 1 (docs/performance.md). Plugins hook into modules. A hooked
module is called as usual and receives what transformers would pass; everything between hooked modules is computed here. If the
decoder or a whole layer is hooked, there is no `MarianStep`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from engine.base.cache_argument import cache_argument
from engine.base.onednn import joined

if TYPE_CHECKING:
    from transformers import EncoderDecoderCache


def hooked(module: nn.Module) -> bool:
    """Whether hooks run before or after the module's forward, as plugins' do."""
    return bool(module._forward_hooks or module._forward_pre_hooks)


def observer(hook: Callable[..., None]) -> Callable[..., None]:
    """Mark a forward pre-hook of the decoder (registered `with_kwargs`) that reads ids and cache and changes nothing."""
    hook.observes = True  # type: ignore[attr-defined]
    return hook


def observes(hook: Callable[..., Any]) -> bool:
    """Whether the hook is marked by `observer`."""
    return getattr(hook, "observes", False)


def direct(module: nn.Module) -> Callable[..., Any]:
    """The module's forward if it has no hooks, which skips torch's check for them; otherwise the module."""
    return module if hooked(module) else module.forward


@dataclass
class Source:
    """The encoded sources that the hypotheses read."""

    encoded: Tensor  # (R, S, d), or (n, S, d) if no hook reads it
    mask: Tensor | None  # (n, 1, 1, S) true at tokens; None where there is no padding
    rows: int  # n, the number of rows of the cached keys and values

    @classmethod
    def of(cls, encoded: Tensor, mask: Tensor, beams: int) -> Source:
        """For states (R, S, d) and mask (R, S); each `beams` rows share keys and values."""
        mask = mask[::beams].bool()  # (n, S)
        return cls(encoded, None if bool(mask.all()) else mask[:, None, None], len(mask))


class MarianStep:
    """The decoder's states after one more token; `MarianStep.of` returns None for unsupported models."""

    def __init__(self, model: Any) -> None:
        decoder = model.get_decoder()
        self.observers = [partial(hook, decoder) for hook in decoder._forward_pre_hooks.values()]
        self.embed, self.scale = decoder.embed_tokens, decoder.embed_scale
        self.positions = decoder.embed_positions.weight  # (P, d)
        self.layers = [_Layer(layer) for layer in decoder.layers]

    @classmethod
    def of(cls, model: Any) -> MarianStep | None:
        """For a Marian model in evaluation mode with PyTorch's attention, hooked only within layers or by observers; else None."""
        if type(model).__name__ != "MarianMTModel" or model.training or model.config._attn_implementation != "sdpa":
            return None
        decoder = model.get_decoder()
        modules = [model, model.model, decoder.embed_tokens, decoder.embed_positions, *decoder.layers]
        changed = any(hooked(module) or "forward" in module.__dict__ for module in modules) or decoder._forward_hooks
        return None if changed or not all(map(observes, decoder._forward_pre_hooks.values())) else cls(model)

    def __call__(self, token: Tensor, source: Source, cache: EncoderDecoderCache, past: int) -> Tensor:
        """States (R, 1, d) after the tokens (R, 1) that follow `past` earlier ones."""
        for look in self.observers:
            look((), {"input_ids": token, self.layers[0].prefix.named: cache, "use_cache": True})
        states = self.embed(token) * self.scale + self.positions[past]  # (R, 1, d)
        for number, layer in enumerate(self.layers):
            states = layer(states, source, cache, number)  # (R, 1, d)
        return states


class _Layer:
    def __init__(self, layer: Any) -> None:
        self.prefix, self.source = _Attention(layer.self_attn), _Attention(layer.encoder_attn)
        self.norms = [direct(norm) for norm in (layer.self_attn_layer_norm, layer.encoder_attn_layer_norm, layer.final_layer_norm)]
        self.first, self.activation, self.second = direct(layer.fc1), layer.activation_fn, direct(layer.fc2)

    def __call__(self, x: Tensor, source: Source, cache: EncoderDecoderCache, number: int) -> Tensor:
        x = self.norms[0](x + self.prefix.over_prefix(x, cache, number))  # (R, 1, d)
        x = self.norms[1](x + self.source.over_source(x, source, cache, number))  # (R, 1, d)
        return self.norms[2](x + self.second(self.activation(self.first(x))))  # (R, 1, d)


class _Attention:
    def __init__(self, module: Any) -> None:
        self.module, self.hooked = module, hooked(module)
        self.heads, self.scaling = module.num_heads, module.scaling
        self.named = cache_argument(module)
        self.maps = [direct(linear) for linear in (module.q_proj, module.k_proj, module.v_proj)]
        plain = not any(map(hooked, (module.q_proj, module.k_proj, module.v_proj)))
        self.joined = joined((module.q_proj, module.k_proj, module.v_proj)) if plain else None
        self.out = direct(module.out_proj)

    def over_prefix(self, x: Tensor, cache: EncoderDecoderCache, number: int) -> Tensor:
        """Self-attention output (R, 1, d) for states (R, 1, d)."""
        if self.hooked:
            return self.module(x, attention_mask=None, **{self.named: cache})[0]
        if self.joined is not None:
            queries, keys, values = self.joined(x).chunk(3, -1)  # (R, 1, d)
        else:
            queries, keys, values = (linear(x) for linear in self.maps)  # (R, 1, d)
        keys, values = cache.self_attention_cache.layers[number].append(keys, values, self.heads)  # (R, H, T, h)
        return self._attend(queries, keys, values, None)  # (R, 1, d)

    def over_source(self, x: Tensor, source: Source, cache: EncoderDecoderCache, number: int) -> Tensor:
        """Cross-attention output (R, 1, d) for states (R, 1, d)."""
        if self.hooked:
            return self._called(x, source, cache)
        if not cache.is_updated.get(number):
            keys, values = (linear(source.encoded) for linear in self.maps[1:])  # (n, S, d)
            shape = (*keys.shape[:2], self.heads, -1)
            cache.cross_attention_cache.update(
                keys.view(shape).transpose(1, 2), values.view(shape).transpose(1, 2), number  # (n, H, S, h)
            )  # fmt: skip
            cache.is_updated[number] = True
        layer = cache.cross_attention_cache.layers[number]
        queries = self.maps[0](x).view(source.rows, -1, x.shape[-1])  # (n, K, d) hypotheses of a sentence are its queries
        return self._attend(queries, layer.keys, layer.values, source.mask).view(x.shape)  # (R, 1, d)

    def _called(self, x: Tensor, source: Source, cache: EncoderDecoderCache) -> Tensor:
        mask = source.mask
        if mask is not None and len(mask) != len(x):
            mask = mask.repeat_interleave(len(x) // len(mask), 0)  # (R, 1, 1, S)
        return self.module(x, key_value_states=source.encoded, attention_mask=mask, **{self.named: cache})[0]

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Attention output (n, K, d) of queries (n, K, d) over keys and values (n, H, T, h)."""
        n, k, d = queries.shape
        heads = queries.view(n, k, self.heads, -1).transpose(1, 2)  # (n, H, K, h)
        read = scaled_dot_product_attention(heads, keys, values, mask, scale=self.scaling)  # (n, H, K, h)
        return self.out(read.transpose(1, 2).reshape(n, k, d))  # (n, K, d)
