"""What is kept but worth a look: the user decides, and the import says where it is."""

from __future__ import annotations

import re

from engine.corpora.clean import INVISIBLE
from engine.corpora.codes import PIECE, has_tags
from engine.corpora.language import base_language

__all__ = ["ANOTHER_LANGUAGE", "NEAR_DUPLICATE", "notices"]

NEAR_DUPLICATE = "near-duplicate"
ANOTHER_LANGUAGE = "another language"
TAGS = "tags, links or placeholders"
TAGS_REMOVED = "tags, removed"
REMOVED = "invisible characters, removed"
HALF_WIDTH = "half-width punctuation"
FULL_WIDTH = "full-width letters or digits"

HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
ASCII_MARK = re.compile(rf"[{HAN}][,;:!?.]+(?=[{HAN}\s]|$)")
WIDE_LETTER = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
HIDDEN = re.compile(rf"{INVISIBLE.pattern}|[\x0b\x0c\x1c-\x1f\x85]")


def notices(raw: str, text: str, language: str) -> list[str]:
    """What is odd about one kept sentence: `raw` is the line as it stood in the file, `text` the sentence kept of it."""
    found = []
    if PIECE.search(text):
        found.append(TAGS)
    elif has_tags(raw):
        found.append(TAGS_REMOVED)
    if HIDDEN.search(raw):
        found.append(REMOVED)
    if base_language(language) in ("zh", "ja") and ASCII_MARK.search(text):
        found.append(HALF_WIDTH)
    if WIDE_LETTER.search(text):
        found.append(FULL_WIDTH)
    return found
