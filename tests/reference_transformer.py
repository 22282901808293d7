"""A slow, plain Transformer in float64, for one sentence pair, on the weights of a base: what methods are tested against.

Each layer is written out from Vaswani et al. (2017), post-norm (Marian) or pre-norm (M2M100), and shows its states to two
functions on the way, which may change them: `change(side, layer, place, states)` at the output of `self_attn`,
`encoder_attn`, `feed_forward`, of the feed-forward's `hidden` layer and of the whole `layer`, and
`normal(side, layer, name, states)` in place of a layer norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tests.bases import EN_ZH, tiny_base

if TYPE_CHECKING:
    from engine.base import BaseModel

__all__ = ["FAMILIES", "PAIR", "double_base", "family_base", "hidden_states", "layer_norm", "reference", "scattered", "tokens"]

FAMILIES = ("marian", "m2m100")
PAIR = ("The old teahouse by the river closed.", "河边的老茶馆关了门。")
Change = Callable[[str, int, str, Tensor], Tensor]


def m2m100_base(layers: int = 2, d: int = 32) -> BaseModel:
    """An untrained pre-norm base: M2M100's own class, with the bundled tokenizer."""
    from transformers import AutoTokenizer, M2M100Config, M2M100ForConditionalGeneration

    from engine.base import BaseModel
    from engine.base.families import family_of

    tokenizer = AutoTokenizer.from_pretrained(EN_ZH)
    positions = len(tokenizer) + 128  # they are counted from the padding's id, which is the vocabulary's last here
    config = M2M100Config(
        vocab_size=len(tokenizer), d_model=d, encoder_layers=2, decoder_layers=layers, encoder_ffn_dim=2 * d,
        decoder_ffn_dim=2 * d, encoder_attention_heads=2, decoder_attention_heads=2, dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, encoder_layerdrop=0.0, decoder_layerdrop=0.0, max_position_embeddings=positions, init_std=0.15,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=0, eos_token_id=0, decoder_start_token_id=tokenizer.pad_token_id,
        scale_embedding=True,
    )  # fmt: skip
    torch.manual_seed(0)
    model = M2M100ForConditionalGeneration(config)
    model.requires_grad_(False).eval()
    family = family_of("marian", tokenizer, "tiny")
    return BaseModel(model, tokenizer, family, source="en", target="zh", folder=Path("tiny"))


def family_base(family: str) -> BaseModel:
    return tiny_base(layers=2) if family == "marian" else m2m100_base()


def double_base(family: str) -> BaseModel:
    """A small base in float64 whose layer norms and biases are not the trivial ones of a fresh model."""
    base = family_base(family)
    base.model.double()
    torch.manual_seed(7)
    with torch.no_grad():
        for name, parameter in base.model.named_parameters():
            if "layer_norm" in name or name.endswith(".bias"):
                parameter.add_(0.2 * torch.randn_like(parameter))
    return base


def scattered(module: Any, size: float = 0.3) -> Any:
    """The module in float64 with random weights everywhere, as if trained; in evaluation."""
    torch.manual_seed(11)
    module.double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(size * torch.randn_like(parameter))
    return module


def tokens(base: BaseModel) -> tuple[Tensor, Tensor]:
    """Source tokens (1, S) and decoder input (1, T) of the pair."""
    return base.pad_batch(base.encode([PAIR[0]])), base.shift_right(base.pad_batch(base.encode_target([PAIR[1]])))


def hidden_states(base: BaseModel) -> Tensor:
    """The decoder's last states (T, d) for the pair, by the base's own code as it is attached now."""
    sources, inputs = tokens(base)
    with torch.no_grad():
        encoded = base.model.get_encoder()(input_ids=sources).last_hidden_state  # (1, S, d)
        result = base.model.get_decoder()(input_ids=inputs, encoder_hidden_states=encoded, use_cache=False)
    return result.last_hidden_state[0]  # (T, d)


def layer_norm(states: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + ε) · γ + β, row by row."""
    rows = []
    for row in states:
        mean = sum(row) / len(row)
        variance = sum((row - mean) ** 2) / len(row)
        rows.append((row - mean) / math.sqrt(variance + eps) * weight + bias)
    return torch.stack(rows)  # (T, d)


def attention(module: Any, states: Tensor, memory: Tensor, causal: bool) -> Tensor:
    """Multi-head attention of states (T, d) over a memory (S, d)."""
    q, k, v = (linear(getattr(module, f"{name}_proj"), x) for name, x in (("q", states), ("k", memory), ("v", memory)))
    size = len(q[0]) // module.num_heads
    heads = []
    for h in range(module.num_heads):
        part = slice(h * size, (h + 1) * size)
        scores = q[:, part] @ k[:, part].T / math.sqrt(size)  # (T, S)
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)  # (T, T)
        heads.append(torch.softmax(scores, -1) @ v[:, part])  # (T, d / H)
    return linear(module.out_proj, torch.cat(heads, -1))  # (T, d)


def linear(module: Any, states: Tensor) -> Tensor:
    return states @ module.weight.T + module.bias


def one_layer(
    at: tuple[str, int], layer: Any, x: Tensor, encoded: Tensor | None, pre_norm: bool, change: Change, normal: Change | None
) -> Tensor:
    """One layer of the encoder, or of the decoder where there is an encoder's output, on states (T, d)."""

    def norm(name: str, states: Tensor) -> Tensor:
        if normal is not None:
            return normal(*at, name, states)
        module = getattr(layer, name)
        return layer_norm(states, module.weight, module.bias)

    def sub_layer(position: str, states: Tensor) -> Tensor:
        if position == "self_attn":
            return attention(layer.self_attn, states, states, causal=encoded is not None)
        if position == "encoder_attn":
            assert encoded is not None
            return attention(layer.encoder_attn, states, encoded, causal=False)
        hidden = torch.clamp(linear(layer.fc1, states), min=0)  # (T, f)
        return linear(layer.fc2, change(*at, "hidden", hidden))

    positions = ["self_attn", "feed_forward"] if encoded is None else ["self_attn", "encoder_attn", "feed_forward"]
    for position in positions:
        name = "final_layer_norm" if position == "feed_forward" else f"{position}_layer_norm"
        if pre_norm:
            x = x + change(*at, position, sub_layer(position, norm(name, x)))  # (T, d)
        else:
            x = norm(name, x + change(*at, position, sub_layer(position, x)))  # (T, d)
    return change(*at, "layer", x)


def reference(base: BaseModel, change: Change, normal: Change | None = None) -> Tensor:
    """The decoder's last states (T, d) for the pair, layer by layer; nothing is attached to the base."""
    pre_norm = base.model.config.model_type == "m2m_100"
    encoded: Tensor | None = None
    for side, stack in (("encoder", base.model.get_encoder()), ("decoder", base.model.get_decoder())):
        x = first_states(base, stack)
        for i, layer in enumerate(stack.layers):
            x = one_layer((side, i), layer, x, encoded, pre_norm, change, normal)
        if pre_norm:
            x = layer_norm(x, stack.layer_norm.weight, stack.layer_norm.bias)
        encoded = x if encoded is None else encoded
    return x


def first_states(base: BaseModel, stack: Any) -> Tensor:
    """What the first layer of a side is given: embeddings and positions (T, d)."""
    sources, inputs = tokens(base)
    seen: list[Tensor] = []

    def keep(module: Any, args: Any, kwargs: Any) -> None:
        seen.append((args[0] if args else kwargs["hidden_states"])[0].clone())

    handle = stack.layers[0].register_forward_pre_hook(keep, with_kwargs=True)
    try:
        with torch.no_grad():
            base.model(input_ids=sources, decoder_input_ids=inputs, use_cache=False)
    finally:
        handle.remove()
    return seen[0]
