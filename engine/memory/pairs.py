"""Phrase pairs: each phrase of the user's samples with the source that the frozen reverse model gives for it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.decoding.resumable import back_translate_all
from engine.errors import CorpusError
from engine.files import write_jsonl
from engine.memory.layers import assign_layers
from engine.progress import Progress

if TYPE_CHECKING:
    from engine.base.model import BaseModel
    from engine.phrases import Phrase

__all__ = ["PhrasePair", "load_pairs", "save_pairs", "translate_phrases"]


@dataclass(frozen=True)
class PhrasePair:
    """A phrase in the user's words (`target`), its source, and the decoder layer (from 0) that remembers it."""

    layer: int
    target: str
    source: str
    length: int
    count: int


def translate_phrases(
    phrases: Sequence[Phrase],
    backward: BaseModel,
    layers: int,
    *,
    order: str = "short_to_long",
    seed: int = 1,
    max_length_ratio: float = 5.0,
    per_layer: int | None = None,
    partial: Path | None = None,
    progress: Progress | None = None,
) -> list[PhrasePair]:
    """Translate phrases back with the frozen reverse model and give each a layer.

    Pairs whose sides differ by `max_length_ratio` or more in subword pieces are dropped as failed translations (the
    authors' code does so). `per_layer` keeps the most frequent phrases of each layer; the layers are cut before, so
    that a cap does not move the borders between them. `partial` names a file that keeps finished translations, so that
    a stopped run goes on from there.
    """
    kept = list(phrases)
    if per_layer is not None:
        first = assign_layers([phrase.length for phrase in kept], layers, order, seed)
        kept = []
        for layer in range(layers):
            mine = [phrase for phrase, own in zip(phrases, first, strict=True) if own == layer]
            kept += sorted(mine, key=lambda phrase: -phrase.count)[:per_layer]
    sources = back_translate_all(backward, [p.text for p in kept], partial, progress or Progress())
    forward_sizes = [len(ids) for ids in backward.label(sources)]
    backward_sizes = [len(ids) for ids in backward.encode([p.text for p in kept])]
    good = [
        (phrase, source)
        for phrase, source, a, b in zip(kept, sources, forward_sizes, backward_sizes, strict=True)
        if source and max(a, b) < max_length_ratio * min(a, b)
    ]
    places = assign_layers([phrase.length for phrase, _ in good], layers, order, seed)
    return [
        PhrasePair(layer, phrase.text, source, phrase.length, phrase.count)
        for (phrase, source), layer in zip(good, places, strict=True)
    ]


def save_pairs(pairs: Sequence[PhrasePair], path: Path) -> None:
    write_jsonl(path, (dataclasses.asdict(pair) for pair in pairs), "the phrase pairs")


def load_pairs(path: Path) -> list[PhrasePair]:
    """Raises CorpusError naming the line that cannot be read."""
    pairs = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                pairs.append(PhrasePair(**json.loads(line)))
            except (json.JSONDecodeError, TypeError):
                raise CorpusError(
                    f"{path}, line {number}: not a phrase pair. Remove the file to make it again."
                ) from None
    return pairs
