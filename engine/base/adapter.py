"""The protocol of objects that can be attached to a base for the duration of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from engine.base.decoding_options import Decoding
from engine.base.model import BaseModel
from engine.core.progress import Progress

if TYPE_CHECKING:
    import torch

Translate = Callable[[Sequence[str]], list[str]]
Routes = Sequence[tuple["Adapter | None", list[int]]]


class Adapter(Protocol):
    """A plugin, a stack of plugins, or one plugin for each row of a batch (`engine.plugins`)."""

    @property
    def needs_fixed_batch(self) -> bool:
        """Whether finished sentences must remain in the batch until it is decoded."""

    @property
    def batches_beams_per_sentence(self) -> bool:
        """Whether cross-attention may be called once for all hypotheses of a sentence."""

    def attached(self, base: BaseModel, strength: float = 1.0) -> AbstractContextManager[None]:
        """Hooks in the base for the duration of the block. Raises OptionError on a strength below 0 or above 2."""

    def logits_processors(self, base: BaseModel, strength: float = 1.0) -> Sequence[Any]:
        """Processors of the output distribution; empty at strength 0."""

    def set_source(self, base: BaseModel, sources: torch.Tensor) -> None:
        """Called with the source tokens (B, S) before each batch."""

    def on_batch_shrink(self, active: torch.Tensor) -> None:
        """Called with the indices (b,) of the sentences that remain when finished ones leave the batch."""

    def check_likelihood(self) -> None:
        """Raises OptionError if the adapter cannot score given translations."""

    def routes(self, base: BaseModel, texts: Sequence[str]) -> Routes:
        """(adapter or None for the base, indices of texts) if domain filters assign some texts to the base.

        Empty if this adapter translates all of them.
        """

    def translate(
        self, base: BaseModel, texts: Sequence[str], inner: Translate, strength: float, decoding: Decoding, progress: Progress
    ) -> list[str] | None:
        """Translations of a method that does not work inside the base, otherwise None; `inner` translates without this adapter."""


def active_adapter(base: BaseModel, source: str, adapter: Adapter | None, strength: float) -> Adapter | None:
    """The adapter that translates a single source; None if the base does."""
    if adapter is None or not strength:
        return None
    return next((routed for routed, _ in adapter.routes(base, [source])), adapter)
