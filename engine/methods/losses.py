"""Likelihood of given translations under the base with whatever is attached to it, for the losses of methods."""

from __future__ import annotations

import torch

from engine.base import BaseModel
from engine.methods.interface import Batch


def encode_sources(base: BaseModel, batch: Batch) -> torch.Tensor:
    """The encoder's output (B, S, d): the precomputed one of the batch if any, otherwise that of the current encoder."""
    if batch.encoded is not None:
        return batch.encoded
    return base.encoder_states(batch.sources)  # (B, S, d)


def target_states(base: BaseModel, batch: Batch) -> torch.Tensor:
    """The decoder's last hidden states (M, d) at the M real target positions, row by row."""
    states = base.model.get_decoder()(
        input_ids=batch.inputs,
        encoder_hidden_states=encode_sources(base, batch),
        encoder_attention_mask=batch.mask,
        use_cache=False,
    ).last_hidden_state  # (B, T, d)
    return states[batch.labels != base.pad]  # (M, d)


def log_probabilities(base: BaseModel, batch: Batch) -> torch.Tensor:
    """Log-probabilities (M, V) of the M real target positions of a batch; the output layer skips padding."""
    logits = base.model.get_output_embeddings()(target_states(base, batch))  # (M, V)
    bias = getattr(base.model, "final_logits_bias", None)
    if bias is not None:
        logits = logits + bias  # (M, V)
    return logits.float().log_softmax(-1)  # (M, V)


def likelihood(base: BaseModel, log_p: torch.Tensor, batch: Batch, smoothing: float = 0.0) -> torch.Tensor:
    """Mean negative log-likelihood of the labels (nats per token), smoothed over the vocabulary."""
    labels = batch.labels[batch.labels != base.pad]  # (M,)
    nll = -log_p.gather(1, labels[:, None]).mean()  # ()
    return nll if not smoothing else (1 - smoothing) * nll - smoothing * log_p.mean()  # ()
