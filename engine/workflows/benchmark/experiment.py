"""What an experiment of a paper is: which systems over which texts, what is measured, what the paper found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DOMAINS = ("it", "medical", "law", "koran")
BASE_DIFFERS = "An own base of 12M parameters in place of one trained on the WMT data; its BLEU is far lower."


@dataclass(frozen=True)
class Variant:
    """A row: its name in the paper, the system (a method, with +knn for kNN decoding on top), flags of `tailormt customize`
    beside the usual, and the paper's figures by task and measure. `sentences` is a number of samples of its own.

    `learn` are tasks from whose samples the plugin learns, each a domain, in place of the task at hand; `swap` then gives it
    the samples of the task at hand without training.
    """

    label: str
    system: str
    flags: tuple[str, ...] = ()
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    sentences: int | None = None
    learn: tuple[str, ...] = ()
    swap: bool = False


@dataclass(frozen=True)
class Experiment:
    """`text` is what is translated: the task's "test", or "dev" (held-out sentences whose sources are machine translations,
    as the paper has them). `measures` are columns: bleu, perplexity, classifier, valid_loss (the last and the lowest),
    own@encoder and own@decoder (the share that held-out words have of their own domain), or seconds by batch size.
    `pairs`: samples keep their own sources, where a method would else write them by translating back.
    """

    title: str
    tasks: tuple[str, ...]
    variants: tuple[Variant, ...]
    measures: tuple[str, ...] = ("bleu",)
    text: str = "test"
    differs: str = ""
    pairs: bool = False


def method_option(*pairs: str) -> tuple[str, ...]:
    """The settings of a method as flags."""
    return tuple(part for pair in pairs for part in ("--method-option", pair))


def tests(*figures: float) -> dict[str, dict[str, float]]:
    """BLEU of IT, medical, law and Koran, in this order."""
    return {task: {"bleu": figure} for task, figure in zip(DOMAINS, figures, strict=True)}
