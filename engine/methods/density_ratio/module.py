"""The log of the ratio of two densities of the next token, at positions of decoder inputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.methods.density_ratio.config import DensityRatioConfig
from engine.methods.density_ratio.ngrams import NONE, Ngrams


class DensityRatio(nn.Module):
    """log p(y | h) by the samples, less log q(y | h), where q is what `config.against` says. Nothing in it is trained."""

    def __init__(self, style: Ngrams, general: Ngrams | None, config: DensityRatioConfig) -> None:
        super().__init__()
        self.style, self.general, self.config = style, general, config
        self.strength = 1.0  # of the block that it is attached for

    def after(self, history: Tensor) -> Tensor:
        """After the last decoder inputs (R, h): (R, V)."""
        result = self.style(history)  # (R, V)
        if self.config.against == "unigrams":
            return result - self.style.unigram.log()  # (R, V)
        return result if self.general is None else result - self.general(history)  # (R, V)

    def next_difference(self, prefixes: Tensor) -> Tensor:
        """After each prefix (R, t): (R, V)."""
        return self.after(prefixes[:, 1 - self.style.order :] if self.style.order > 1 else prefixes[:, :0])

    def difference(self, inputs: Tensor, real: Tensor | None = None) -> Tensor:
        """At every position of decoder inputs (B, T): (B, T, V), or at those where `real` (B, T) is true: (M, V)."""
        history = histories(inputs, self.style.order - 1)  # (B, T, h)
        if real is not None:
            return self.after(history[real])  # (M, V)
        return self.after(history.flatten(0, 1)).view(*inputs.shape, -1)  # (B, T, V)


def histories(inputs: Tensor, length: int) -> Tensor:
    """The last `length` decoder inputs up to each position, from inputs (B, T): (B, T, h)."""
    padded = torch.nn.functional.pad(inputs, (max(0, length - 1), 0), value=NONE)  # (B, h - 1 + T)
    return padded.unfold(1, length, 1) if length else inputs[..., None][..., :0]  # (B, T, h)
