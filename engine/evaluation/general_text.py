"""Everyday sentences that show how a plugin affects text it was not made for: the bundled general sample of the target language,
with sources by the frozen reverse model.

The references were written by people, so figures on them are comparable to figures on held-out samples, whose sources are made in
the same way.
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

MOST = 120  # sentences; more would take long and add little precision
LEARNED = 60  # sentences


def general_pairs(
    backward: BaseModel,
    settings: Settings,
    max_sentences: int = 0,
    *,
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
) -> list[tuple[str, str]]:
    """Up to `max_sentences` (default `MOST`) pairs (source, sentence) of the bundled general sample of `backward`'s source
    language.

    Empty if none is bundled. Sentences in `exclude`, the user's own, are left out; otherwise the pairs are always the same. The
    sources are written once by the reverse model, like those of monolingual samples, and stored. Figures on these pairs therefore
    compare a base with its plugins, but not with other bases. Raises Cancelled, StorageError.
    """
    references = evaluation_sentences(settings, backward.source, max_sentences)
    sources = translate_once(backward, settings, references, progress)
    excluded = {" ".join(text.split()) for text in exclude}
    pairs = [(a, b) for a, b in zip(sources, references, strict=True) if a.strip() and b not in excluded]
    return pairs[: max_sentences or MOST]


def translate_once(base: BaseModel, settings: Settings, sentences: Sequence[str], progress: Progress | None = None) -> list[str]:
    """Greedy translations of general sentences by a base, made once per base and stored. Raises Cancelled, StorageError."""
    from engine.decoding.greedy_search import back_translate

    translated = kept_translations(base, settings, sentences)
    if translated is None:
        translated = back_translate(base, sentences, progress=progress)
        keep_translations(kept_in(settings), greedy_key(base, sentences), translated)
    return translated


def general_is_kept(backward: BaseModel, settings: Settings) -> bool:
    """Whether the sources of `general_pairs` are already stored."""
    return kept_translations(backward, settings, evaluation_sentences(settings, backward.source)) is not None


def kept_translations(base: BaseModel, settings: Settings, sentences: Sequence[str]) -> list[str] | None:
    return translations(kept_in(settings), greedy_key(base, sentences), len(sentences)) if sentences else []


def evaluation_sentences(settings: Settings, language: str, max_sentences: int = 0) -> list[str]:
    """The general sentences used for evaluation, always the same ones in the same order."""
    sentences = general_sentences(settings.assets_dir, language)
    random.Random("general").shuffle(sentences)
    return sentences[: max(max_sentences, MOST)]


def greedy_key(base: BaseModel, sentences: Sequence[str]) -> str:
    return content_hash(base.fingerprint(), base.source, base.target, list(sentences))


def kept_in(settings: Settings) -> Path:
    """The folder of stored translations of general text."""
    return settings.home_dir / "evaluation"


def baseline_key(base: BaseModel, sources: Sequence[str]) -> str:
    """The key, in `kept_in`, of translations of general text by the base alone with its default decoding."""
    decoding = repr(base.decoding({}))
    return content_hash(base.fingerprint(), base.precision, base.source, base.target, decoding, list(sources))


def translations(folder: Path, key: str, count: int) -> list[str] | None:
    """The `count` translations stored under this key (of system and sources); None if they are missing or damaged."""
    result = read_json(folder / f"general.{key}.json").get("lines")
    return [str(line) for line in result] if isinstance(result, list) and len(result) == count else None


def keep_translations(folder: Path, key: str, lines: Sequence[str]) -> None:
    """Store a system's translations of the general text. Raises StorageError."""
    write_json(folder / f"general.{key}.json", {"lines": list(lines)}, "the general text's translations")


def learnable_pairs(
    pair: LanguagePair,
    settings: Settings,
    *,
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
    max_sentences: int | None = LEARNED,
) -> list[SentencePair]:
    """Up to `max_sentences` (None: all) other general pairs, which a plugin should leave unchanged; none is used for evaluation."""
    every = general_sentences(settings.assets_dir, pair.forward.target, exclude=exclude)
    random.Random("general").shuffle(every)
    measured = set(evaluation_sentences(settings, pair.forward.target))
    sentences = [sentence for sentence in every if sentence not in measured][:max_sentences]
    if progress is not None:
        progress.begin("Translating general text", progress.index, progress.steps)
    sources = translate_once(pair.backward, settings, sentences, progress)
    return [SentencePair(source, target) for source, target in zip(sources, sentences, strict=True) if source]
