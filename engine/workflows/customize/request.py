"""The request of the main job, and the settings that follow from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from engine.core.atomic_files import check_apart
from engine.core.options import Options, describe, option
from engine.errors import CorpusError, InputError, OptionError
from engine.messages import Message, mark
from engine.training import TrainingOptions, budget_options

if TYPE_CHECKING:
    from engine.corpora import CorpusOptions
    from engine.methods.knn.options import KnnOptions
    from engine.phrases import PhraseOptions

AUTO = "auto"
# Methods that `auto` tries under each budget, the preferred first; each except kNN is also tried with kNN decoding on top.
CANDIDATES = {
    "quick": ("knn", "memory_adapter"),
    "balanced": ("knn", "density_ratio", "memory_adapter", "houlsby_adapter", "fine_tuning"),
    "best": ("knn", "density_ratio", "lhuc", "memory_adapter", "houlsby_adapter", "fine_tuning"),
}


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
    method: str = option(
        AUTO, "Method of customization (see `tailormt methods`); auto tries several and keeps the best on held-out samples."
    )
    budget: str = option(
        "balanced", "How much time training may take: minutes, tens of minutes, hours.", choices=("quick", "balanced", "best")
    )
    output: str = option("", "The plugin bundle to write.")
    name: str = option("", "The plugin's name; empty: the bundle's file name.")
    backward: str = option("", "Base of the other direction, where the base translates one way only.")
    method_options: Mapping[str, Any] = option({}, 'Settings of the method, as {"temperature": 0.1}.', advanced=True)
    training_options: Mapping[str, Any] = option({}, 'Settings of training, as {"max_updates": 500}.', advanced=True)
    corpus_options: Mapping[str, Any] = option(
        {}, 'Settings of reading the samples, as {"inline_tags": "placeholders"}.', advanced=True
    )
    phrase_options: Mapping[str, Any] = option({}, 'Settings of phrase extraction, as {"l_max": 8}.', advanced=True)
    knn: bool = option(False, "Put a datastore for kNN decoding into the bundle, beside what the method makes.")
    knn_options: Mapping[str, Any] = option({}, 'Settings of kNN decoding, as {"k": 8}.', advanced=True)
    with_phrases: bool = option(
        True,
        "Put the phrases into the bundle; without, it holds their vectors only. A method that looks sentences up needs them.",
        advanced=True,
    )
    download: bool = option(False, "Allow the base to be fetched from the hub when it is not on disk.", advanced=True)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        return super().from_mapping(read_older(values))

    @property
    def automatic(self) -> bool:
        """Whether the method is chosen by the run; it is empty in older requests."""
        return self.method in ("", AUTO)

    @classmethod
    def of_job(cls, arguments: Mapping[str, Any]) -> Self:
        """Create the request from the arguments in a job's row. Raises OptionError."""
        return cls.from_mapping({name: value for name, value in arguments.items() if name not in BESIDE})


BESIDE = ("corpus_id", "continues")  # job arguments besides the request: the corpus row to fill, the run to continue
MAPPINGS = {item.name for item in describe(CustomizeRequest) if item.type is dict}


def read_older(values: Mapping[str, Any]) -> dict[str, Any]:
    """A request's fields, in which mappings may be JSON text, as in older rows of jobs. Raises OptionError."""
    result = dict(values)
    for name in MAPPINGS & values.keys():
        if isinstance(text := values[name], str):
            try:
                result[name] = json.loads(text or "{}")
            except (ValueError, RecursionError) as error:  # ValueError also covers numbers of thousands of digits
                raise OptionError("{name}: not valid JSON ({error}).", name=name, error=error) from None
    return result


def method_config(request: CustomizeRequest) -> Any:
    """The method's settings: its defaults, then those of the budget or the requested preset, then the request's own.

    Raises OptionError on settings or a preset that the method does not have.
    """
    from engine.methods import get_method

    method, options = get_method(request.method), dict(request.method_options)
    name = str(options.pop("preset", ""))
    if name and name not in method.presets:
        presets = ", ".join(method.presets) or "-"
        raise OptionError("preset: {name!r} is not one of {known}.", name=name, known=presets)
    preset = method.presets[name] if name else budget_options(request.budget, request.method)["method"]
    return method.config_class.from_mapping({**preset, **options})


def unlike_the_paper(request: CustomizeRequest) -> str:
    """The method's settings that the budget and the request change from the paper's, as `alpha = 0, phrases_per_layer = 500`."""
    from engine.methods import get_method

    if get_method(request.method).capabilities.needs_endpoint:
        return ""  # its settings identify a service
    config = method_config(request)
    default, values = type(config)().to_mapping(), config.to_mapping()
    changed = {name: value for name, value in values.items() if value != default[name]}
    return ", ".join(
        f"{name} = {'none' if value is None else f'{value:g}' if isinstance(value, float) else value}"
        for name, value in changed.items()
    )


def training_config(request: CustomizeRequest) -> TrainingOptions:
    """The training's settings: defaults, then the budget's, then the request's own."""
    preset = budget_options(request.budget, request.method)["training"]
    return TrainingOptions.from_mapping({**preset, **request.training_options})


def validate(request: CustomizeRequest) -> None:
    """Reject what cannot work before any work is done. Raises InputError or OptionError."""
    for key in ("base", "source", "target", "samples"):
        if not getattr(request, key):
            raise InputError("{key} is required.", key=key)
    for sample in request.samples:
        if not Path(sample).is_file():
            problem = mark("is a folder, not a file of sentences")
            problem = Message(problem if Path(sample).is_dir() else mark("does not exist"))
            raise CorpusError("{sample} {what}. Provide text files.", sample=sample, what=problem)
    if request.output:
        check_apart(Path(request.output), map(Path, request.samples))
    candidates(request)
    corpus_config(request)
    phrase_config(request)


def check_method(request: CustomizeRequest) -> None:
    """Reject invalid settings of the method, of training and of kNN decoding. Raises InputError or OptionError."""
    if not request.with_phrases:
        from engine.methods import get_method
        from engine.plugins.export import check_without_texts

        check_without_texts(get_method(request.method))
    method_config(request)
    training_config(request)
    knn_config(request)


def candidates(request: CustomizeRequest) -> list[CustomizeRequest]:
    """The request itself, or if its method is `auto`, one request for each method to try: those of `CANDIDATES` that have all its
    settings, or else the first method that has them. Raises InputError or OptionError if none has.
    """
    from importlib.util import find_spec

    if not request.automatic:
        check_method(request)
        return [request]
    able = [name for name in CANDIDATES["best"] if name != "knn" or (find_spec("faiss") and not request.knn)]
    fits = [candidate for name in able if (candidate := request_for_method(request, name)) is not None]
    if not fits:
        check_method(request.replace(method="memory_adapter"))  # raises the specific error
    return [candidate for candidate in fits if candidate.method in CANDIDATES.get(request.budget, ())] or fits[:1]


def request_for_method(request: CustomizeRequest, method: str) -> CustomizeRequest | None:
    """The request with that method; None if the method lacks a setting."""
    try:
        check_method(named := request.replace(method=method))
    except (InputError, OptionError):
        return None
    return named


def knn_config(request: CustomizeRequest) -> KnnOptions:
    """The settings of kNN decoding."""
    from engine.methods.knn.options import KnnOptions

    return KnnOptions.from_mapping(request.knn_options)


def corpus_config(request: CustomizeRequest) -> CorpusOptions:
    """The settings of reading samples; several files are separate domains unless specified otherwise."""
    from engine.corpora import CorpusOptions

    return CorpusOptions.from_mapping({"domain_from_file": len(request.samples) > 1, **request.corpus_options})


def phrase_config(request: CustomizeRequest) -> PhraseOptions:
    """The phrase extraction's settings."""
    from engine.phrases import PhraseOptions

    return PhraseOptions.from_mapping(request.phrase_options)
