"""Warnings about imported sentences: the import reports them, and the user decides about the sentences."""

from __future__ import annotations

import re

from engine.corpora.clean import INVISIBLE
from engine.corpora.inline_tags import PIECE, has_tags
from engine.corpora.language import base_language
from engine.messages import mark

NEAR_DUPLICATE = mark("near-duplicate")
ANOTHER_LANGUAGE = mark("another language")
TAGS = mark("tags, links or placeholders")
TAGS_REMOVED = mark("tags, removed")
REMOVED = mark("invisible characters, removed")
HALF_WIDTH = mark("half-width punctuation")
FULL_WIDTH = mark("full-width letters or digits")

HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
ASCII_MARK = re.compile(rf"[{HAN}][,;:!?.]+(?=[{HAN}\s]|$)")
WIDE_LETTER = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
HIDDEN = re.compile(rf"{INVISIBLE.pattern}|[\x0b\x0c\x1c-\x1f\x85]")


def notices(raw: str, text: str, language: str) -> list[str]:
    """The warnings about one kept sentence: `raw` is the line as read from the file, `text` the sentence kept from it."""
    results = []
    if PIECE.search(text):
        results.append(TAGS)
    elif has_tags(raw):
        results.append(TAGS_REMOVED)
    if HIDDEN.search(raw):
        results.append(REMOVED)
    if base_language(language) in ("zh", "ja") and ASCII_MARK.search(text):
        results.append(HALF_WIDTH)
    if WIDE_LETTER.search(text):
        results.append(FULL_WIDTH)
    return results
