"""The base as a rewriting model, which reads and writes the target language, and noise for its input."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence

from engine.base import BaseModel
from engine.core.languages import language_message
from engine.errors import ModelError

UNKNOWN = 0.05  # maximum share of unknown tokens in target sentences that are read as a source


def rewriter_of(base: BaseModel) -> BaseModel:
    """The base as a model from its target language into the same language."""
    other = copy.copy(base)
    other.source = base.target
    return other


def check_rewriter(base: BaseModel, texts: Sequence[str]) -> None:
    """Raises ModelError if the base's source side cannot represent sentences of its target language."""
    config = base.model.config
    if not getattr(config, "share_encoder_decoder_embeddings", True):
        raise ModelError(
            "The base {base} has a vocabulary for each side, so its encoder cannot read {target}, and no rewriting "
            "model can start from it. Use a base with one vocabulary, or another method.",
            base=base.name,
            target=language_message(base.target),
        )
    ids = [token for row in rewriter_of(base).encode(list(texts)) for token in row]
    unknown = base.tokenizer.unk_token_id
    share = sum(token == unknown for token in ids) / max(1, len(ids))
    if share > UNKNOWN:
        raise ModelError(
            "The base {base} cannot read {target}: {share:.0%} of the tokens of your sentences are unknown to its "
            "source side. Use a base that translates both ways, or another method.",
            base=base.name, target=language_message(base.target), share=share,
        )  # fmt: skip


def noisy(ids: Sequence[int], share: float, words: Sequence[int], special: frozenset[int], draw: random.Random) -> list[int]:
    """The ids with a share of the non-special ones dropped or replaced by random `words`, half of each (Syed et al., 2020)."""
    results: list[int] = []
    for token in ids:
        if token in special or draw.random() >= share:
            results.append(token)
        elif draw.random() < 0.5:
            results.append(draw.choice(words))
    return results
