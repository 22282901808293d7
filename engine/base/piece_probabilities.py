"""The probability of each vocabulary piece in general text, if the vocabulary is a unigram model (Kudo, 2018)."""

from __future__ import annotations

import math

from engine.base.model import BaseModel

# Bounds of the sum of all probabilities. The scores of a BPE vocabulary are ranks and have a different sum.
NEARLY_ONE = 0.5, 1.5


def piece_probabilities(base: BaseModel) -> dict[int, float]:
    """{id: probability} of the source pieces in the text that the vocabulary was made from; empty if it has no probabilities."""
    tokenizer = base.tokenizer
    model = getattr(tokenizer, "spm_source", None) or getattr(tokenizer, "sp_model", None)
    if model is None:
        return {}
    scores = {model.id_to_piece(i): model.get_score(i) for i in range(model.get_piece_size())}
    # Control characters and similar pieces have the score 0.
    shares = {piece: math.exp(score) for piece, score in scores.items() if score < 0}
    if not NEARLY_ONE[0] < sum(shares.values()) < NEARLY_ONE[1]:
        return {}
    ids = tokenizer.convert_tokens_to_ids(list(shares))
    return {id: share for id, share in zip(ids, shares.values(), strict=True) if id != tokenizer.unk_token_id}
