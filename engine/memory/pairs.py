"""Phrase pairs: each phrase of the user's samples with the source that the frozen reverse model gives for it."""

from __future__ import annotations

import bisect
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.decoding.resumable import back_translate_all
from engine.errors import CorpusError, OptionError
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
    unit: str = "parser",
    bounds: Sequence[int] | None = None,
    known: Mapping[str, str] | None = None,
    round_trip: BaseModel | None = None,
    partial: Path | None = None,
    progress: Progress | None = None,
) -> list[PhrasePair]:
    """Translate phrases back with the frozen reverse model and give each a layer.

    Pairs whose sides differ by `max_length_ratio` or more in subword pieces are dropped as failed translations (the
    authors' code does so). `per_layer` keeps the most frequent phrases of each layer; the layers are cut before, so
    that a cap does not move the borders between them. `partial` names a file that keeps finished translations, so that
    a stopped run goes on from there.

    `unit="pieces"` counts lengths in subword pieces instead of the parser's tokens; `bounds` gives the longest phrase of
    each layer, from the bottom up, in place of parts of even size, and drops what is longer than all. Phrases in `known`
    have that source and are not translated. `round_trip`, the forward model, translates the sources again, and phrases
    that come back with `max_length_ratio` times their length are dropped. Raises OptionError where the bounds are not
    rising or not one for each layer.
    """
    progress, known = progress or Progress(), known or {}

    def pieces(texts: Sequence[str], side: Callable[[Sequence[str]], list[list[int]]]) -> list[int]:
        return [len(ids) for ids in side(texts)]

    def deal(some: Sequence[int]) -> list[int | None]:
        return list(by_bounds(some, bounds, layers) if bounds else assign_layers(some, layers, order, seed))

    def similar(one: int, other: int) -> bool:
        return max(one, other) < max_length_ratio * min(one, other)

    own = [phrase.length for phrase in phrases]
    if unit == "pieces":
        special = backward.special_ids
        own = [sum(i not in special for i in ids) for ids in backward.encode([phrase.text for phrase in phrases])]
    kept = list(zip(phrases, own, strict=True))
    if bounds or per_layer is not None:
        first = deal(own)
        chosen = []
        for layer in range(layers):
            mine = [one for one, place in zip(kept, first, strict=True) if place == layer]
            chosen += mine if per_layer is None else sorted(mine, key=lambda one: -one[0].count)[:per_layer]
        kept = chosen
    texts = [phrase.text for phrase, _ in kept]
    missing = [text for text in texts if text not in known]
    made = dict(zip(missing, back_translate_all(backward, missing, partial, progress), strict=True))
    returned: dict[str, int] = {}
    if round_trip is not None:
        progress.begin("Translating phrases there and back", progress.index, progress.steps)
        again = partial and partial.with_name(f"again.{partial.name}")
        back = back_translate_all(round_trip, list(made.values()), again, progress)
        returned = dict(zip(made, pieces(back, backward.encode), strict=True))
    sources = [known[text] if text in known else made[text] for text in texts]
    good = [
        (phrase, length, source)
        for (phrase, length), source, a, b in zip(
            kept, sources, pieces(sources, backward.label), pieces(texts, backward.encode), strict=True
        )
        if source and similar(a, b) and similar(returned.get(phrase.text, b), b)
    ]
    places = deal([length for _, length, _ in good])
    return [
        PhrasePair(layer, phrase.text, source, length, phrase.count)
        for (phrase, length, source), layer in zip(good, places, strict=True)
        if layer is not None
    ]


def by_bounds(lengths: Sequence[int], bounds: Sequence[int], layers: int) -> list[int | None]:
    """The first layer whose bound a length does not pass; None for longer ones. Raises OptionError on unfit bounds."""
    if len(bounds) != layers or list(bounds) != sorted(set(bounds)):
        raise OptionError(
            f"bounds: {', '.join(map(str, bounds))} is not a rising length for each of the base's {layers} decoder layers."
        )
    places = [bisect.bisect_left(bounds, length) for length in lengths]
    return [place if place < layers else None for place in places]


def save_pairs(pairs: Sequence[PhrasePair], path: Path) -> None:
    write_jsonl(path, (dataclasses.asdict(pair) for pair in pairs), "the phrase pairs")


def load_pairs(path: Path) -> list[PhrasePair]:
    """Raises CorpusError naming the line that cannot be read."""
    pairs = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                pairs.append(PhrasePair(**json.loads(line)))
            except (ValueError, TypeError, RecursionError):
                raise CorpusError(
                    f"{path}, line {number}: not a phrase pair. Remove the file to make it again."
                ) from None
    return pairs
