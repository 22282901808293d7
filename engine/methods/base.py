"""The interface of a method of customization, and the record of what it needs and offers."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.options import Options
from engine.progress import Progress

if TYPE_CHECKING:
    import torch
    from torch import nn

    from engine.base import BaseModel, LanguagePair
    from engine.memory import Memory
    from engine.phrases import PhraseSet

__all__ = ["Artefacts", "Batch", "Capabilities", "Loss", "Method"]


@dataclass(frozen=True)
class Capabilities:
    """What a method needs and offers; the studio and the command line build themselves from it."""

    title: str
    summary: str
    source: str  # the paper
    needs_phrases: bool = False
    needs_bilingual: bool = False
    needs_domains: int = 1
    trains: bool = True
    identity_at_start: bool = True
    offers_strength: bool = True
    offers_reads: bool = False
    offers_proportions: bool = False

    def to_mapping(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass
class Artefacts:
    """What a method made of the samples before training: files in the workspace that go into the bundle."""

    memory: Memory | None = None
    files: dict[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """One training batch: the frozen encoder's output, computed once, and the target side."""

    encoded: torch.Tensor  # (B, S, d), without gradient
    mask: torch.Tensor  # (B, S), 1 at source tokens
    inputs: torch.Tensor  # (B, T) decoder input
    labels: torch.Tensor  # (B, T), padding where there is no token
    step: int  # updates done before this batch


@dataclass(frozen=True)
class Loss:
    """`total` is what is minimised, a mean a target token; `parts` are its terms for the log."""

    total: torch.Tensor
    parts: Mapping[str, float]


class Method(ABC):
    """One way to customize a frozen base. Stateless: all state is in the module it builds and the artefacts' files."""

    name: ClassVar[str]
    config_class: ClassVar[type[Options]]
    capabilities: ClassVar[Capabilities]

    @abstractmethod
    def prepare(
        self, phrases: PhraseSet | None, pair: LanguagePair, config: Any, workspace: Path, progress: Progress
    ) -> Artefacts:
        """Make what training needs from the samples; finished files in the workspace are used again."""

    @abstractmethod
    def build(self, base: BaseModel, artefacts: Artefacts, config: Any) -> nn.Module:
        """A new, untrained module for this base. `state_dict` holds exactly the trained weights."""

    @abstractmethod
    def attach(self, base: BaseModel, module: nn.Module, strength: float = 1.0) -> AbstractContextManager[None]:
        """Hook the module into the base for the length of a `with` block; afterwards the base is as before."""

    @abstractmethod
    def loss(self, base: BaseModel, module: nn.Module, batch: Batch) -> Loss:
        """The training loss of a batch; the module is attached. Randomness comes from torch's global generator."""

    def complete(self, module: nn.Module) -> None:  # noqa: B027 - most methods need nothing here
        """Called once after training, before the weights are saved."""

    def finish(self, module: nn.Module) -> None:  # noqa: B027 - most methods need nothing here
        """Prepare a trained module for decoding: whatever is constant from now on is computed here, once."""

    def logits_processors(self, base: BaseModel, module: nn.Module, strength: float) -> Sequence[Any]:
        """transformers LogitsProcessors for methods that act on the output distribution."""
        return ()

    def reads(
        self, base: BaseModel, module: nn.Module, source: str, translation: str, top: int = 5
    ) -> list[dict[str, Any]]:
        """What each token of a translation read from memory; empty where the method has none."""
        return []
