"""Where an adapter's reading starts when it starts from the base: not at random, but as the base itself would read.

Self-attention.  Queries and memory are both self-attention outputs of one layer, so Wv = 1 (what is read lies where the
    anchor lies), and Wq = Wk measure likeness: a query reads the phrases nearest to it. All rows share one large common
    direction and vary little around it; a plain product would see nothing else. So the common direction is projected out
    and the rest whitened, and the size of Wq and Wk is set so that the scores of a query vary by `QUERY_STD` over the memory.
Cross-attention. Wq, Wk are the layer's own q_proj and k_proj, averaged over its heads; Wv is its v_proj followed by its
    out_proj, with their biases carried by the common direction: reading the memory gives what the base's attention would.

The adapter's output is the base's all the same until training begins (`start="identity"`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from engine.base import BaseModel
from engine.methods.memory_adapter.module import MemoryAdapterModule, MemoryReader

QUERY_STD = 2.0  # standard deviation of a query's scores over the memory, after the temperature
FLOOR = 0.3  # of the mean variance, added to all: directions in which phrases hardly differ must not decide
SAMPLE = 256  # memory rows that stand for queries when scores are calibrated


@torch.no_grad()
def start_from_base(module: MemoryAdapterModule, base: BaseModel) -> None:
    """Set Wq, Wk and Wv of every reader that has a memory; a reader without one keeps its random start."""
    for layer, position, reader in module.readers():
        if len(reader.memory) < 2:
            continue
        if position == "self_attn":
            by_likeness(reader)
        else:
            by_attention(reader, getattr(base.decoder_layers[layer], position))


def common_direction(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of rows (N, d) as a unit vector (d,) and a length ()."""
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
    # A head's own scores are divided by the root of its size; the reader's are divided by the temperature.
    reader.query.weight.copy_(attention.q_proj.weight * (attention.head_dim**-0.5 / reader.inverse_temperature))
    reader.key.weight.copy_(attention.k_proj.weight)
    out, value = (weights(attention.out_proj), weights(attention.v_proj))
    constant = torch.nn.functional.linear(value[1], *out)  # (d,)
    reader.value.weight.copy_(out[0] @ value[0] + torch.outer(constant, unit / length))


def weights(linear: Any) -> tuple[Tensor, Tensor]:
    """Weight (out, in) and bias (out,) of a layer of the base as float32, whatever they are held in."""
    bias = linear.bias if linear.bias is not None else linear.weight.new_zeros(len(linear.weight))  # (out,)
    return linear.weight.float(), bias.float()
