"""Plain everyday sentences to see what a plugin does to text it was not made for: the bundled general sample of the target
language, with sources by the frozen reverse model. The references are what people wrote, so figures on them compare to
figures on held-out samples, whose sources are made the same way.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from engine.base import BaseModel, LanguagePair
from engine.core.atomic_files import read_json, write_json
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.core.step_cache import content_hash
from engine.corpora.general_text import general_sentences
from engine.corpora.types import SentencePair

MOST = 120  # sentences; more would keep a user waiting for a third figure after the point
LEARNED = 60  # sentences


def general_pairs(
    backward: BaseModel,
    settings: Settings,
    max_sentences: int = 0,
    *,
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
) -> list[tuple[str, str]]:
    """Up to `max_sentences` (source, sentence) pairs of the bundled general sample of the language that `backward` translates from,
    by default `MOST`; empty where none is bundled. Sentences among `exclude`, the user's own, are left out. Raises Cancelled,
    StorageError.

    They are the same for whatever is measured. The sources are the reverse model's, as those of monolingual samples are, made once
    and kept, so a figure on these pairs is good for comparing the base with its plugins and not with other bases.
    """
    references = drawn(settings, backward.source, max_sentences)
    sources = translate_once(backward, settings, references, progress)
    own = {" ".join(text.split()) for text in exclude}
    both = [(a, b) for a, b in zip(sources, references, strict=True) if a.strip() and b not in own]
    return both[: max_sentences or MOST]


def translate_once(
    base: BaseModel, settings: Settings, sentences: Sequence[str], progress: Progress | None = None
) -> list[str]:
    """General sentences by greedy search of a base in one direction, made once for the base and kept. Raises Cancelled,
    StorageError.
    """
    from engine.decoding.greedy_search import back_translate

    known = kept_translations(base, settings, sentences)
    if known is None:
        known = back_translate(base, sentences, progress=progress)
        keep_translations(kept_in(settings), greedy_key(base, sentences), known)
    return known


def general_is_kept(backward: BaseModel, settings: Settings) -> bool:
    """Whether `general_pairs` has nothing to translate."""
    return kept_translations(backward, settings, drawn(settings, backward.source)) is not None


def kept_translations(base: BaseModel, settings: Settings, sentences: Sequence[str]) -> list[str] | None:
    return translations(kept_in(settings), greedy_key(base, sentences), len(sentences)) if sentences else []


def drawn(settings: Settings, language: str, max_sentences: int = 0) -> list[str]:
    """The general sentences that are measured on, always the same ones and in the same order."""
    known = general_sentences(settings.assets_dir, language)
    random.Random("general").shuffle(known)
    return known[: max(max_sentences, MOST)]


def greedy_key(base: BaseModel, sentences: Sequence[str]) -> str:
    return content_hash(base.fingerprint(), base.source, base.target, list(sentences))


def kept_in(settings: Settings) -> Path:
    """The folder of what bases make of general text."""
    return settings.home_dir / "evaluation"


def baseline_key(base: BaseModel, sources: Sequence[str]) -> str:
    """Of the translations of general text by the base alone, as it decodes by itself; they are kept in `kept_in`."""
    decoding = repr(base.decoding({}))
    return content_hash(base.fingerprint(), base.precision, base.source, base.target, decoding, list(sources))


def translations(folder: Path, key: str, count: int) -> list[str] | None:
    """The `count` translations kept under this key (of system and sources), None where they are not there or damaged."""
    result = read_json(folder / f"general.{key}.json").get("lines")
    return [str(line) for line in result] if isinstance(result, list) and len(result) == count else None


def keep_translations(folder: Path, key: str, lines: Sequence[str]) -> None:
    """Keep a system's translations of the general text. Raises StorageError."""
    write_json(folder / f"general.{key}.json", {"lines": list(lines)}, "the general text's translations")


def learnable_pairs(
    pair: LanguagePair,
    settings: Settings,
    *,
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
    max_sentences: int | None = LEARNED,
) -> list[SentencePair]:
    """Up to `max_sentences` other pairs of the same kind, none of which is measured on: what is to be left alone. None: all."""
    every = general_sentences(settings.assets_dir, pair.forward.target, exclude=exclude)
    random.Random("general").shuffle(every)
    measured = set(drawn(settings, pair.forward.target))
    sentences = [one for one in every if one not in measured][:max_sentences]
    if progress is not None:
        progress.begin("Translating general text", progress.index, progress.steps)
    sources = translate_once(pair.backward, settings, sentences, progress)
    return [SentencePair(source, target) for source, target in zip(sources, sentences, strict=True) if source]
