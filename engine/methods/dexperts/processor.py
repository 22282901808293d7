"""The mixture z + α (z⁺ - z⁻) in a search: the language models need the whole translation so far."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import LogitsProcessor

from engine.methods.dexperts.module import DExpertsModule, Memory


class Mixture(LogitsProcessor):
    """Adds the weighted difference to the scores of each hypothesis."""

    def __init__(self, module: DExpertsModule, weight: float) -> None:
        self.module, self.weight, self.memory = module, weight, Memory()

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """For prefixes (R, t) and scores (R, V), which are logits or log-probabilities; gives log-probabilities.

        Beam search adds them up over the tokens, so they are brought to a sum of one again. What is forbidden (-inf) stays so.
        """
        difference = self.module.next_difference(input_ids, self.memory).to(scores.dtype)  # (R, V)
        if not bool(difference.any()):
            return scores  # untrained: the base's own scores, bit for bit
        return torch.log_softmax(scores + self.weight * difference, dim=-1)  # (R, V)
