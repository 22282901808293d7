"""What the main job is asked to do, and the settings that follow from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import CorpusError, InputError, OptionError
from engine.options import Options, option

if TYPE_CHECKING:
    from engine.corpora import CorpusOptions
    from engine.decoding.knn.options import KnnOptions
    from engine.phrases import PhraseOptions
    from engine.training import TrainingOptions

__all__ = [
    "CustomizeRequest",
    "check",
    "corpus_config",
    "knn_config",
    "method_config",
    "phrase_config",
    "training_config",
]


@dataclass(frozen=True)
class CustomizeRequest(Options):
    """Customization."""

    base: str = option("", "Folder, short name or hub id of the base model.")
    source: str = option("", "Language that is translated from, as en, zh, de.")
    target: str = option("", "Language that is translated to: the language of the samples.")
    samples: tuple[str, ...] = option((), "Files with your sentences.")
    domains: tuple[str, ...] = option(
        (), "A domain label for each file, in their order; none: the files' names where there are several."
    )
    method: str = option("memory_adapter", "Method of customization (see `tailormt methods`).")
    budget: str = option(
        "balanced",
        "How much time training may take: minutes, tens of minutes, hours.",
        choices=("quick", "balanced", "best"),
    )
    output: str = option("", "The plugin bundle to write.")
    name: str = option("", "The plugin's name; empty: the bundle's file name.")
    backward: str = option("", "Base of the other direction, where the base translates one way only.")
    method_options: str = option("", 'Settings of the method as JSON, as {"temperature": 0.1}.', advanced=True)
    training_options: str = option("", 'Settings of training as JSON, as {"max_updates": 500}.', advanced=True)
    corpus_options: str = option(
        "", 'Settings of reading the samples as JSON, as {"inline_tags": "placeholders"}.', advanced=True
    )
    phrase_options: str = option("", 'Settings of phrase extraction as JSON, as {"l_max": 8}.', advanced=True)
    knn: bool = option(False, "Put a datastore for kNN decoding into the bundle, beside what the method makes.")
    knn_options: str = option("", 'Settings of kNN decoding as JSON, as {"k": 8}.', advanced=True)
    with_phrases: bool = option(
        True,
        "Put the phrases into the bundle; without, it holds their vectors only. A method that looks sentences up needs them.",
        advanced=True,
    )
    download: bool = option(False, "Allow the base to be fetched from the hub when it is not on disk.", advanced=True)


def parse_json(text: str, what: str) -> dict[str, Any]:
    """A JSON object from a settings text. Raises OptionError."""
    try:
        value = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise OptionError(f"{what}: not valid JSON ({error}).") from None
    if not isinstance(value, dict):
        raise OptionError(f"{what}: a JSON object is needed, as {{}}.")
    return value


def method_config(request: CustomizeRequest) -> Any:
    """The method's settings: its defaults, then the budget's, then the request's own."""
    from engine.methods import get_method
    from engine.training import budget_options

    preset = budget_options(request.budget, request.method)["method"]
    return get_method(request.method).config_class.from_mapping(
        {**preset, **parse_json(request.method_options, "method_options")}
    )


def training_config(request: CustomizeRequest) -> TrainingOptions:
    """The training's settings: defaults, then the budget's, then the request's own."""
    from engine.training import TrainingOptions, budget_options

    own = parse_json(request.training_options, "training_options")
    return TrainingOptions.from_mapping({**budget_options(request.budget, request.method)["training"], **own})


def check(request: CustomizeRequest) -> None:
    """Refuse what cannot work before any work is done. Raises InputError or OptionError."""
    for key in ("base", "source", "target", "samples"):
        if not getattr(request, key):
            raise InputError(f"{key} is needed.")
    for sample in request.samples:
        if not Path(sample).is_file():
            what = "is a folder, not a file of sentences" if Path(sample).is_dir() else "does not exist"
            raise CorpusError(f"{sample} {what}. Give files of text.")
    if not request.with_phrases:
        from engine.methods import get_method
        from engine.plugins.export import check_without_texts

        check_without_texts(get_method(request.method))
    method_config(request)
    training_config(request)
    corpus_config(request)
    phrase_config(request)
    knn_config(request)


def knn_config(request: CustomizeRequest) -> KnnOptions:
    """The settings of kNN decoding."""
    from engine.decoding.knn.options import KnnOptions

    return KnnOptions.from_mapping(parse_json(request.knn_options, "knn_options"))


def corpus_config(request: CustomizeRequest) -> CorpusOptions:
    """The settings of reading samples; several files are domains of their own where nothing else is said."""
    from engine.corpora import CorpusOptions

    own = parse_json(request.corpus_options, "corpus_options")
    return CorpusOptions.from_mapping({"domain_from_file": len(request.samples) > 1, **own})


def phrase_config(request: CustomizeRequest) -> PhraseOptions:
    """The phrase extraction's settings."""
    from engine.phrases import PhraseOptions

    return PhraseOptions.from_mapping(parse_json(request.phrase_options, "phrase_options"))
