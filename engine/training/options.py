"""Settings of training and the three budgets."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.options import Options, option
from engine.errors import OptionError
from engine.messages import mark


@dataclass(frozen=True)
class TrainingOptions(Options):
    """Training."""

    max_updates: int = option(20_000, "Maximum number of updates (the paper: 20,000 of 8,192 tokens).", low=0)
    max_epochs: int | None = option(
        None, "Maximum passes over the samples; more would memorise a small corpus. None: no limit.", low=1
    )
    max_minutes: float | None = option(None, "Stop training after this many minutes and keep the best; none: no limit.", low=0)
    tokens_per_batch: int = option(
        8192, "Tokens of the longer side in a batch, padding included; lower it when memory is short.", low=32
    )
    keep_pairs: float = option(
        1.0,
        "Share of the synthetic pairs to train on: those with the most plausible sources. Memories contain all pairs.",
        low=0.05,
        high=1,
    )
    replay: float = option(
        0.0,
        "Share of the target tokens that are general text as translated by the base, so that training does not affect other text.",
        low=0,
        high=0.9,
    )
    domain_filter: str = option(
        "auto",
        "Leave sentences that are unlike the samples to the base. auto: method auto does so where a better method would "
        "otherwise affect other text.",
        choices=("auto", "on", "off"),
    )
    accumulate: int = option(1, "Batches whose gradients are added up before an update.", low=1)
    learning_rate: float = option(2e-4, "Peak learning rate.", low=1e-7, high=1)
    warmup: int = option(100, "Updates over which the learning rate rises to its peak.", low=0)
    schedule: str = option(
        "inverse_sqrt",
        "How the learning rate falls after the warm-up: with the inverse square root of the update (the papers), or linearly to "
        "zero at the last update.",
        choices=("inverse_sqrt", "linear"),
    )
    optimizer: str = option("adam", "Optimizer.", choices=("adam", "adamw"), advanced=True)
    weight_decay: float = option(0.0, "Decoupled weight decay (adamw).", low=0, high=1, advanced=True)
    beta1: float = option(0.9, "Adam's decay of the mean.", low=0, high=0.9999, advanced=True)
    beta2: float = option(0.98, "Adam's decay of the square.", low=0, high=0.99999, advanced=True)
    clip_norm: float = option(1.0, "Largest gradient norm; 0: no clipping.", low=0, advanced=True)
    validate_every: int = option(500, "Updates between two validations.", low=1)
    watch: int = option(
        0,
        "Held-out sentences of the samples, and as many of general text, that are translated greedily at each validation to "
        "monitor the style's BLEU and that of general text; 0: none.",
        low=0,
        high=500,
    )
    patience: int = option(5, "Stop after this many validations without improvement; 0: never.", low=0)
    checkpoint_every: int = option(500, "Updates between two checkpoints.", low=1, advanced=True)
    seed: int = option(1, "Random seed.", low=0)


# Tuned for a CPU with two cores on 2,000 sentences of one author (bench/README.md). Methods override budgets in `Method.budgets`.
# More updates (twice those of `quick`; on 37,000 sentences, three times those of `balanced`) lower the loss on back-translations
# further, but not the loss on real sources.
BUDGETS: dict[str, dict[str, object]] = {
    mark("quick"): dict(max_updates=200, tokens_per_batch=1024, learning_rate=2e-3, warmup=20, schedule="linear", keep_pairs=0.6,
                  validate_every=50, patience=2, checkpoint_every=50, max_minutes=3, replay=0.3),
    mark("balanced"): dict(max_updates=1200, max_epochs=7, tokens_per_batch=1024, learning_rate=1e-3, warmup=50, schedule="linear",
                     keep_pairs=0.6, validate_every=100, patience=3, checkpoint_every=100, max_minutes=30, replay=0.3),
    mark("best"): dict(),
}  # fmt: skip


def budget_options(budget: str, method: str) -> dict[str, dict[str, object]]:
    """The settings in which a budget differs from a method's defaults: {"training": {...}, "method": {...}}.

    Raises OptionError on an unknown budget, InputError on an unknown method.
    """
    from engine.methods import get_method

    if budget not in BUDGETS:
        raise OptionError("budget: {budget!r} is not one of {budgets}.", budget=budget, budgets=", ".join(BUDGETS))
    extra = get_method(method).budgets.get(budget, {})
    return {"training": {**BUDGETS[budget], **extra.get("training", {})}, "method": dict(extra.get("method", {}))}
