"""Helpers for `Method.attributions`: the memory that each token of a given translation reads, as rows of plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel

if TYPE_CHECKING:
    from torch import Tensor

Items = list[dict[str, object]]


def encode_pair(base: BaseModel, source: str, translation: str) -> tuple[Tensor, Tensor, list[str]]:
    """A sentence and its translation as ids (1, S) and (1, T), and the translation's T tokens as strings."""
    sources, labels = (base.pad_batch(base.encode([source])), base.pad_batch(base.encode_target([translation])))  # (1, S), (1, T)
    return sources, labels, base.tokenizer.convert_ids_to_tokens(labels[0].tolist())


def force(base: BaseModel, sources: Tensor, labels: Tensor) -> None:
    """Run the base with everything attached to it over a given translation."""
    import torch

    with torch.no_grad():
        base.model(input_ids=sources, decoder_input_ids=base.shift_right(labels), use_cache=False)


def row(position: int, token: str, layer: int, place: str, gate: float, items: Items) -> dict[str, object]:
    return {"position": position, "token": token, "layer": layer, "place": place, "gate": gate, "items": items}


def reads_of(
    base: BaseModel,
    readers: Sequence[tuple[int, str, Any]],
    sources: Tensor,
    labels: Tensor,
    tokens: Sequence[str],
    items: Callable[[int, Any, Tensor], Items],
) -> list[dict[str, object]]:
    """A row per token and reader; `readers` are (layer, place, module).

    A reader records `gate` and `weights` in `recorded` if it is a mapping. `items(layer, module, weights (N,))` returns the items.
    """
    try:
        for _, _, reader in readers:
            reader.recorded = {}
        force(base, sources, labels)
        return [
            row(
                position, token, layer, place, float(reader.recorded["gate"][0, position]),
                items(layer, reader, reader.recorded["weights"][0, position]),
            )
            for position, token in enumerate(tokens)
            for layer, place, reader in readers
            if "weights" in reader.recorded
        ]  # fmt: skip
    finally:
        for _, _, reader in readers:
            reader.recorded = None


def shares_of(owners: Sequence[int], weights: Tensor) -> dict[int, float]:
    """The weights (K,) of single tokens summed by owner: {owner: its share}, by descending share."""
    shares: dict[int, float] = {}
    for owner, weight in zip(owners, weights.float().tolist(), strict=True):
        shares[owner] = shares.get(owner, 0.0) + weight
    return dict(sorted(shares.items(), key=lambda item: -item[1]))
