"""The log ratio of two densities of the next token, at positions of decoder inputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.methods.density_ratio.config import DensityRatioConfig
from engine.methods.density_ratio.ngrams import NONE, Ngrams


class DensityRatio(nn.Module):
    """log p(y | h) - log q(y | h), with p from the samples and q according to `config.against`. Has no trained weights."""

    def __init__(self, style: Ngrams, general: Ngrams | None, config: DensityRatioConfig) -> None:
        super().__init__()
        self.style, self.general, self.config = style, general, config
        self.strength = 1.0  # set by `attach`

    def after(self, history: Tensor) -> Tensor:
        """The log ratio (R, V) after the last decoder inputs (R, h)."""
        result = self.style(history)  # (R, V)
        if self.config.against == "unigrams":
            return result - self.style.unigram.log()  # (R, V)
        return result if self.general is None else result - self.general(history)  # (R, V)

    def next_difference(self, prefixes: Tensor) -> Tensor:
        """The log ratio (R, V) after each prefix (R, t)."""
        return self.after(prefixes[:, 1 - self.style.order :] if self.style.order > 1 else prefixes[:, :0])

    def difference(self, inputs: Tensor, real: Tensor | None = None) -> Tensor:
        """The log ratio (B, T, V) at all positions of decoder inputs (B, T), or (M, V) where `real` (B, T) is true."""
        history = histories(inputs, self.style.order - 1)  # (B, T, h)
        if real is not None:
            return self.after(history[real])  # (M, V)
        return self.after(history.flatten(0, 1)).view(*inputs.shape, -1)  # (B, T, V)


def histories(inputs: Tensor, length: int) -> Tensor:
    """The last `length` decoder inputs (B, T, h) up to each position of inputs (B, T)."""
    padded = torch.nn.functional.pad(inputs, (max(0, length - 1), 0), value=NONE)  # (B, h - 1 + T)
    return padded.unfold(1, length, 1) if length else inputs[..., None][..., :0]  # (B, T, h)
