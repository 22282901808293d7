"""The user's sentences as a method gets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.base import LanguagePair
    from engine.corpora import Segment
    from engine.phrases import PhraseSet
    from engine.settings import Settings

__all__ = ["Samples", "SentencePair"]


@dataclass(frozen=True)
class SentencePair:
    """A source sentence and the user's sentence."""

    source: str
    target: str
    domain: str = ""
    synthetic: bool = True  # the source was written by the base
    support: float | None = None  # how well the source supports the target, of synthetic pairs


@dataclass
class Samples:
    """Everything that was made of the samples before the method's turn; see `Capabilities` for what is there when."""

    pair: LanguagePair
    train: Sequence[Segment]
    valid: Sequence[Segment]
    workspace: Path
    settings: Settings
    phrases: PhraseSet | None = None
    sentence_pairs: dict[str, list[SentencePair]] = field(default_factory=dict)  # "train" and "valid"

    def pairs(self, part: str = "train") -> list[SentencePair]:
        """The sentence pairs of a part; those that training keeps, where it keeps a share."""
        return self.sentence_pairs[part]

    @property
    def domains(self) -> list[str]:
        """The domains of the training sentences, in order of appearance."""
        return list(dict.fromkeys(segment.domain for segment in self.train))
