"""Settings of the translation memory. Defaults follow the paper unless the help states otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option


@dataclass(frozen=True)
class TranslationMemoryConfig(Options):
    """Translation memory."""

    neighbours: int = option(5, "Sentences retrieved from the memory for each input sentence.", low=1, high=100)
    retriever: str = option(
        "trained",
        "What keeps training after the warm start: both encoders of the retriever, the source encoder alone "
        "(cheaper: the index stays), or neither.",
        choices=("trained", "fixed_target", "fixed"),
    )
    retriever_layers: int = option(3, "Layers of each encoder of the retriever.", low=1, high=12)
    memory_layers: int = option(4, "Layers of the encoder that reads the retrieved sentences.", low=0, high=12)
    vector_size: int | None = option(
        None, "Dimensions of the vector used to retrieve a sentence; none: half the base's hidden size.", low=8
    )
    pooling: str = option(
        "mean",
        "A sentence's vector comes from the mean of its words' states, which finds something before it has learnt anything, or "
        "from the first position alone (paper).",
        choices=("mean", "first"),
        advanced=True,
    )
    warm_updates: int = option(500, "Maximum updates of the retriever's warm start; 0: none.", low=0)
    warm_batch: int = option(64, "Sentence pairs in a batch of the warm start, each the others' wrong answers.", low=2)
    warm_learning_rate: float = option(1e-4, "Peak learning rate of the warm start.", low=1e-7, high=1)
    warm_temperature: float = option(
        0.1, "Divides the scores in the warm start's softmax; the paper has none (1).", low=1e-3, high=10, advanced=True
    )
    warm_words: str = option(
        "mean",
        "The warm start's loss of a sentence's words: their mean, which leaves the sentences' own loss its weight, or their sum "
        "(paper).",
        choices=("mean", "sum"),
        advanced=True,
    )
    refresh_every: int = option(3000, "Updates between two refreshes of the index, where the retriever is trained.", low=1)
    refresh_waits: bool = option(
        True,
        "A refresh made in the background takes effect exactly one interval later, so that a resumed training equals an "
        "undisturbed one; without, as soon as it is ready.",
        advanced=True,
    )
    max_tokens: int = option(80, "Tokens of a retrieved sentence that are read; the rest is truncated.", low=4)
    dropout: float = option(0.1, "Dropout in the trained layers.", low=0, high=0.9)
    copy: bool = option(True, "Attention to the memory is a probability of copying too.", advanced=True)
    init: str = option(
        "base", "Untrained parts: the base's own layers and embeddings (learns on few sentences), or random (paper).",
        choices=("base", "random"), advanced=True,
    )  # fmt: skip
    search_depth: int = option(64, "Cells searched of a large index (100,000 sentences or more).", low=1, advanced=True)
