"""Initialisation of an adapter's readers from the base: they read as the base's attention would, instead of at random.

Self-attention.  Queries and memory are self-attention outputs of the same layer. So Wv = 1 (the reading is in the space of the
    anchor), and Wq = Wk measure similarity: a query reads the phrases nearest to it. All rows share a large common direction,
    which would dominate a plain product. It is therefore projected out and the rest whitened. Wq and Wk are scaled so that the
    scores of a query vary by `QUERY_STD` over the memory.
Cross-attention. Wq and Wk are the layer's q_proj and k_proj, averaged over its heads; Wv is its v_proj followed by its out_proj,
    with their biases carried by the common direction, so that reading the memory returns what the base's attention would.

With `start="identity"`, the output of the untrained adapter equals the base's nevertheless.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from engine.base import BaseModel
from engine.methods.memory_adapter.module import MemoryAdapterModule, MemoryReader

QUERY_STD = 2.0  # standard deviation of a query's scores over the memory, after the temperature
FLOOR = 0.3  # share of the mean variance added to all, so that directions of little variance do not dominate
SAMPLE = 256  # memory rows used as queries to calibrate scores


@torch.no_grad()
def start_from_base(module: MemoryAdapterModule, base: BaseModel) -> None:
    """Set Wq, Wk and Wv of every reader with at least two memory rows; other readers keep their random initialisation."""
    for layer, position, reader in module.readers():
        if len(reader.memory) < 2:
            continue
        if position == "self_attn":
            by_likeness(reader)
        else:
            by_attention(reader, getattr(base.decoder_layers[layer], position))


def common_direction(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of rows (N, d) as a unit vector (d,) and its length ()."""
    mean = rows.mean(0)  # (d,)
    size = mean.norm().clamp(min=1e-6)  # ()
    return mean / size, size


def by_likeness(reader: MemoryReader) -> None:
    rows = reader.memory.float()  # (N, d)
    unit, _ = common_direction(rows)
    d = rows.shape[1]
    project = torch.eye(d, device=rows.device) - torch.outer(unit, unit)  # (d, d)
    centred = (rows - rows.mean(0)) @ project  # (N, d)
    variances, axes = torch.linalg.eigh(centred.T @ centred / len(rows))  # (d,), (d, d)
    floor = (FLOOR * variances.mean()).clamp(min=1e-9)  # ()
    whiten = (axes * (variances.clamp(min=0) + floor).rsqrt()) @ axes.T @ project  # (d, d)
    white = rows @ whiten.T  # (N, d)
    white = white - white.mean(0)  # (N, d)
    std = (white[:SAMPLE] @ white.T).std(1).mean().clamp(min=1e-6)  # ()
    size = (QUERY_STD / (reader.inverse_temperature * std)).sqrt()  # ()
    reader.query.weight.copy_(whiten * size)
    reader.key.weight.copy_(whiten * size)
    reader.value.weight.copy_(torch.eye(d))


def by_attention(reader: MemoryReader, attention: Any) -> None:
    unit, length = common_direction(reader.memory.float())
    # The scores of a head are divided by the root of its size, those of the reader by the temperature.
    reader.query.weight.copy_(attention.q_proj.weight * (attention.head_dim**-0.5 / reader.inverse_temperature))
    reader.key.weight.copy_(attention.k_proj.weight)
    out, value = (weights(attention.out_proj), weights(attention.v_proj))
    constant = torch.nn.functional.linear(value[1], *out)  # (d,)
    reader.value.weight.copy_(out[0] @ value[0] + torch.outer(constant, unit / length))


def weights(linear: Any) -> tuple[Tensor, Tensor]:
    """Weight (out, in) and bias (out,) of a layer of the base in float32; the bias is zero if there is none."""
    bias = linear.bias if linear.bias is not None else linear.weight.new_zeros(len(linear.weight))  # (out,)
    return linear.weight.float(), bias.float()
