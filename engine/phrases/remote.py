"""Parsing in parts that other machines can process (engine.core.remote_map)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.phrases.parsed_sentence import Parsed
    from engine.phrases.stanza_models import StanzaModel

PARSE = "engine.phrases.remote:Parse"


class Parse:
    """Parses lists of sentences with one of stanza's parsers."""

    def __init__(self, **arguments: Any) -> None:
        from engine.phrases.stanza_models import StanzaModel, load_pipeline

        packages = tuple((processor, package) for processor, package in arguments["packages"])
        model = StanzaModel(arguments["kind"], arguments["language"], Path(arguments["folder"]), packages)
        self.pipeline = load_pipeline(model, str(arguments["device"]))

    def __call__(self, sentences: list[str]) -> list[list[dict[str, object]]]:
        from engine.phrases.stanza_runner import parse_sentences

        return [[written(parsed) for parsed in parses] for _, parses in parse_sentences(self.pipeline, sentences)]


def parse_arguments(model: StanzaModel, device: str) -> dict[str, object]:
    """The arguments with which another machine loads the same parser from the same path, on its device of that name."""
    return asdict(model) | {"folder": str(model.folder.resolve()), "device": device}


def written(parsed: Parsed) -> dict[str, object]:
    """A parse as JSON can represent it."""
    return vars(parsed) | {"tree": None if parsed.tree is None else _flat(parsed.tree)}


def read_parse(row: Mapping[str, Any]) -> Parsed:
    """Read a parse from the result of `written`."""
    from engine.phrases.parsed_sentence import Parsed

    selected = {name: tuple(value) for name, value in row.items() if name not in ("tree", "offsets")}
    offsets = tuple((int(start), int(end)) for start, end in row["offsets"])
    return Parsed(**selected, offsets=offsets, tree=None if row["tree"] is None else _deep(row["tree"]))


def _flat(tree: Any) -> list[tuple[str | None, int]]:
    """Nodes with their numbers of children, parents first: trees may exceed Python's recursion limit."""
    result, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        result.append((node.label, len(node.children)))
        waiting.extend(reversed(node.children))
    return result


def _deep(rows: Sequence[Sequence[Any]]) -> Any:
    built: list[Any] = []  # nodes still without a parent, leftmost last
    for label, count in reversed(rows):
        children = tuple(built.pop() for _ in range(count))
        built.append(SimpleNamespace(label=label, children=children))
    return built[0]
