"""Ablations of a translation memory by noise or by its mean: vectors, states and tokens with the same distributions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from engine.memory.vector_index import VectorIndex
from engine.methods.ablation import Material, SubstituteStates, evenly_spaced, gaussian_like

BATCH = 32  # sentences encoded at a time


def draw_memory(module: Any, kind: str, material: Material) -> None:
    """Replace the module's memory by "noise" or its "mean"; the module must have an index."""
    states = all_states(module)  # (N, d)
    tokens = torch.tensor([token for row in module.rows for token in row])  # (N,)
    vectors = torch.from_numpy(module.index.vectors)  # (n, v)
    longest = max(map(len, module.rows))
    if kind == "noise":
        sampled = tokens[torch.randint(len(tokens), (len(tokens),), generator=material.generator())].tolist()  # (N,)
        remaining = iter(sampled)
        module.rows = [[next(remaining) for _ in row] for row in module.rows]
        vectors = gaussian_like(vectors, len(vectors), material.generator())  # (n, v)
    else:
        module.rows = [evenly_spaced(tokens, longest).tolist()]
        module.pairs, vectors = module.pairs[:1], vectors.mean(0, keepdim=True)  # (1, v)
    module.index = VectorIndex(vectors.numpy(), "dot", depth=module.config.search_depth)
    module.exchanged = SubstituteStates(states, kind, material, longest)


def all_states(module: Any) -> Tensor:
    """The states (N, d) of all tokens of the memory."""
    pad, device = module.where
    results = []
    with torch.no_grad():
        for begin in range(0, len(module.rows), BATCH):
            _, mask, states = module.encode_memory(module.rows[begin : begin + BATCH], pad, device)  # (U, L), (U, L, d)
            results.append(states[mask])  # (n, d)
    return torch.cat(results)  # (N, d)
