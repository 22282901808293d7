"""Transformer layers that a method trains in addition to the frozen base, with the base's embeddings as their input.

Layers have the shape and norm order of the base and can be initialised as copies of its layers, which a short training on few
sentences requires. Submodules are named as in transformers, so that copying is a `load_state_dict`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.base import BaseModel
from engine.base.precision import held_in_integers


class Inputs:
    """Computes the input of the first layer of the base's encoder or decoder: embeddings plus positions.

    Not a module: the embeddings belong to the base and are neither trained nor saved. Thread-safe.
    """

    def __init__(self, base: BaseModel, side: str) -> None:
        """`side` is "encoder" or "decoder"."""
        stack = base.model.get_encoder() if side == "encoder" else base.model.get_decoder()
        self.embedding = stack.embed_tokens
        # Marian scales outside of its embedding module, other families inside.
        self.scale = 1.0 if hasattr(self.embedding, "embed_scale") else float(getattr(stack, "embed_scale", 1.0))
        self.norm = getattr(stack, "layernorm_embedding", None)
        table = stack.embed_positions
        # Positions start after the padding index in M2M100, at 2 in mBART, at 0 in Marian.
        self.first = table.padding_idx + 1 if hasattr(table, "weights") else int(getattr(table, "offset", 0))
        self.positions: Tensor = table.weights if hasattr(table, "weights") else table.weight  # (P, d)
        self.longest = len(self.positions) - self.first

    def tokens(self, ids: Tensor) -> Tensor:
        """Scaled embeddings (..., L, d) of ids (..., L), without positions."""
        return self.embedding(ids).detach() * self.scale  # (..., L, d)

    def __call__(self, ids: Tensor) -> Tensor:
        """Embeddings with positions (B, L, d) of right-padded ids (B, L)."""
        width = ids.shape[1]
        positions = self.positions[self.first : self.first + width].detach()  # (L, d)
        states = self.tokens(ids) + positions  # (B, L, d)
        return states if self.norm is None else self.norm(states)  # (B, L, d)


class Attention(nn.Module):
    """Multi-head attention."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, d // heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d, d) for _ in range(4))
        for linear in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def split(self, states: Tensor) -> Tensor:
        return states.unflatten(-1, (self.heads, self.size)).transpose(1, 2)  # (B, H, L, d/H)

    def project(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, d/H) of the attended states (B, S, d)."""
        return self.split(self.k_proj(states)), self.split(self.v_proj(states))  # (B, H, S, d/H), (B, H, S, d/H)

    def weights(self, query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Attention weights (B, H, T, S) of queries (B, T, d) over the keys where the mask (B, S) is true."""
        q = self.split(self.q_proj(query))  # (B, H, T, d/H)
        scores = (q @ keys.transpose(-1, -2)) * self.size**-0.5  # (B, H, T, S)
        return scores.masked_fill(~mask[:, None, None], float("-inf")).float().softmax(-1)  # (B, H, T, S)

    def read(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """The attention output (B, T, d) for queries (B, T, d). Each row of the mask (B, S) must have a true position."""
        q = self.split(self.q_proj(query))  # (B, H, T, d/H)
        result = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask[:, None, None])  # (B, H, T, d/H)
        return self.out_proj(result.transpose(1, 2).flatten(-2))  # (B, T, d)

    def forward(self, query: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        return self.read(query, *self.project(states), mask)  # (B, T, d)


class Layer(nn.Module):
    """Self-attention over the whole sentence, cross-attention to another sentence if `cross`, and a feed-forward block."""

    def __init__(
        self, d: int, heads: int, hidden: int, *, cross: bool, post_norm: bool, dropout: float,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:  # fmt: skip
        super().__init__()
        self.post_norm, self.dropout, self.activation = post_norm, dropout, activation
        self.self_attn, self.self_attn_layer_norm = Attention(d, heads), nn.LayerNorm(d)
        if cross:
            self.encoder_attn, self.encoder_attn_layer_norm = Attention(d, heads), nn.LayerNorm(d)
        self.fc1, self.fc2, self.final_layer_norm = nn.Linear(d, hidden), nn.Linear(hidden, d), nn.LayerNorm(d)
        for linear in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def around(self, norm: nn.LayerNorm, states: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply a sub-layer with its residual sum and norm; the norm follows the sum (Marian) or precedes the sub-layer."""
        if self.post_norm:
            return norm(states + F.dropout(part(states), self.dropout, self.training))  # (B, L, d)
        return states + F.dropout(part(norm(states)), self.dropout, self.training)  # (B, L, d)

    def forward(self, states: Tensor, mask: Tensor, other: Tensor | None = None, other_mask: Tensor | None = None) -> Tensor:
        """The output (B, L, d) for states (B, L, d) with mask (B, L); a layer with `cross` attends to `other` (B, S, d)."""
        states = self.around(self.self_attn_layer_norm, states, lambda x: self.self_attn(x, x, mask))  # (B, L, d)
        if other is not None and other_mask is not None:
            states = self.around(
                self.encoder_attn_layer_norm, states, lambda x: self.encoder_attn(x, other, other_mask)
            )  # (B, L, d)
        return self.around(self.final_layer_norm, states, lambda x: self.fc2(self.activation(self.fc1(x))))  # (B, L, d)

    def quiet(self) -> Layer:
        """Zero the output maps of the sub-layers so that the untrained pre-norm layer is the identity. Returns the layer."""
        for linear in (self.self_attn.out_proj, self.fc2):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
        return self


def make_layers(
    base: BaseModel, side: str, count: int, *, cross: bool, dropout: float, copied: bool, post_norm: bool | None = None
) -> nn.ModuleList:
    """`count` layers with the shape of the base's encoder or decoder layers; if `copied`, copies of the lowest ones.

    Encoder layers have no cross-attention to copy: its output map is then zero.
    """
    config = base.model.config
    theirs = base.decoder_layers if side == "decoder" else base.model.get_encoder().layers
    after = config.model_type == "marian" if post_norm is None else post_norm
    layers = nn.ModuleList()
    for number in range(count):
        like: Any = theirs[min(number, len(theirs) - 1)]
        layer = Layer(
            base.d_model,
            int(getattr(config, f"{side}_attention_heads")),
            int(getattr(config, f"{side}_ffn_dim")),
            cross=cross,
            post_norm=after,
            dropout=dropout,
            activation=like.activation_fn if not isinstance(like.activation_fn, nn.Module) else like.activation_fn.forward,
        )
        if copied and not held_in_integers(base):  # a loaded plugin brings its own weights
            state = layer.state_dict()
            layer.load_state_dict({key: w.float() for key, w in like.state_dict().items() if key in state}, strict=False)
            if cross and side == "encoder":
                nn.init.zeros_(layer.encoder_attn.out_proj.weight)
        layers.append(layer)
    return layers


def padded(rows: list[list[int]], pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids (E, L) and their mask (E, L), true at tokens."""
    width = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=device)  # (E, L)
    lengths = torch.tensor([len(row) for row in rows], device=device)  # (E,)
    return ids, torch.arange(width, device=device) < lengths[:, None]  # (E, L), (E, L)


class PackedSentences:
    """Layout that concatenates the tokens of E retrieved sentences in the batch rows for which they were retrieved."""

    def __init__(self, mask: Tensor, owners: Sequence[int], rows: int) -> None:
        """`mask` (E, L) is true at tokens; sentence e belongs to row `owners[e]` of `rows` = B."""
        self.from_mask = mask
        totals, offsets = [0] * rows, []
        for owner, length in zip(owners, mask.sum(1).tolist(), strict=True):
            offsets.append(totals[owner])
            totals[owner] += length
        device, self.rows, self.width = mask.device, rows, max(1, *totals)
        self.row = torch.tensor(list(owners), device=device)[:, None].expand_as(mask)[mask]  # (N,), N tokens in all
        within = torch.arange(mask.shape[1], device=device)  # (L,)
        self.column = (torch.tensor(offsets, device=device)[:, None] + within)[mask]  # (N,)
        sizes = torch.tensor(totals, device=device)  # (B,)
        # Attention needs an unmasked position per row, so rows without tokens unmask the first; `any` marks them as empty.
        self.mask = torch.arange(self.width, device=device) < sizes.clamp(min=1)[:, None]  # (B, K)
        self.any = (sizes > 0)[:, None, None]  # (B, 1, 1)

    def put(self, values: Tensor) -> Tensor:
        """Arrange values (E, L, ...) of the sentences' tokens in the layout (B, K, ...), zeros elsewhere."""
        empty = values.new_zeros(self.rows, self.width, *values.shape[2:])  # (B, K, ...)
        return empty.index_put((self.row, self.column), values[self.from_mask])  # (B, K, ...)
