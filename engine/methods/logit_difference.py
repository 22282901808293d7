"""Methods that add a weighted difference of the scores of two language models to the base's logits: z + α (z⁺ - z⁻)."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engine.methods.interface import Batch, Method

if TYPE_CHECKING:
    import torch


class LogitDifference(Method):
    """Base class. The module has `config.weight`, `strength` (1 outside of `attach`) and `difference(inputs, real)`:
    (B, T, V) at all positions of the decoder inputs (B, T), or (M, V) at the positions where `real` (B, T) is true.
    """

    @abstractmethod
    def next_difference(self, module: Any) -> Callable[[torch.Tensor], torch.Tensor]:
        """A function that returns the difference (R, V) for the prefixes (R, t), called at each step of one search."""

    @contextlib.contextmanager
    def attach(self, base: Any, module: Any, strength: float = 1.0) -> Iterator[None]:
        """Add the weighted difference at the output layer when given translations are scored, from the whole decoder input.

        In a search the decoder receives one token at a time; there `logits_processors` adds the difference.
        """
        if strength == 0.0:
            yield
            return
        from engine.decoding.marian_step import observer

        inputs: list[torch.Tensor | None] = [None]

        @observer
        def remember(decoder: Any, args: Any, kwargs: Any) -> None:
            is_scoring = kwargs.get("use_cache") is False
            inputs[0] = kwargs.get("input_ids") if is_scoring else None  # (B, T)

        def add(head: Any, args: Any, logits: torch.Tensor) -> torch.Tensor | None:
            ids, inputs[0] = inputs[0], None
            if ids is None or logits.shape[:-1] != ids.shape:
                return None  # a search step, or selected positions, for which `log_probabilities` adds the difference
            return logits + (weight * module.difference(ids)).to(logits.dtype)  # (B, T, V)

        before, module.strength = module.strength, strength
        weight = strength * module.config.weight
        handles = [
            base.model.get_decoder().register_forward_pre_hook(remember, with_kwargs=True),
            base.model.get_output_embeddings().register_forward_hook(add),
        ]
        try:
            yield
        finally:
            module.strength = before
            for handle in handles:
                handle.remove()

    def logits_processors(self, base: Any, module: Any, strength: float) -> Sequence[Any]:
        from transformers import LogitsProcessor

        weight, difference = strength * module.config.weight, self.next_difference(module)

        class Mixture(LogitsProcessor):
            by_prefix = True

            def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
                """Log-probabilities for prefixes (R, t) and scores (R, V), which may be logits or log-probabilities.

                They are renormalised because beam search sums them over tokens. Forbidden tokens (-inf) remain forbidden.
                """
                change = difference(input_ids).to(scores.dtype)  # (R, V)
                if not bool(change.any()):
                    return scores  # untrained: exactly the base's scores
                return (scores + weight * change).log_softmax(-1)  # (R, V)

        return [Mixture()]

    def log_probabilities(self, base: Any, module: Any, batch: Batch) -> torch.Tensor:
        """Log-probabilities of the mixture at the real target positions."""
        base_log_p = super().log_probabilities(base, module, batch)  # (M, V)
        difference = module.difference(batch.inputs, batch.labels != base.pad)  # (M, V)
        return (base_log_p + module.strength * module.config.weight * difference.float()).log_softmax(-1)  # (M, V)
