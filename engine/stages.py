"""Parts of a job's work as classes that can be made on another machine: each is loaded once and called for every part.

What goes in and out is what JSON can hold. Nothing here is needed while the work stays in one process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from engine.errors import ModelError

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.phrases.sentence import Parsed
    from engine.phrases.stanza_models import StanzaModel

__all__ = [
    "BACK_TRANSLATE",
    "PARSE",
    "TRANSLATE",
    "BackTranslate",
    "Parse",
    "Translate",
    "base_arguments",
    "parse_arguments",
    "read_parse",
]

PARSE, BACK_TRANSLATE, TRANSLATE = (f"engine.stages:{name}" for name in ("Parse", "BackTranslate", "Translate"))


def base_arguments(base: BaseModel) -> dict[str, Any]:
    """What another machine needs to load the same base: its folder must be there under the same path."""
    return {
        "base": str(Path(base.path).resolve()),
        "source": base.source,
        "target": base.target,
        "fingerprint": base.fingerprint(),
        "precision": base.precision,
    }


def load_base(arguments: Mapping[str, Any]) -> BaseModel:
    """The base of `base_arguments`. Raises ModelError where another one lies at its path on this machine."""
    import torch

    from engine.base import BaseModel
    from engine.settings import Settings

    settings = Settings.from_mapping(arguments["settings"]).replace(base_precision=arguments["precision"])
    if settings.threads:
        torch.set_num_threads(settings.threads)
    base = BaseModel.load(arguments["base"], arguments["source"], arguments["target"], settings=settings)
    if base.fingerprint() != arguments["fingerprint"]:
        raise ModelError(
            f"The base in {arguments['base']} is another one on this node than where the job began. Copy the same folder to "
            "all nodes, or share it."
        )
    return base


class BackTranslate:
    """Greedy translation, or a search with the settings in `decoding`, of a list of texts."""

    def __init__(self, **arguments: Any) -> None:
        from engine.decoding.options import Decoding

        self.base = load_base(arguments)
        given = arguments.get("decoding")
        self.decoding = None if given is None else Decoding.from_mapping(given)

    def __call__(self, texts: list[str]) -> list[str]:
        from engine.decoding.greedy import back_translate

        if self.decoding is not None:
            return self.base.translate(texts, decoding=self.decoding)
        return back_translate(self.base, texts)


class Translate:
    """Translation with a plugin or without; `bundle` is its path, the same on all machines."""

    def __init__(self, **arguments: Any) -> None:
        from engine.decoding.options import Decoding
        from engine.plugins import Plugin
        from engine.settings import Settings

        self.base = load_base(arguments)
        cache = Settings.from_mapping(arguments["settings"]).home_dir / "unpacked"
        bundle = arguments["bundle"]
        self.plugin = Plugin.load(bundle, self.base, cache=cache) if bundle else None
        self.strength = float(arguments["strength"])
        self.decoding = Decoding.from_mapping(arguments["decoding"])

    def __call__(self, texts: list[str]) -> list[str]:
        return self.base.translate(texts, self.plugin, strength=self.strength, decoding=self.decoding)


class Parse:
    """Trees of a list of sentences by one of stanza's parsers."""

    def __init__(self, **arguments: Any) -> None:
        from engine.phrases.stanza_models import StanzaModel, load_pipeline

        packages = tuple((processor, package) for processor, package in arguments["packages"])
        model = StanzaModel(arguments["kind"], arguments["language"], Path(arguments["folder"]), packages)
        self.pipeline = load_pipeline(model)

    def __call__(self, sentences: list[str]) -> list[list[dict[str, Any]]]:
        from engine.phrases.parser import parse_sentences

        return [[written(parsed) for parsed in parses] for _, parses in parse_sentences(self.pipeline, sentences)]


def parse_arguments(model: StanzaModel) -> dict[str, Any]:
    """What another machine needs to load the same parser from the same path."""
    return asdict(model) | {"folder": str(model.folder.resolve())}


def written(parsed: Parsed) -> dict[str, Any]:
    """A parse as JSON can hold it."""
    return vars(parsed) | {"tree": None if parsed.tree is None else _flat(parsed.tree)}


def read_parse(row: Mapping[str, Any]) -> Parsed:
    """The parse that `written` wrote."""
    from engine.phrases.sentence import Parsed

    kept = {name: tuple(value) for name, value in row.items() if name not in ("tree", "offsets")}
    offsets = tuple((int(start), int(end)) for start, end in row["offsets"])
    return Parsed(**kept, offsets=offsets, tree=None if row["tree"] is None else _deep(row["tree"]))


def _flat(tree: Any) -> list[tuple[str | None, int]]:
    """Nodes with the number of their children, parents first: trees may be deeper than Python recurses."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        found.append((node.label, len(node.children)))
        waiting.extend(reversed(node.children))
    return found


def _deep(rows: Sequence[Sequence[Any]]) -> Any:
    built: list[Any] = []  # nodes still without a parent, the leftmost last
    for label, count in reversed(rows):
        children = tuple(built.pop() for _ in range(count))
        built.append(SimpleNamespace(label=label, children=children))
    return built[0]
