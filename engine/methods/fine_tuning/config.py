"""Settings of fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option
from engine.methods.weight_groups import BY_SAMPLES, WHICH

TARGETS = ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2")


@dataclass(frozen=True)
class FineTuningConfig(Options):
    """Fine-tuning."""

    kind: str = option(
        "full", "Copies of the base's own weights (full), or low-rank updates to them (lora).", choices=("full", "lora")
    )
    which: str = option(
        BY_SAMPLES,
        "Weights of the base that are tuned: all, a side's layers, the attention to the source, the embeddings, or only layer "
        "norms or biases. auto: all where most samples have a source of their own; else the decoder, since what the base wrote as "
        "sources teaches an encoder little.",
        choices=(BY_SAMPLES, *WHICH),
    )
    rank: int = option(16, "Rank of a low-rank update (lora).", low=1, high=1024)
    lora_alpha: float = option(32.0, "A low-rank update is multiplied by this value divided by its rank (lora).", low=0, high=4096)
    target_modules: tuple[str, ...] = option(
        ("q_proj", "v_proj"), "Linear maps that get a low-rank update (lora).", choices=TARGETS
    )
    lora_dropout: float = option(0.05, "Dropout before a low-rank update in training (lora).", low=0, high=0.9)
    shrink: float = option(
        1.0,
        "After training, interpolate this far from the base to the learned weights; below 1 is safer where the sources are noisy.",
        low=0,
        high=1,
    )
    speed: float = option(
        0.1,
        "Multiplier of the learning rate: weights that are already good must change slowly. Low-rank updates "
        "are new and use the full rate.",
        low=1e-4,
        high=10,
        advanced=True,
    )
    dropout: float | None = option(
        None, "Dropout in the base's layers while training; empty: as the base was trained, by its config.",
        low=0, high=0.9, advanced=True,
    )  # fmt: skip
    label_smoothing: float = option(0.0, "Label smoothing of the likelihood.", low=0, high=0.9, advanced=True)
    keep_close: float = option(
        0.0,
        "Weight of the mean square distance from the base's weights in the loss (full); larger keeps closer to the base.",
        low=0,
        advanced=True,
    )
