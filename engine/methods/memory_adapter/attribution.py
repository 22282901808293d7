"""What each token of a translation read from the memory, as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BundleError

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.methods.memory_adapter.module import MemoryAdapterModule


def reads(
    base: BaseModel, module: MemoryAdapterModule, source: str, translation: str, top: int
) -> list[dict[str, Any]]:
    """For each target token and reader: the gate λ and the `top` phrases with their weights; the module is attached.

    Phrases are empty texts where the bundle came without them.
    """
    import torch

    sources = base.pad_batch(base.encode([source]))  # (1, S)
    labels = base.pad_batch(base.label([translation]))  # (1, T)
    readers = module.readers()
    phrases = phrases_by_layer(module.phrase_file)
    tokens = base.tokenizer.convert_ids_to_tokens(labels[0].tolist())
    try:
        for _, _, reader in readers:
            reader.seen = {}
        with torch.no_grad():
            base.model(input_ids=sources, decoder_input_ids=base.shift_right(labels), use_cache=False)
        rows = []
        for position, token in enumerate(tokens):
            for layer, attention, reader in readers:
                if not reader.seen or "weights" not in reader.seen:
                    continue
                weights, items = reader.seen["weights"][0, position].topk(min(top, len(reader.memory)))  # (k,), (k,)
                known = phrases.get(layer, [])
                rows.append(
                    {
                        "position": position,
                        "token": token,
                        "layer": layer,
                        "place": attention,
                        "gate": float(reader.seen["gate"][0, position]),
                        "items": [item(known, int(i), float(w)) for i, w in zip(items, weights, strict=True)],
                    }
                )
        return rows
    finally:
        for _, _, reader in readers:
            reader.seen = None


def item(known: list[dict[str, Any]], row: int, weight: float) -> dict[str, Any]:
    result = known[row] if row < len(known) else {"target": "", "source": ""}
    return {"text": result["target"], "source": result["source"], "weight": weight, "row": row}


def phrases_by_layer(file: Path | None) -> dict[int, list[dict[str, Any]]]:
    """{layer: phrase pairs in the memory's order}. Raises BundleError when the file cannot be read."""
    result: dict[int, list[dict[str, Any]]] = {}
    if file is None or not file.exists():
        return result
    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            for row in map(json.loads, lines):
                result.setdefault(row["layer"], []).append({"target": row["target"], "source": row["source"]})
    except (ValueError, LookupError, TypeError):
        raise BundleError("The phrases in {file} cannot be read. Get a new copy of the bundle.", file=file) from None
    return result
