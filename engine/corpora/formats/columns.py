"""The meaning of a table's columns and of a JSON object's keys: text, source, domain, or a language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.corpora.language import base_language

TARGET = "target"
TEXT = "text"  # the target, unless another column is clearly the translation
SOURCE = "source"
DOMAIN = "domain"
OTHER = "other"

ROLES = {
    TARGET: "target tgt trg translation translated target_text target_sentence tgt_text target_segment",
    TEXT: "text sentence segment content line sample",
    SOURCE: "source src source_text source_sentence src_text original source_segment",
    DOMAIN: "domain category genre topic",
    OTHER: "id no nr number index # date time author url link score comment comments note notes title file speaker "
    "chapter book page status context key name",
}
MEANINGS = {word: role for role, words in ROLES.items() for word in words.split()}

LANGUAGE_WORDS = {
    "english": "en",
    "chinese": "zh",
    "german": "de",
    "deutsch": "de",
    "french": "fr",
    "français": "fr",
    "japanese": "ja",
    "korean": "ko",
    "russian": "ru",
    "spanish": "es",
    "español": "es",
    "italian": "it",
    "portuguese": "pt",
    "dutch": "nl",
    "中文": "zh",
    "汉语": "zh",
    "英文": "en",
    "英语": "en",
    "日本語": "ja",
    "英語": "en",
}
# Two-letter language codes. `is`, `it` and `no` are English words as well, but as the only word of a header cell they are codes.
CODE_WORDS = (
    "en zh ja ko de fr es it pt nl ru uk pl cs sk sl hr sr bs bg mk ro hu tr ar fa he hi bn ta te mr ur vi th id "
    "ms sv da nb nn fi et lv lt el sq is ga cy eu ca gl ka hy az kk mn my km lo sw af"
)
CODES = frozenset(CODE_WORDS.split())


@dataclass(frozen=True)
class Columns:
    """Positions (from 0) of the columns in a row of `width` cells."""

    width: int
    text: int
    source: int | None = None
    domain: int | None = None


def meaning(name: str) -> str:
    """The meaning of a column's name: its role (`target`, `text`, `source`, `domain`, `other`), a language code, or ""."""
    word = name.strip().casefold()
    role = MEANINGS.get(word.replace(" ", "_").replace("-", "_"))
    if role:
        return role
    if word in LANGUAGE_WORDS:
        return LANGUAGE_WORDS[word]
    base = word.replace("_", "-").split("-")[0]
    if len(word) <= 10 and base in CODES:
        return base
    return ""


def looks_like_header(cells: Sequence[str]) -> bool:
    """Whether this first row holds column names: all cells (or most of three or more) are known names, including one for text."""
    meanings = [word for word in map(meaning, cells) if word]
    if not any(word not in (OTHER, DOMAIN) for word in meanings):
        return False
    nonblank = sum(bool(cell.strip()) for cell in cells)
    return len(meanings) == nonblank if len(cells) <= 2 else 2 * len(meanings) > nonblank


def columns_of_header(cells: Sequence[str], language: str, source_language: str | None) -> Columns | None:
    """The columns according to their names; None if no column is the target's."""
    language = base_language(language)
    words = [meaning(cell) for cell in cells]

    def first(*candidates: str) -> int | None:
        return next((words.index(word) for word in candidates if word in words), None)

    text = first(language, TARGET)
    source = first(SOURCE, *([base_language(source_language)] if source_language else []))
    if text is None:
        text = first(TEXT)
    elif source is None:
        source = first(TEXT)
    if text is None:
        return None
    if source is None:
        other_columns = [i for i, word in enumerate(words) if word in CODES and i != text]
        source = other_columns[0] if len(other_columns) == 1 else None
    return Columns(len(cells), text, source, first(DOMAIN))
