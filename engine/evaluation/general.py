"""Plain everyday sentences to see what a plugin does to text it was not made for: the bundled general sample of the target
language, with sources by the frozen reverse model. The references are what people wrote, so figures on them compare to
figures on held-out samples, whose sources are made the same way.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.files import write_json
from engine.languages import same_language
from engine.progress import Progress

if TYPE_CHECKING:
    from engine.base import BaseModel

__all__ = ["GeneralText", "general_sentences", "general_text", "keep_translations", "kept_text", "translations"]

FILE = "general.json"
MOST = 120  # sentences; more would keep a user waiting for a third figure after the point


@dataclass(frozen=True)
class GeneralText:
    """Sentence pairs of everyday text; the sources are synthetic."""

    sources: list[str]
    references: list[str]


def general_sentences(assets: Path, language: str) -> list[str]:
    """The bundled general sample of a language, without blank lines; empty where there is none."""
    from engine.samples import bundled_samples

    known = [one for one in bundled_samples(assets) if one.kind == "general" and same_language(one.target, language)]
    lines = [
        line.strip() for one in known for file in one.files for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return list(dict.fromkeys(filter(None, lines)))


def general_text(
    assets: Path, backward: BaseModel, folder: Path, progress: Progress, most: int = MOST
) -> GeneralText | None:
    """Sentence pairs in the language that `backward` translates from, made once and kept in `folder`; None where no general
    sample of the language came along. Raises Cancelled, StorageError.
    """
    from engine.decoding.greedy import back_translate

    kept = kept_text(assets, backward, folder, most)
    references = drawn(assets, backward, most)
    if kept is not None or not references:
        return kept
    sources = back_translate(backward, references, progress=progress)
    both = [(a, b) for a, b in zip(sources, references, strict=True) if a.strip()]
    made = GeneralText([a for a, _ in both], [b for _, b in both])
    about = {"stamp": stamp_of(backward, references), "sources": made.sources, "references": made.references}
    write_json(folder / FILE, about, "the general text")
    return made


def kept_text(assets: Path, backward: BaseModel, folder: Path, most: int = MOST) -> GeneralText | None:
    """The same where it was made before; None where it has to be made."""
    kept = read(folder / FILE)
    if kept.get("stamp") != stamp_of(backward, drawn(assets, backward, most)):
        return None
    return GeneralText(list(kept["sources"]), list(kept["references"]))


def drawn(assets: Path, backward: BaseModel, most: int) -> list[str]:
    """The sentences that are used, in the sample's order."""
    known = general_sentences(assets, backward.source)
    return sorted(random.Random("general text").sample(known, min(most, len(known))), key=known.index)


def stamp_of(backward: BaseModel, references: Sequence[str]) -> str:
    from engine.stamps import digest

    return digest(backward.fingerprint(), backward.source, backward.target, list(references))


def translations(folder: Path, stamp: str) -> list[str] | None:
    """Translations kept under this stamp (of system and sources), None where there are none."""
    found = read(folder / f"general.{stamp}.json").get("lines")
    return [str(line) for line in found] if isinstance(found, list) else None


def keep_translations(folder: Path, stamp: str, lines: Sequence[str]) -> None:
    """Keep a system's translations of the general text. Raises StorageError."""
    write_json(folder / f"general.{stamp}.json", {"lines": list(lines)}, "the general text's translations")


def read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
