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
from typing import TYPE_CHECKING

from engine.core.atomic_files import write_json
from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.corpora.general_text import general_sentences
from engine.corpora.types import SentencePair

if TYPE_CHECKING:
    from engine.base import BaseModel, LanguagePair

FILE = "general.json"
MOST = 120  # sentences; more would keep a user waiting for a third figure after the point
LEARNED = 60  # sentences


@dataclass(frozen=True)
class GeneralText:
    """Sentence pairs of everyday text; the sources are synthetic."""

    sources: list[str]
    references: list[str]


def general_text(
    assets: Path, backward: BaseModel, folder: Path, progress: Progress, most: int = MOST
) -> GeneralText | None:
    """Sentence pairs in the language that `backward` translates from, made once and kept in `folder`; None where no general
    sample of the language came along. Raises Cancelled, StorageError.
    """
    from engine.decoding.greedy_search import back_translate

    selected = cached_general_text(assets, backward, folder, most)
    references = drawn(assets, backward, most)
    if selected is not None or not references:
        return selected
    sources = back_translate(backward, references, progress=progress)
    both = [(a, b) for a, b in zip(sources, references, strict=True) if a.strip()]
    made = GeneralText([a for a, _ in both], [b for _, b in both])
    about = {"stamp": stamp_of(backward, references), "sources": made.sources, "references": made.references}
    write_json(folder / FILE, about, "the general text")
    return made


def cached_general_text(assets: Path, backward: BaseModel, folder: Path, most: int = MOST) -> GeneralText | None:
    """The same where it was made before; None where it has to be made."""
    cached = read(folder / FILE)
    if cached.get("stamp") != stamp_of(backward, drawn(assets, backward, most)):
        return None
    return GeneralText(list(cached["sources"]), list(cached["references"]))


def drawn(assets: Path, backward: BaseModel, most: int) -> list[str]:
    """The sentences that are used, in the sample's order."""
    known = general_sentences(assets, backward.source)
    return sorted(random.Random("general text").sample(known, min(most, len(known))), key=known.index)


def stamp_of(backward: BaseModel, references: Sequence[str]) -> str:
    from engine.core.step_cache import content_hash

    return content_hash(backward.fingerprint(), backward.source, backward.target, list(references))


def translations(folder: Path, stamp: str) -> list[str] | None:
    """Translations kept under this stamp (of system and sources), None where there are none."""
    result = read(folder / f"general.{stamp}.json").get("lines")
    return [str(line) for line in result] if isinstance(result, list) else None


def keep_translations(folder: Path, stamp: str, lines: Sequence[str]) -> None:
    """Keep a system's translations of the general text. Raises StorageError."""
    write_json(folder / f"general.{stamp}.json", {"lines": list(lines)}, "the general text's translations")


def read(path: Path) -> Json:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def general_pairs(
    pair: LanguagePair, assets: Path, count: int, *, but: Sequence[str] = (), progress: Progress | None = None
) -> list[tuple[str, str]]:
    """`count` (source, sentence) pairs of the bundled general sample of the target language, always the same ones; empty
    where none is bundled. Sentences among `but` are passed over.

    The sources are the reverse model's, as those of monolingual samples are, so a figure on these pairs is good for
    comparing the base with its plugins and not with other bases.
    """
    from engine.decoding.greedy_search import back_translate

    sentences = general_sentences(assets, pair.forward.target, exclude=but)
    random.Random("general").shuffle(sentences)
    sentences = sentences[:count]
    sources = back_translate(pair.backward, sentences, progress=progress)
    return [(source, sentence) for source, sentence in zip(sources, sentences, strict=True) if source]


def learnable_pairs(
    pair: LanguagePair,
    assets: Path,
    *,
    but: Sequence[str] = (),
    progress: Progress | None = None,
    most: int | None = LEARNED,
) -> list[SentencePair]:
    """Up to `most` other pairs of the same kind, none of which is measured on: what is to be left alone. None: all."""
    from engine.decoding.greedy_search import back_translate

    every = general_sentences(assets, pair.forward.target, exclude=but)
    random.Random("general").shuffle(every)
    measured = {*every[:MOST], *drawn(assets, pair.backward, MOST)}
    sentences = [one for one in every if one not in measured][:most]
    if progress is not None:
        progress.begin("Translating general text", progress.index, progress.steps)
    sources = back_translate(pair.backward, sentences, progress=progress)
    return [SentencePair(source, target) for source, target in zip(sources, sentences, strict=True) if source]
