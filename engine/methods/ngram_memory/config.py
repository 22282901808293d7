"""Settings of the n-gram memory. Defaults follow the paper unless the help states otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option


@dataclass(frozen=True)
class NgramMemoryConfig(Options):
    """N-gram memory."""

    retrieval: str = option(
        "idf_ngram",
        "How sentences are retrieved: by the rare words of their n-grams, by those of the whole sentence, or "
        "by the encoder's vectors of their n-grams (the paper's best; slower).",
        choices=("idf_ngram", "idf_sentence", "dense_ngram"),
    )
    neighbours: int = option(10, "Sentence pairs retrieved per sentence in training; time grows with it.", low=1, high=100)
    neighbours_translating: int | None = option(
        10, "The same in translation; none: one for each n-gram, as in the paper.", low=1, high=1000
    )
    widths: tuple[int, ...] = option((6, 10, 18), "Widths of the n-grams.", low=2)
    memory: str = option(
        "source_target",
        "What a retrieved translation is encoded with: its own source, read together with the input sentence "
        "(CSTM in the paper); the input sentence alone (CTM); nothing (TM).",
        choices=("source_target", "target", "alone"),
    )
    layers: int = option(1, "Layers that encode each side of the retrieved pairs.", low=1, high=12)
    max_tokens: int = option(80, "Tokens of a retrieved sentence that are read; the rest is truncated.", low=4)
    dropout: float = option(0.1, "Dropout in these layers while training.", low=0, high=0.9)
    init: str = option(
        "base", "Untrained layers: copies of the base's own, or random as in the paper.", choices=("base", "random"), advanced=True
    )
    search_depth: int = option(64, "Cells searched of a large index of vectors (over 100,000 n-grams).", low=1, advanced=True)
