"""What can be attached to a base for the length of one call."""

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
    """A plugin, several in a stack, or one for each row of a batch (`engine.plugins`)."""

    @property
    def needs_fixed_batch(self) -> bool:
        """Whether the rows of a batch must stay where they are while it is decoded."""

    @property
    def batches_beams_per_sentence(self) -> bool:
        """Whether cross-attention may take the hypotheses of a sentence together."""

    def attached(self, base: BaseModel, strength: float = 1.0) -> AbstractContextManager[None]:
        """Hooks in the base for the length of the block. Raises OptionError on a strength below 0 or above 2."""

    def logits_processors(self, base: BaseModel, strength: float = 1.0) -> Sequence[Any]:
        """What acts on the output distribution; nothing at strength 0."""

    def set_source(self, base: BaseModel, sources: torch.Tensor) -> None:
        """Take the source tokens (B, S) of the batch that comes next."""

    def on_batch_shrink(self, active: torch.Tensor) -> None:
        """Go on with these sentences (b,) of the batch, numbered from 0; the others are done."""

    def check_likelihood(self) -> None:
        """Raises OptionError when it gives no probabilities of given translations."""

    def routes(self, base: BaseModel, texts: Sequence[str]) -> Routes:
        """Where domain filters leave sources to the base: what acts on which of the sources, by their places; None is the base
        alone. Empty where it acts on all of them.
        """

    def translate(
        self,
        base: BaseModel,
        texts: Sequence[str],
        inner: Translate,
        strength: float,
        decoding: Decoding,
        progress: Progress,
    ) -> list[str] | None:
        """A translation made in a way of its own, or None; `inner` translates without this adapter."""


def active_adapter(base: BaseModel, source: str, adapter: Adapter | None, strength: float) -> Adapter | None:
    """What acts on a single source, None where the base alone translates it."""
    if adapter is None or not strength:
        return None
    return next((one for one, _ in adapter.routes(base, [source])), adapter)
