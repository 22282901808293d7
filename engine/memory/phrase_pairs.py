"""Phrase pairs: each phrase of the user's samples with its source by the frozen reverse model."""

from __future__ import annotations

import bisect
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.base.model import BaseModel
from engine.core.atomic_files import write_jsonl
from engine.core.progress import Progress
from engine.decoding.resumable import back_translate_all
from engine.errors import CorpusError, OptionError
from engine.memory.layer_assignment import assign_layers

if TYPE_CHECKING:
    from engine.phrases import Phrase


@dataclass(frozen=True)
class PhrasePair:
    """A phrase in the user's words (`target`), its source, and the decoder layer (from 0) that stores it."""

    layer: int
    target: str
    source: str
    length: int
    count: int


@dataclass(frozen=True)
class PairRules:
    """Which phrases are stored, and in which layer."""

    order: str = "short_to_long"
    seed: int = 1
    max_length_ratio: float = 5.0  # between the two sides in subwords; a pair at or above it is a failed translation
    per_layer: int | None = None  # maximum phrases per layer, distributed over lengths in proportion
    typicality: Sequence[float] | None = None  # one value per phrase: the highest are kept; by default the counts
    unit: str = "parser"  # "pieces": lengths are counted in subwords, not in the parser's tokens
    bounds: Sequence[int] | None = None  # the longest phrase of each layer from the bottom up, instead of equal parts


def translate_phrases(
    phrases: Sequence[Phrase],
    backward: BaseModel,
    layers: int,
    rules: PairRules | None = None,
    *,
    known: Mapping[str, str] | None = None,
    round_trip: BaseModel | None = None,
    partial: Path | None = None,
    progress: Progress | None = None,
) -> list[PhrasePair]:
    """Translate phrases back with the frozen reverse model and assign each a layer.

    Phrases in `known` have that source and are not translated. With `round_trip`, the forward model, sources are translated
    again, and phrases that come back `max_length_ratio` times longer or shorter are dropped. `partial` names a file of finished
    translations, with which a stopped run can resume. Layers are assigned before a cap is applied, which therefore does not
    move their borders. Raises OptionError if the bounds are not increasing or not one per layer.
    """
    progress, known, rules = progress or Progress(), known or {}, rules or PairRules()
    bounds, ratio = rules.bounds, rules.max_length_ratio

    def pieces(texts: Sequence[str], side: Callable[[Sequence[str]], list[list[int]]]) -> list[int]:
        return [len(ids) for ids in side(texts)]

    def assign(sizes: Sequence[int]) -> list[int | None]:
        return list(by_bounds(sizes, bounds, layers) if bounds else assign_layers(sizes, layers, rules.order, rules.seed))

    def similar(length: int, other: int) -> bool:
        return max(length, other) < ratio * min(length, other)

    lengths = [phrase.length for phrase in phrases]
    if rules.unit == "pieces":
        special = backward.special_ids
        lengths = [sum(i not in special for i in ids) for ids in backward.encode([phrase.text for phrase in phrases])]
    assigned_layers: Sequence[int | None] = assign(lengths) if bounds or rules.per_layer is not None else [0] * len(lengths)
    selected = [(phrases[i], lengths[i]) for i in within_cap(phrases, lengths, assigned_layers, rules.per_layer, rules.typicality)]
    texts = [phrase.text for phrase, _ in selected]
    missing = [text for text in texts if text not in known]
    translations = dict(zip(missing, back_translate_all(backward, missing, partial, progress), strict=True))
    returned: dict[str, int] = {}
    if round_trip is not None:
        progress.begin("Translating phrases there and back", progress.index, progress.steps)
        again = partial and partial.with_name(f"again.{partial.name}")
        back = back_translate_all(round_trip, list(translations.values()), again, progress)
        returned = dict(zip(translations, pieces(back, backward.encode), strict=True))
    sources = [known[text] if text in known else translations[text] for text in texts]
    accepted = [
        (phrase, length, source)
        for (phrase, length), source, a, b in zip(
            selected, sources, pieces(sources, backward.encode_target), pieces(texts, backward.encode), strict=True
        )
        if source and similar(a, b) and similar(returned.get(phrase.text, b), b)
    ]
    assigned_layers = assign([length for _, length, _ in accepted])
    return [
        PhrasePair(layer, phrase.text, source, length, phrase.count)
        for (phrase, length, source), layer in zip(accepted, assigned_layers, strict=True)
        if layer is not None
    ]


def within_cap(
    phrases: Sequence[Phrase], lengths: Sequence[int], assigned_layers: Sequence[int | None], per_layer: int | None,
    typicality: Sequence[float] | None,
) -> list[int]:  # fmt: skip
    """Indices of the phrases in a memory of `per_layer` phrases per layer; `assigned_layers` are the phrases' layers."""
    values = [phrase.count for phrase in phrases] if typicality is None else typicality
    chosen: list[int] = []
    for layer in sorted({layer for layer in assigned_layers if layer is not None}):
        indices = [i for i, assigned in enumerate(assigned_layers) if assigned == layer]
        if per_layer is not None:
            best = stratified(
                [lengths[i] for i in indices], [values[i] for i in indices], [phrases[i].example for i in indices], per_layer
            )
            indices = [indices[k] for k in best]
        chosen += indices
    return chosen


def stratified(lengths: Sequence[int], values: Sequence[float], sentences: Sequence[int], max_pairs: int) -> list[int]:
    """Indices of at most `max_pairs` phrases, in order, with each length's share unchanged (largest remainders).

    Of each length, those with the highest `values` are chosen; of equal ones first one from every sentence, then a second one.
    Otherwise a few frequent words would take all the room and leave none for phrases of several words.
    """
    if len(lengths) <= max_pairs:
        return list(range(len(lengths)))
    groups: dict[int, list[int]] = {}
    for i, length in enumerate(lengths):
        groups.setdefault(length, []).append(i)
    shares = {length: max_pairs * len(members) / len(lengths) for length, members in groups.items()}
    quotas = {length: int(share) for length, share in shares.items()}
    for length in sorted(groups, key=lambda n: (quotas[n] - shares[n], n))[: max_pairs - sum(quotas.values())]:
        quotas[length] += 1
    chosen: list[int] = []
    for length, members in groups.items():
        seen: Counter[tuple[float, int]] = Counter()
        ranked = []
        for i in members:
            ranked.append((-values[i], seen[values[i], sentences[i]], i))
            seen[values[i], sentences[i]] += 1
        chosen += [i for _, _, i in sorted(ranked)[: quotas[length]]]
    return sorted(chosen)


def by_bounds(lengths: Sequence[int], bounds: Sequence[int], layers: int) -> list[int | None]:
    """The first layer whose bound is at least the length; None for longer phrases. Raises OptionError on invalid bounds."""
    if len(bounds) != layers or list(bounds) != sorted(set(bounds)):
        raise OptionError(
            "bounds: {bounds} must be increasing lengths, one for each of the base's {layers} decoder layers.",
            bounds=", ".join(map(str, bounds)),
            layers=layers,
        )
    indices = [bisect.bisect_left(bounds, length) for length in lengths]
    return [index if index < layers else None for index in indices]


def save_pairs(pairs: Sequence[PhrasePair], path: Path) -> None:
    write_jsonl(path, (dataclasses.asdict(pair) for pair in pairs), "the phrase pairs")


def load_pairs(path: Path) -> list[PhrasePair]:
    """Read phrase pairs. Raises CorpusError naming an invalid line."""
    pairs = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                pairs.append(PhrasePair(**json.loads(line)))
            except (ValueError, TypeError, RecursionError):
                raise CorpusError(
                    "{path}, line {number}: not a phrase pair. Remove the file to have it created again.", path=path, number=number
                ) from None
    return pairs
