"""The cost of a method, from settings and sizes alone: nothing is loaded. `Method.cost` states it, the estimate adds it up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """A base as its config.json describes it, and how many weights it has."""

    d: int
    encoder: int
    decoder: int
    hidden: int  # units of a feed-forward block of the decoder
    words: int
    weights: int
    positions: int
    encoder_hidden: int  # units of a feed-forward block of the encoder

    @classmethod
    def of(cls, config: Mapping[str, Any], weights: int) -> Shape:
        return cls(
            int(config.get("d_model", 512)),
            int(config.get("encoder_layers", 6)),
            int(config.get("decoder_layers", 6)),
            int(config.get("decoder_ffn_dim", 2048)),
            int(config.get("decoder_vocab_size") or config.get("vocab_size", 32000)),
            weights,
            int(config.get("max_position_embeddings", 512)),
            int(config.get("encoder_ffn_dim", 2048)),
        )

    def layer(self, cross: bool, encoder: bool = False) -> int:
        """Weights of one layer of the decoder, with or without its cross-attention, or of the encoder."""
        hidden = self.encoder_hidden if encoder else self.hidden
        attention = 4 * (self.d * self.d + self.d)
        norms = (3 if cross else 2) * 2 * self.d
        return attention * (2 if cross else 1) + 2 * self.d * hidden + hidden + self.d + norms

    def part(self, which: str) -> float:
        """Weights of a part of the base, by the names of `engine.methods.weight_groups`."""
        decoder = self.decoder * self.layer(True)
        shares = {"all": 1.0, "encoder": 0.4, "embeddings": 0.4}
        return {"decoder": decoder, "cross_attention": 0.3 * decoder}.get(which, self.weights * shares.get(which, 0.01))


@dataclass(frozen=True)
class Workload:
    """The samples and the base that a cost is of; `learnt` and `held` are characters of sentences, without the held-out ones."""

    shape: Shape
    sentences: int
    sentence: float  # tokens per sentence
    learnt: float  # trained on
    held: float  # all, whatever is trained on
    tokens: float  # of `held`
    phrases: float
    domains: int
    sourced: float = 1.0  # share of the sentences with a source of their own

    def datastore(self) -> float:
        """Bytes of a vector for each token, with its index."""
        return self.tokens * (2 * self.shape.d + 12 + (280 if self.tokens > 20_000 else 0))


@dataclass(frozen=True)
class Cost:
    """What a method takes. Tokens are counted in plain forward passes of the base in full precision, where half precision is fast;
    the factors were measured with bench/paces.py.
    """

    weights: float = 0.0  # that training changes
    bytes_each: float = 4.0  # of a weight in the bundle
    training: float = 1.0  # tokens of forward passes that a token of training takes
    terms: float = 1.0  # how much longer that is with the terms that the settings add to the loss
    units: float | None = None  # that `prepare` goes over; None: the characters it learns from
    preparing: float = 0.12  # tokens of forward passes a unit
    warming: float = 0.0  # tokens of forward passes of a training before the training
    translates: bool = False  # training begins with the base's translations of all sources
    decoding: float = 1.0  # how much longer translating takes than with the base alone
    files: float = 0.0  # bytes that the bundle keeps beside the weights
