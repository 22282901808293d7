"""Definitions of the papers' experiments: systems, texts, measures and the papers' figures. The experiments are in
experiments.toml.

Papers 2 and 3 train the whole model with its memory on authentic pairs; here the base is frozen, also with authentic pairs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Variant:
    """A row: its name in the paper, the system (a method, with +knn for kNN decoding on top), extra flags of `tailormt customize`,
    and the paper's figures by task and measure. `sentences` overrides the number of samples.

    `learn` are tasks whose samples the plugin learns from, each as a domain, instead of the current task; `swap` then gives it the
    current task's samples without training.
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
    """`text` is the text to translate: the task's "test", or "dev" (held-out sentences whose sources are machine translations, as
    in the paper). `measures` are columns: bleu, perplexity, classifier, valid_loss (the lowest), own@encoder and own@decoder (the
    mean proportion of their own domain over held-out words), or seconds by batch size. `pairs`: samples keep their own sources,
    which a method would otherwise write by back-translation. Without `variants`, those of `layer_variants` are used.
    """

    title: str
    tasks: tuple[str, ...]
    variants: tuple[Variant, ...]
    measures: tuple[str, ...] = ("bleu",)
    text: str = "test"
    differs: str = ""
    pairs: bool = False


def read_variant(definition: Mapping[str, Any]) -> Variant:
    """A variant from the file; its `method` and `phrases` settings become flags."""
    values = dict(definition)
    flags = [
        part
        for flag, key in (("--method-option", "method"), ("--phrase-option", "phrases"))
        for setting in values.pop(key, "").format(**SHARED).split()
        for part in (flag, setting)
    ]
    return Variant(**{**values, "flags": tuple(flags), "learn": tuple(values.get("learn", ()))})


def read_experiment(definition: Mapping[str, Any]) -> Experiment:
    """An experiment from the file."""
    converted = {
        "tasks": tuple(definition["tasks"]),
        "variants": tuple(map(read_variant, definition["variants"])),
        "measures": tuple(definition.get("measures", Experiment.measures)),
        "differs": definition.get("differs", "").format(**SHARED),
    }
    return Experiment(**{**definition, **converted})


def layer_variants(layers: int) -> tuple[Variant, ...]:
    """Table 6 of paper 1 for a base with `layers` decoder layers: memory in ever more layers from below, then in ever fewer from
    above. The paper's figures are given for six layers, else only in the row with memory at all layers, which is table 5's too.
    """
    paper = (15.1, 15.5, 15.6, 16.2, 16.9, 18.6, 17.5, 17.2, 17.2, 17.2, 16.4)
    layer_sets = [tuple(range(n)) for n in range(1, layers + 1)] + [tuple(range(n, layers)) for n in range(1, layers)]
    results = []
    for index, chosen in enumerate(layer_sets):
        definition: dict[str, Any] = {
            "label": f"L{chosen[0] + 1}" + (f" to L{chosen[-1] + 1}" if len(chosen) > 1 else ""),
            "system": "memory_adapter",
            "method": "{by_phrase}" + ("" if len(chosen) == layers else " layers=" + ",".join(map(str, chosen))),
        }
        if layers == 6 or len(chosen) == layers:
            definition["paper"] = {"luxun": {"bleu": paper[index if layers == 6 else 5]}}
        results.append(read_variant(definition))
    return tuple(results)


_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SHARED: dict[str, str] = _FILE.pop("shared")
EXPERIMENTS: dict[str, Experiment] = {name: read_experiment(definition) for name, definition in _FILE.items()}
