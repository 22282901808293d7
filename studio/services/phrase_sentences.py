"""Sentences for the page Phrases: those containing a phrase, their trees, those excluded with phrases."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.core.languages import unspaced
from engine.core.settings import Settings
from engine.errors import InputError
from engine.messages import Message
from engine.phrases import parse_tree
from engine.phrases.exclusions import EXCLUSIONS_FILE, Exclusions
from engine.phrases.occurrences import Finder
from engine.phrases.tree_store import TREES_FILE, read_tree
from engine.phrases.types import Tree
from studio.i18n.translate import mark
from studio.services.files import read_rows
from studio.services.phrases import FEW, PhraseView, modified_times

HANDY = 28  # width, in Latin letters, of a sentence whose tree fits its card
LOOKED_AT = 8  # candidate sentences that are checked for a stored tree
MOST_SHARE = 0.1  # share of the sentences that may be excluded with phrases in one step
COUNTED = 2000  # sentences used for statistics if no parser is installed

_parsing = threading.Lock()
_parsed: dict[tuple[str, str], Tree] = {}


def spots(phrase: str, language: str) -> re.Pattern[str]:
    """A case-insensitive pattern for a phrase in a sentence; it matches whole words only if the language uses spaces."""
    body = r"\s+".join(map(re.escape, phrase.split()))
    return re.compile(body if unspaced(language) else rf"(?<!\w){body}(?!\w)", re.IGNORECASE)


def holding(sentences: Sequence[Mapping[str, Any]], phrase: str, language: str) -> list[int]:
    """Indices of the sentences that contain a phrase, those with its exact spelling first."""
    pattern, folded = spots(phrase, language), phrase.casefold()
    first = next(iter(folded.split()), "")
    results = [
        index
        for index, row in enumerate(sentences)
        if (phrase in row["text"] or first in row["text"].casefold()) and pattern.search(row["text"])
    ]
    return sorted(results, key=lambda index: phrase not in sentences[index]["text"])


def at_sentence(
    look: PhraseView, sentences: Sequence[Mapping[str, Any]], language: str, has_tree: Callable[[str], bool] = bool
) -> PhraseView:
    """The view with a sentence selected: its own if valid, else one of convenient length that contains the selected phrase, if
    any. Sentences for which `has_tree` is true (a tree is stored) are preferred.
    """
    if 0 <= look.sentence < len(sentences):
        return look
    candidates = holding(sentences, look.phrase, language) if look.phrase else range(min(200, len(sentences)))

    def unhandy(at: int) -> int:
        text = str(sentences[at]["text"])
        wide = sum(1 if ord(char) < 0x2E80 else 2 for char in text)
        return abs(wide - HANDY)

    best = sorted(candidates[:500], key=unhandy)[:LOOKED_AT]
    chosen = next((at for at in best if has_tree(str(sentences[at]["text"]))), best[0] if best else -1)
    return look.but(sentence=chosen)


def check_share(phrases: Sequence[str], sentences: Sequence[Mapping[str, Any]], language: str) -> int:
    """The number of sentences that contain these phrases. Raises InputError if they are too many to exclude (`MOST_SHARE`)."""
    gone = len(held_by(sentences, phrases, language))
    if gone > MOST_SHARE * len(sentences):
        reason = mark("“{phrase}” appears in {gone:,} of {all:,} sentences, too many to exclude.")
        if len(phrases) > 1:
            reason = mark("These {count:,} phrases appear in {gone:,} of {all:,} sentences, too many to exclude.")
        raise InputError(
            "{what} Untick “Also exclude sentences containing them” to exclude the phrases alone.",
            what=Message(reason, phrase=phrases[0], count=len(phrases), gone=gone, all=len(sentences)),
        )
    return gone


def held_by(sentences: Sequence[Mapping[str, Any]], phrases: Sequence[str], language: str) -> set[int]:
    """Indices of the sentences that contain any of the phrases; a few phrases are searched one by one, which is faster."""
    if len(phrases) <= FEW:
        return {position for phrase in phrases for position in holding(sentences, phrase, language)}
    finder = Finder(phrases, language)
    return {position for position, row in enumerate(sentences) if finder.any(row["text"])}


@lru_cache(maxsize=8)
def _left_out(workspace: Path, modified: tuple[int, ...], language: str) -> int:
    result = Exclusions.load(workspace)
    phrases = [result.phrases[key] for key in result.with_sentences]
    return len(held_by(read_rows(workspace / "corpus.jsonl"), phrases, language))


def left_out(workspace: Path, language: str) -> int:
    """The number of sentences excluded together with phrases."""
    if not Exclusions.load(workspace).with_sentences:
        return 0
    return _left_out(workspace, modified_times(workspace, EXCLUSIONS_FILE, "corpus.jsonl"), language)


def tree_of(workspace: Path, sentence: str) -> Tree | None:
    """The tree stored when the phrases were extracted; None if there is none."""
    return read_tree(workspace / TREES_FILE, sentence)


def parsed_tree(workspace: Path, sentence: str, language: str, settings: Settings) -> Tree:
    """The tree from the parser, which takes seconds to load on first use; recent trees are cached. Raises InputError,
    MissingError."""
    key = (sentence, language)
    with _parsing:
        if key not in _parsed:
            texts = [str(row.get("text", "")) for row in read_rows(workspace / "corpus.jsonl")[:COUNTED]]
            _parsed[key] = parse_tree(sentence, language, parser_dirs=settings.parser_dirs, sentences=texts)
        while len(_parsed) > 200:
            _parsed.pop(next(iter(_parsed)))
        return _parsed[key]
