"""Settings of the memory-augmented adapter. Defaults follow the paper; `RELEASED_CODE` has the options of the authors' code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.core.options import Options, option
from engine.memory.layer_assignment import ORDERS
from engine.memory.record import POOLING
from engine.methods.weight_groups import BY_SAMPLES, WHICH

ATTENTIONS = ("self_attn", "encoder_attn")
RETRIEVALS = ("sentence", "global")
SEARCHES = ("auto", "exact", "top_k")
RELEASED_BOUNDS = (3, 4, 5, 7, 8, 10)  # longest phrase of each of six layers, in subwords


@dataclass(frozen=True)
class MemoryAdapterConfig(Options):
    """Memory-augmented adapter."""

    retrieval: str = option(
        "global",
        "What a reader may read: sentence (of the few samples whose sources share the rarest words of the input, what comes next: "
        "quick and sharp), or global (the paper: all phrases that its layer remembers).",
        choices=RETRIEVALS,
    )
    shortlist: int = option(8, "sentence: samples that are read for an input sentence.", low=1, high=256)
    reading_layers: int = option(
        2, "sentence: decoder layers that read, counted from the top, where `layers` names none.", low=1, advanced=True
    )
    key_size: int = option(
        64, "sentence: numbers of a key, in the directions in which states vary most.", low=4, high=4096, advanced=True
    )
    bottleneck: int = option(
        0,
        "Size of a bottleneck adapter after each feed-forward of the decoder, learned along with the readers; it takes up a style "
        "that no single sample shows. 0: none (paper).",
        low=0,
        high=16_384,
    )
    temperature: float = option(
        0.5,
        "T in equation 4: lower reads fewer phrases more sharply. The paper: 0.5; 0.1 for law and medicine.",
        low=1e-3,
        high=100,
    )
    alpha: float = option(5.0, "Weight of the likelihood with parts of the memory dropped (equation 9).", low=0, high=100)
    beta: float = option(5.0, "Weight of the agreement between the two passes (equation 9).", low=0, high=100)
    memory_dropout: float = option(0.1, "Probability that memory is dropped in the second pass.", low=0, high=1)
    dropout_unit: str = option(
        "layer",
        "What is dropped: a layer's whole memory (paper), each reader's on its own (released code), or single items.",
        choices=("layer", "reader", "item"),
    )
    phrases_per_layer: int | None = option(
        None,
        "Phrases that each layer stores: the most typical of each length, in proportion; none: all. Memory and time grow with it.",
        low=1,
    )
    shrink: float = option(
        1.0,
        "After training, interpolate this far from the base to the learned weights; below 1 is safer where the sources are noisy.",
        low=0,
        high=1,
    )
    order: str = option("short_to_long", "How phrase lengths are assigned to layers, from the bottom up.", choices=ORDERS)
    length_unit: str = option(
        "parser",
        "What a phrase's length is counted in: the parser's tokens, or the base's pieces (released code).",
        choices=("parser", "pieces"),
        advanced=True,
    )
    bounds: tuple[int, ...] | None = option(
        None,
        "Longest phrase of each decoder layer, from the bottom up; longer ones are dropped. None: parts of even size. "
        "Released code: 3, 4, 5, 7, 8, 10.",
        low=1,
        advanced=True,
    )
    aligner: str = option(
        "auto",
        "How phrases get their sources in samples that have their own: by word alignment, with eflomal if "
        "installed and otherwise with the base's attention (auto), with one of the two, or none: by "
        "back-translation alone.",
        choices=("auto", "eflomal", "attention", "none"),
    )
    round_trip: bool = option(
        False, "Translate phrases there and back, and drop those that return far longer or shorter (released code).", advanced=True
    )
    layers: tuple[int, ...] | None = option(None, "Decoder layers with readers, from 0; none: all.", low=0, advanced=True)
    places: tuple[str, ...] = option(
        ATTENTIONS, "Where memory is read: target memory at self-attention, source memory at cross-attention.",
        choices=ATTENTIONS, advanced=True,
    )  # fmt: skip
    gate: bool = option(True, "Mix reading and anchor by a learned gate (equation 5); without: the reading alone.", advanced=True)
    start: str = option(
        "identity", "Untrained adapter: changes nothing, or mixes at random as in the released code.",
        choices=("identity", "released_code"), advanced=True,
    )  # fmt: skip
    init: str = option(
        "base", "Untrained readers: read as the base's own attention would, or at random (released code).",
        choices=("base", "random"), advanced=True,
    )  # fmt: skip
    bias: bool = option(False, "Biases in the adapter's linear maps (released code).", advanced=True)
    scale_query: bool = option(False, "Divide queries by the square root of their size (released code).", advanced=True)
    search: str = option(
        "auto",
        "Reading the memory once the plugin is trained: every phrase (exact), or the likeliest ones and the rest by clusters "
        "(top_k, needs faiss); auto: exact up to 50,000 phrases a layer, and on a GPU.",
        choices=SEARCHES,
        advanced=True,
    )
    top_k: int = option(32, "top_k: phrases that are read exactly.", low=1, high=4096, advanced=True)
    search_breadth: int = option(
        32, "top_k: candidates kept in a search; more is slower and finds more.", low=1, high=4096, advanced=True
    )
    pooling: str = option("mean", "How a phrase's tokens become one vector.", choices=POOLING, advanced=True)
    max_length_ratio: float = option(
        5.0, "Drop a phrase pair when one side has this many times the other's pieces.", low=1.1, advanced=True
    )
    label_smoothing: float = option(0.0, "Label smoothing of the likelihoods (released code: 0.1).", low=0, high=0.9, advanced=True)
    likelihood_updates: int = option(0, "First updates with the plain likelihood only (released code: 100).", low=0, advanced=True)
    base_dropout: float | None = option(
        0.0,
        "Ordinary dropout in the base's layers while training (released code: 0.1); empty: as the base was trained, by its config.",
        low=0,
        high=0.9,
        advanced=True,
    )
    fine_tune: str = option(
        "none",
        "Train the adapter together with these weights of the base (paper, table 7); the plugin grows by them. auto: all where "
        "most samples have a source of their own, else the decoder's; none: the adapter alone.",
        choices=("none", BY_SAMPLES, *WHICH),
        advanced=True,
    )
    fine_tune_speed: float = option(
        0.1, "The learning rate of the base's weights, as a share of the adapter's.", low=1e-4, high=10, advanced=True
    )


# Settings of the authors' released code that differ from the paper, without its `bounds`, which are for six decoder layers.
RELEASED_CODE: dict[str, Any] = dict(
    length_unit="pieces", round_trip=True, dropout_unit="reader", start="released_code", init="random", bias=True,
    scale_query=True, pooling="sum_with_eos", label_smoothing=0.1, likelihood_updates=100, base_dropout=0.1,
)  # fmt: skip
