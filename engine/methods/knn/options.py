"""Settings of kNN decoding. Settings left open (none) are tuned on the held-out sentences."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option

INDEXES = ("flat", "hnsw", "ivfpq")
KEY_LOCATIONS = ("output", "ffn_input")
RETRIEVALS = ("auto", "sentence", "global")  # in a bundle, auto means global
MOST_WEIGHT = 0.99  # below 1, so that every token keeps a probability


@dataclass(frozen=True)
class KnnOptions(Options):
    """kNN decoding."""

    retrieval: str = option(
        "auto",
        "Where neighbours are retrieved: sentence (in the samples whose sources share the rarest words of the input, with a "
        "learned gate), global (in all samples, with one share); auto: what is better on held-out sentences.",
        choices=RETRIEVALS,
    )
    k: int | None = option(None, "Neighbours retrieved for each token; none: chosen on held-out sentences.", low=1, high=1024)
    shortlist: int | None = option(
        None, "sentence: samples that are read for an input sentence; none: chosen on held-out sentences.", low=1, high=1024
    )
    threshold: float | None = option(
        None, "sentence: cosine of the best neighbour at which half of λ is copied; none: a learned gate decides.", low=-1, high=1
    )
    temperature: float | None = option(
        None,
        "T: higher trusts far neighbours more; none: chosen on held-out sentences. It divides squared distances, which depend on "
        "the base's hidden size (global), or cosines (sentence, in place of the learned gate).",
        low=1e-3,
        high=1e6,
    )
    weight: float | None = option(
        None,
        "λ: the share of the neighbours in each token's probability, at most (sentence); none: chosen on held-out sentences.",
        low=0,
        high=MOST_WEIGHT,
    )
    adaptive: bool = option(
        False, "Let a small network, trained on the held-out sentences, choose share and neighbours for each token."
    )
    index: str = option(
        "auto",
        "How neighbours are searched: flat (exact), hnsw (graph), ivfpq (compressed); auto: by the number of entries.",
        choices=("auto", *INDEXES),
    )
    keys: str = option(
        "output",
        "Which hidden state is the key: the input of the output layer, or of the last feed-forward layer.",
        choices=KEY_LOCATIONS,
    )
    max_entries: int | None = option(
        None, "Most tokens in the datastore, from the first sentences on; none: all.", low=1, advanced=True
    )
    finalists: int = option(
        0, "Translate held-out sentences with this many of the likeliest settings and take the best BLEU; 0: do not.",
        low=0, high=20, advanced=True,
    )  # fmt: skip
    skip_above: float = option(
        1.0,
        "global: skip retrieval where the base gives a token at least this probability; 1: always retrieve. Saves time.",
        low=0.1,
        high=1,
        advanced=True,
    )
    graph_links: int = option(32, "hnsw: links of an entry.", low=4, high=128, advanced=True)
    graph_breadth: int = option(32, "hnsw: candidates kept in a search; more is slower and finds more.", low=1,
                                high=4096, advanced=True)  # fmt: skip
    lists: int | None = option(
        None, "ivfpq: lists that entries are assigned to (paper: 4096); none: chosen by the number of entries.", low=1, high=65536,
        advanced=True,
    )  # fmt: skip
    probe: int = option(32, "ivfpq: lists searched.", low=1, high=65536, advanced=True)
    code_bytes: int = option(64, "ivfpq: bytes that an entry is compressed to.", low=1, high=512, advanced=True)
    exact_distances: bool = option(
        True, "ivfpq: recompute the distances of the neighbours found from the keys themselves.", advanced=True
    )
    keep_keys: bool = option(
        True,
        "ivfpq: keep the keys in addition to their codes; without them the bundle is much smaller and distances are rough.",
        advanced=True,
    )
