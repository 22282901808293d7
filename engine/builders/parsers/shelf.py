"""The parsers on this machine: language, kind, folder, size and licence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core.model_card import NOT_STATED, read_card_file
from engine.errors import InputError
from engine.phrases.parser_resources import read_resources
from engine.phrases.stanza_models import PARSER, StanzaModel, find_models


@dataclass(frozen=True)
class ParserEntry:
    """A parser for phrase extraction. `bytes` is the size of the files it needs."""

    language: str
    kind: str
    package: str
    folder: str
    bytes: int
    license: str
    preferred: bool  # whether `auto` chooses it for the language

    def to_mapping(self) -> dict[str, object]:
        return dict(self.__dict__)


def list_parsers(folders: Sequence[Path]) -> list[ParserEntry]:
    """The complete parsers in the folders, by language, in the order in which the extraction prefers them."""
    codes: set[str] = set()
    for folder in folders:
        try:
            codes |= {code for code, entry in read_resources(folder).items() if isinstance(entry, dict)}
        except InputError:
            continue  # not a list of stanza models
    results = []
    for code in sorted(codes):
        models = [model for kind in PARSER for model in find_models(code, kind, folders) if model.language == code]
        results += [describe(model, index == 0) for index, model in enumerate(models)]
    return results


def describe(model: StanzaModel, preferred: bool) -> ParserEntry:
    home = model.folder / model.language
    files = {home / processor / f"{package}.pt" for processor, package in model.packages}
    files |= set((home / "pretrain").glob("*.pt"))
    card = read_card_file(home / "README.md")
    return ParserEntry(
        language=model.language,
        kind=model.kind,
        package=dict(model.packages)[PARSER[model.kind]],
        folder=str(model.folder),
        bytes=sum(file.stat().st_size for file in files if file.is_file()),
        license=card.license_name if card else NOT_STATED,
        preferred=preferred,
    )
