"""The memory that each token of a translation reads, as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from engine.base import BaseModel
from engine.core.atomic_files import read_jsonl
from engine.errors import BundleError
from engine.methods.memory_adapter.module import MemoryAdapterModule
from engine.methods.reading import encode_pair, reads_of


def attributions(base: BaseModel, module: MemoryAdapterModule, source: str, translation: str, top: int) -> list[dict[str, Any]]:
    """For each target token and reader: the gate λ and the `top` phrases with their weights. The module must be attached.

    Phrases are empty strings if the bundle does not contain them.
    """
    phrases = phrases_by_layer(module.phrase_file)

    def items(layer: int, reader: Any, weights: Tensor) -> list[dict[str, Any]]:
        heaviest = weights.topk(min(top, len(reader.memory)))  # (k,), (k,)
        return [item(phrases.get(layer, []), int(i), float(w)) for w, i in zip(*heaviest, strict=True)]

    return reads_of(base, module.readers(), *encode_pair(base, source, translation), items)


def item(phrases: list[dict[str, Any]], row: int, weight: float) -> dict[str, Any]:
    result = phrases[row] if row < len(phrases) else {"target": "", "source": ""}
    return {"text": result["target"], "source": result["source"], "weight": weight, "row": row}


def phrases_by_layer(file: Path | None) -> dict[int, list[dict[str, Any]]]:
    """{layer: phrase pairs in the memory's order}; empty without a file. Raises BundleError if the file cannot be read."""
    result: dict[int, list[dict[str, Any]]] = {}
    if file is None or not file.exists():
        return result
    try:
        for row in read_jsonl(file):
            result.setdefault(row["layer"], []).append({"target": row["target"], "source": row["source"]})
    except (ValueError, LookupError, TypeError):
        raise BundleError("The phrases in {file} cannot be read. Get a new copy of the bundle.", file=file) from None
    return result
