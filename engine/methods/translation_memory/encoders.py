"""The dual encoder of the retriever (paper 2, section 3.2).

    f(x, z) = E_src(x)ᵀ E_tgt(z)        E(x) = normalize(W Transformer([BOS], x)_[BOS])

Normalised vectors have zero mean and unit length, so f is in [-1, 1].

The paper's encoders learn from hundreds of thousands of pairs. To work with a few hundred, these are initialised such that they
retrieve relevant sentences from the start: as copies of the base's encoder for both languages (if they share embeddings), with
the same W for both, the mean of all states instead of the first state, and a bias that removes the common part of all sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from engine.base import BaseModel
from engine.decoding.translate import length_batches
from engine.methods.transformer import Inputs, make_layers, padded
from engine.methods.translation_memory.config import TranslationMemoryConfig

SAMPLE = 256  # sentences from which the common part is estimated


class SentenceEncoder(nn.Module):
    """Encodes sentences of one language as vectors. It uses the base's embeddings, which are not part of the module."""

    def __init__(self, base: BaseModel, side: str, config: TranslationMemoryConfig) -> None:
        super().__init__()
        copied = config.init == "base"
        self.mean = config.pooling == "mean"
        self.first = nn.Parameter(torch.randn(base.d_model))  # [BOS], which precedes the sentence
        # A base with shared embeddings often translates in both directions, so its encoder knows both languages.
        stacks = base.model.get_encoder(), base.model.get_decoder()
        like = "encoder" if stacks[0].embed_tokens.weight is stacks[1].embed_tokens.weight else side
        self.layers = make_layers(base, like, config.retriever_layers, cross=False, dropout=config.dropout, copied=copied)
        self.project = nn.Linear(base.d_model, config.vector_size or max(8, base.d_model // 2))
        nn.init.orthogonal_(self.project.weight)
        nn.init.zeros_(self.project.bias)
        self._inputs = (Inputs(base, side),)  # a tuple, so that nothing of the base is registered

    def state(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The final state (E, d) of each sentence, given ids (E, L) and a mask (E, L) that is true at tokens: that of the first
        position, or the mean over all positions.
        """
        words = self._inputs[0](ids).to(self.first.dtype)  # (E, L, d)
        states = torch.cat([self.first.expand(len(ids), 1, -1), words], dim=1)  # (E, L + 1, d)
        mask = F.pad(mask, (1, 0), value=True)  # (E, L + 1)
        for layer in self.layers:
            states = layer(states, mask)  # (E, L + 1, d)
        if not self.mean:
            return states[:, 0]  # (E, d)
        weights = mask.to(states.dtype)[..., None]  # (E, L + 1, 1)
        return (states * weights).sum(1) / weights.sum(1)  # (E, d)

    def vector(self, state: Tensor) -> Tensor:
        """The normalised vectors (E, v) for states (E, d)."""
        result = self.project(state).float()  # (E, v)
        return F.normalize(result - result.mean(-1, keepdim=True), dim=-1)  # (E, v)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.vector(self.state(ids, mask))  # (E, v)


class DualEncoder(nn.Module):
    """E_src and E_tgt."""

    def __init__(self, base: BaseModel, config: TranslationMemoryConfig) -> None:
        super().__init__()
        self.source = SentenceEncoder(base, "encoder", config)
        self.target = SentenceEncoder(base, "decoder", config)
        if config.init == "base":
            self.target.project.load_state_dict(self.source.project.state_dict())

    @torch.no_grad()
    def centre(self, sources: Sequence[list[int]], targets: Sequence[list[int]], pad: int, device: torch.device) -> None:
        """Set the biases of W so that they remove the mean state of each language, estimated from a sample of sentences."""
        for encoder, rows in ((self.source, sources), (self.target, targets)):
            encoder.eval()
            states = [encoder.state(*padded([row], pad, device)) for row in rows[:SAMPLE]]  # each (1, d)
            encoder.project.bias.copy_(-encoder.project.weight @ torch.cat(states).mean(0))
            encoder.train()


@torch.no_grad()
def encode_all(encoder: SentenceEncoder, rows: Sequence[list[int]], pad: int, device: torch.device) -> NDArray[np.float32]:
    """Vectors (N, v) of sentences given as ids, without dropout, rounded to half precision, in which they are stored."""
    size = encoder.project.weight.shape[0]
    vectors = np.zeros((len(rows), size), dtype=np.float32)
    training = encoder.training
    encoder.eval()
    try:
        for batch in length_batches([len(row) for row in rows], 8192):
            result = encoder(*padded([rows[i] for i in batch], pad, device))  # (E, v)
            vectors[batch] = result.half().float().cpu().numpy()
    finally:
        encoder.train(training)
    return vectors
