"""The user's sentences as methods receive them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.corpora import Segment
from engine.corpora.types import SentencePair

if TYPE_CHECKING:
    from engine.base import LanguagePair
    from engine.phrases import PhraseSet


@dataclass
class Samples:
    """The samples and the data derived from them before `Method.prepare`; `Capabilities` states which data a method needs."""

    pair: LanguagePair
    train: Sequence[Segment]
    valid: Sequence[Segment]
    workspace: Path
    settings: Settings
    phrases: PhraseSet | None = None
    sentence_pairs: dict[str, list[SentencePair]] = field(default_factory=dict)  # "train", "memory" and "valid"

    def pairs(self, part: str = "train") -> list[SentencePair]:
        """The sentence pairs of a part. "train": the share of the pairs selected for training; "memory": all training pairs, for
        retrieval, with an empty source if none could be generated; "valid": the held-out pairs.
        """
        if part == "memory" and part not in self.sentence_pairs:
            return self.sentence_pairs["train"]
        return self.sentence_pairs[part]

    def general_pairs(self, progress: Progress) -> list[SentencePair]:
        """Pairs of general text, with which a method can learn to leave the base unchanged; empty if none are bundled."""
        from engine.evaluation.general_text import learnable_pairs

        targets = [segment.text for segment in (*self.train, *self.valid)]
        return learnable_pairs(self.pair, self.settings, exclude=targets, progress=progress)

    @property
    def sourced(self) -> float:
        """The share of the training sentences that come with a source."""
        return sum(segment.source is not None for segment in self.train) / max(1, len(self.train))

    @property
    def domains(self) -> list[str]:
        """The domains of the training sentences, in order of appearance."""
        return list(dict.fromkeys(segment.domain for segment in self.train))


def with_sources(segments: Sequence[Segment], backward: Any, partial: Path, progress: Progress) -> list[SentencePair]:
    """Sentence pairs of segments. Missing sources are back-translated with the base `backward`, or left empty if it is None."""
    from engine.decoding.back_translation import write_back

    missing = [segment.text for segment in segments if segment.source is None]
    sources = iter(write_back(backward, missing, partial, progress) if backward and missing else [""] * len(missing))
    pairs = [
        SentencePair(
            next(sources) if segment.source is None else segment.source, segment.text, segment.domain, segment.source is None
        )
        for segment in segments
    ]
    return [pair for pair in pairs if pair.source or backward is None]
