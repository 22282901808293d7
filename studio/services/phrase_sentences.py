"""The sentences of a project as the page Phrases needs them: which hold a phrase, their trees, which go with phrases."""

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

HANDY = 28  # width of a sentence whose tree fits its card, in Latin letters
LOOKED_AT = 8  # sentences whose tree is looked for
MOST_SHARE = 0.1  # of the sentences that may go with a phrase in one step
COUNTED = 2000  # sentences that are counted where no parser is installed

_parsing = threading.Lock()
_parsed: dict[tuple[str, str], Tree] = {}


def spots(phrase: str, language: str) -> re.Pattern[str]:
    """Matches a phrase where it occurs in a sentence, as whole words where the language has spaces, ignoring case."""
    body = r"\s+".join(map(re.escape, phrase.split()))
    return re.compile(body if unspaced(language) else rf"(?<!\w){body}(?!\w)", re.IGNORECASE)


def holding(sentences: Sequence[Mapping[str, Any]], phrase: str, language: str) -> list[int]:
    """The sentences that hold a phrase, those first that write it as it is listed."""
    pattern, folded = spots(phrase, language), phrase.casefold()
    first = next(iter(folded.split()), "")
    results = [
        index
        for index, row in enumerate(sentences)
        if (phrase in row["text"] or first in row["text"].casefold()) and pattern.search(row["text"])
    ]
    return sorted(results, key=lambda index: phrase not in sentences[index]["text"])


def at_sentence(
    look: PhraseView, sentences: Sequence[Mapping[str, Any]], language: str, drawn: Callable[[str], bool] = bool
) -> PhraseView:
    """The view with a sentence: its own, else a handy one that holds the chosen phrase, else a handy one; one whose tree is
    `drawn` already, if there is such.
    """
    if 0 <= look.sentence < len(sentences):
        return look
    some = holding(sentences, look.phrase, language) if look.phrase else range(min(200, len(sentences)))

    def unhandy(at: int) -> int:
        text = str(sentences[at]["text"])
        wide = sum(1 if ord(one) < 0x2E80 else 2 for one in text)
        return abs(wide - HANDY)

    best = sorted(some[:500], key=unhandy)[:LOOKED_AT]
    chosen = next((at for at in best if drawn(str(sentences[at]["text"]))), best[0] if best else -1)
    return look.but(sentence=chosen)


def check_share(phrases: Sequence[str], sentences: Sequence[Mapping[str, Any]], language: str) -> int:
    """How many sentences go with these phrases. Raises InputError where that leaves too little to learn from."""
    gone = len(held_by(sentences, phrases, language))
    if gone > MOST_SHARE * len(sentences):
        what = mark("“{phrase}” appears in {gone:,} of {all:,} sentences, too many to exclude.")
        if len(phrases) > 1:
            what = mark("These {count:,} phrases appear in {gone:,} of {all:,} sentences, too many to exclude.")
        raise InputError(
            "{what} Untick “Also exclude sentences containing them” to exclude the phrases alone.",
            what=Message(what, phrase=phrases[0], count=len(phrases), gone=gone, all=len(sentences)),
        )
    return gone


def held_by(sentences: Sequence[Mapping[str, Any]], phrases: Sequence[str], language: str) -> set[int]:
    """The sentences that hold one of the phrases; a few phrases are looked for one by one, which is faster."""
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
    """How many sentences are left out with phrases."""
    if not Exclusions.load(workspace).with_sentences:
        return 0
    return _left_out(workspace, modified_times(workspace, EXCLUSIONS_FILE, "corpus.jsonl"), language)


def tree_of(workspace: Path, sentence: str) -> Tree | None:
    """The tree that was drawn when the phrases were found; None where there is none."""
    return read_tree(workspace / TREES_FILE, sentence)


def parsed_tree(workspace: Path, sentence: str, language: str, settings: Settings) -> Tree:
    """The same by the parser, which takes seconds at first; the last ones are kept. Raises InputError, MissingError."""
    key = (sentence, language)
    with _parsing:
        if key not in _parsed:
            texts = [str(row.get("text", "")) for row in read_rows(workspace / "corpus.jsonl")[:COUNTED]]
            _parsed[key] = parse_tree(sentence, language, parser_dirs=settings.parser_dirs, sentences=texts)
        while len(_parsed) > 200:
            _parsed.pop(next(iter(_parsed)))
        return _parsed[key]
