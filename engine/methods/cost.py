"""The cost of a method, from settings and sizes without loading anything. Returned by `Method.cost` for the estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """The dimensions of a base from its config.json, and its number of weights."""

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
        """Number of weights of a decoder layer, with or without cross-attention, or of an encoder layer."""
        hidden = self.encoder_hidden if encoder else self.hidden
        attention = 4 * (self.d * self.d + self.d)
        norms = (3 if cross else 2) * 2 * self.d
        return attention * (2 if cross else 1) + 2 * self.d * hidden + hidden + self.d + norms

    def part(self, which: str) -> float:
        """Approximate number of weights in a part of the base, named as in `engine.methods.weight_groups`."""
        decoder = self.decoder * self.layer(True)
        shares = {"all": 1.0, "encoder": 0.4, "embeddings": 0.4}
        return {"decoder": decoder, "cross_attention": 0.3 * decoder}.get(which, self.weights * shares.get(which, 0.01))


@dataclass(frozen=True)
class Workload:
    """Sizes of the samples and the base for an estimate. `trained_characters` and
    `total_characters` do not include held-out sentences."""

    shape: Shape
    sentences: int
    sentence: float  # tokens per sentence
    trained_characters: float  # trained on
    total_characters: float  # all, including those not trained on
    tokens: float  # of `total_characters`
    phrases: float
    domains: int
    sourced: float = 1.0  # share of the sentences that come with a source

    def datastore(self) -> float:
        """Bytes of a datastore with one vector per token, including its index."""
        return self.tokens * (2 * self.shape.d + 12 + (280 if self.tokens > 20_000 else 0))


@dataclass(frozen=True)
class Cost:
    """The resources a method needs. Work is measured in tokens of a plain forward pass of the base in full precision, where half
    precision is fast; the factors come from bench/paces.py.
    """

    weights: float = 0.0  # number of trained weights
    bytes_each: float = 4.0  # bytes per weight in the bundle
    training: float = 1.0  # forward-pass tokens per training token
    terms: float = 1.0  # factor on `training` for additional loss terms that the settings enable
    units: float | None = None  # units that `prepare` processes; None: the characters trained on
    preparing: float = 0.12  # forward-pass tokens per unit
    warming: float = 0.0  # forward-pass tokens of a preliminary training
    translates: bool = False  # training starts by translating all sources with the base
    decoding: float = 1.0  # translation time relative to the base
    files: float = 0.0  # bytes in the bundle in addition to the weights
