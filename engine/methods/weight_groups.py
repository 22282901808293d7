"""The parts of a base whose weights can be tuned, by name; apart from the code that needs torch."""

from __future__ import annotations

WHICH = ("all", "decoder", "encoder", "cross_attention", "embeddings", "layer_norms", "biases")
WHICH_HELP = (
    "Weights of the base that are tuned: all, a side's layers, the attention to the source, the embeddings, or only layer "
    "norms or biases."
)
