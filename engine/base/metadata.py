"""The metadata of a base's folder (shape, languages, size, licence), read without loading the model. Needs no torch."""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from pathlib import Path

from engine.base.directions import stored_directions
from engine.base.files import check_type, count_parameters, read_config
from engine.core.json_object import Json
from engine.core.model_card import read_card_file
from engine.errors import ModelError

FAMILIES = {"marian": "Marian", "nllb": "NLLB", "m2m_100": "M2M100", "mbart": "mBART"}


def family_name(folder: Path, config: Json) -> str:
    """Marian, M2M100, NLLB or mBART (including mBART-50): the common name of the family."""
    kind = str(config["model_type"])
    file = folder / "tokenizer_config.json"
    if kind == "m2m_100" and file.exists() and '"Nllb' in file.read_text(encoding="utf-8", errors="replace"):
        kind = "nllb"
    return FAMILIES.get(kind, kind)


def read_card(folder: str | Path) -> Json:
    """Name, family, languages, decoder layers, hidden size, weights, bytes and licence of a base's folder.

    `languages` are canonical tags (en, zh, zh-Hant); empty if the model does not specify any. Raises ModelError if the folder
    is not a usable base.
    """
    folder = Path(folder)
    return deepcopy(_read_card(folder, _file_states(folder)))


def _file_states(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """The path, size and modification time of each of the folder's files, as a cache key."""
    files = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else ()
    return tuple((str(file), (stat := file.stat()).st_size, stat.st_mtime_ns) for file in files)


@lru_cache(maxsize=64)
def _read_card(folder: Path, states: tuple[tuple[str, int, int], ...]) -> Json:
    config = read_config(folder)
    name = folder.resolve().name
    check_type(config["model_type"], name)
    directions = stored_directions(folder.resolve(), config["model_type"])
    card = read_card_file(folder)
    return {
        "name": name,
        "path": str(folder),
        "model_type": config["model_type"],
        "family": family_name(folder, config),
        "languages": directions.languages,
        "decoder_layers": config.get("decoder_layers", 0),
        "d_model": config.get("d_model", 0),
        "parameters": count_parameters(folder),
        "bytes": sum(size for _, size, _ in states),
        "license": card.license_name,
        "card": card.body,
    }


def directions(folder: str | Path) -> tuple[list[str], list[str]]:
    """The canonical tags of a base's source languages, and those of its target languages.

    Empty if the model does not specify any. Raises ModelError if the folder is not a usable base.
    """
    folder = Path(folder)
    result = stored_directions(folder.resolve(), read_config(folder)["model_type"])
    return (result.sources.tags if result.sources else []), (result.targets.tags if result.targets else [])


def knows(folder: str | Path, source: str, target: str) -> bool:
    """Whether the base in a folder can translate in that direction; False if the folder is not a base."""
    folder = Path(folder)
    try:
        return stored_directions(folder.resolve(), read_config(folder)["model_type"]).knows(source, target)
    except ModelError:
        return False
