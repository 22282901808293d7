"""How many weights a method trains over a base, from settings and shape alone: nothing is loaded.

Counts hold for the methods that come with the program; of any other nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Shape", "trained_weights"]


@dataclass(frozen=True)
class Shape:
    """A base as its config.json describes it, and how many weights it has."""

    d: int
    encoder: int
    decoder: int
    hidden: int  # units of a feed-forward block
    words: int
    weights: int
    positions: int

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
        )

    def layer(self, cross: bool) -> int:
        """Weights of one layer."""
        attention = 4 * (self.d * self.d + self.d)
        norms = (3 if cross else 2) * 2 * self.d
        return attention * (2 if cross else 1) + 2 * self.d * self.hidden + self.hidden + self.d + norms


def trained_weights(method: str, config: Any, shape: Shape, domains: int = 1) -> int | None:
    """The weights that training changes; None for a method that is not known."""
    count = COUNTS.get(method)
    return None if count is None else int(count(config, shape, domains))


def memory_adapter(config: Any, shape: Shape, domains: int) -> float:
    d = shape.d
    reader = 3 * d * d + (2 * d * d + d if config.gate else 0) + 1
    layers = len(set(config.layers)) if config.layers is not None else shape.decoder
    tuned = shape.weights if config.fine_tune == "all" else shape.weights // 2 if config.fine_tune != "none" else 0
    return layers * len(config.places) * reader + tuned


def sides(config: Any, shape: Shape) -> tuple[int, int]:
    """Encoder and decoder layers that a method within layers works at."""

    def number(side: str, there: int) -> int:
        if side not in config.sides:
            return 0
        chosen = getattr(config, f"{side}_layers")
        return there if chosen is None else len(set(chosen))

    return number("encoder", shape.encoder), number("decoder", shape.decoder)


def residual_adapter(config: Any, shape: Shape, domains: int) -> float:
    one = 2 * shape.d * config.bottleneck + 2 * shape.d + (config.bottleneck + shape.d if config.bias else 0)
    return sum(sides(config, shape)) * one


def houlsby_adapter(config: Any, shape: Shape, domains: int) -> float:
    encoder, decoder = sides(config, shape)
    blocks = set(config.places)
    one = 2 * shape.d * config.bottleneck + config.bottleneck + shape.d
    adapters = encoder * len(blocks - {"encoder_attn"}) + decoder * len(blocks)
    norms = (2 * encoder + 3 * decoder) * 2 * shape.d if config.layer_norms else 0
    return adapters * one + norms


def lhuc(config: Any, shape: Shape, domains: int) -> float:
    encoder, decoder = sides(config, shape)
    attention = (encoder + 2 * decoder) * shape.d if "attention" in config.places else 0
    forward = (encoder + decoder) * shape.hidden if "feed_forward" in config.places else 0
    return attention + forward + ((encoder + decoder) * shape.d if "layer" in config.places else 0)


def extreme(config: Any, shape: Shape, domains: int) -> float:
    speakers = domains if config.per_domain else 1
    return speakers * shape.words if config.rank is None else config.rank * (speakers + shape.words)


def domain_mixing(config: Any, shape: Shape, domains: int) -> float:
    k = max(2, domains)
    maps = 4 * shape.encoder + 8 * shape.decoder
    one = k * config.rank * 2 * shape.d if config.rank else k * shape.d * shape.d
    forward = (shape.encoder + shape.decoder) * 2 if config.feed_forward else 0
    wide = k * config.rank * (shape.d + shape.hidden) if config.rank else k * shape.d * shape.hidden
    return maps * one + forward * wide + (shape.encoder + shape.decoder) * k * (shape.d + 1)


def fine_tuning(config: Any, shape: Shape, domains: int) -> float:
    if config.kind == "lora":
        blocks = shape.encoder + 2 * shape.decoder
        return blocks * len(config.target_modules) * 2 * config.rank * shape.d
    share = {"all": 1.0, "decoder": 0.4, "encoder": 0.4, "cross_attention": 0.15, "embeddings": 0.4}
    return shape.weights * share.get(config.which, 0.01)


def rewrite(config: Any, shape: Shape, domains: int) -> float:
    return shape.weights


def ngram_memory(config: Any, shape: Shape, domains: int) -> float:
    per_side = config.layers * shape.layer(cross=True)
    gates = shape.decoder * (shape.layer(cross=True) // 3)
    return 2 * per_side + gates


def translation_memory(config: Any, shape: Shape, domains: int) -> float:
    encoder = config.retriever_layers * shape.layer(cross=False) + shape.d * (config.vector_size or shape.d // 2)
    retriever = {"trained": 2, "fixed_target": 1, "fixed": 0}[config.retriever] * encoder
    return retriever + config.memory_layers * shape.layer(cross=False) + 4 * shape.d * shape.d


def dexperts(config: Any, shape: Shape, domains: int) -> float:
    h = config.hidden or shape.d
    return 2 * (h * (shape.words + shape.positions) + config.layers * 12 * h * h)


def nothing(config: Any, shape: Shape, domains: int) -> float:
    return 0


COUNTS = {
    "memory_adapter": memory_adapter,
    "residual_adapter": residual_adapter,
    "houlsby_adapter": houlsby_adapter,
    "lhuc": lhuc,
    "extreme": extreme,
    "domain_mixing": domain_mixing,
    "fine_tuning": fine_tuning,
    "rewrite": rewrite,
    "ngram_memory": ngram_memory,
    "translation_memory": translation_memory,
    "dexperts": dexperts,
    "knn": nothing,
    "llm_prompt": nothing,
}
