"""Word tokenization for retrieval: without a model, for every language, identical for indexed sentences and queries."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# Scripts written without spaces, in which each character counts as a word.
WIDE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
WORD = re.compile(rf"[{WIDE}]|[^\W{WIDE}]+|[^\w\s]")


def words(text: str) -> list[str]:
    """Words and punctuation marks in lower case and compatibility form; single characters in scripts without spaces."""
    return WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def joined(pieces: Sequence[str]) -> str:
    """The text of SentencePiece pieces, with byte pieces decoded."""
    data = bytearray()
    for piece in pieces:
        byte = BYTE.fullmatch(piece)
        data += bytes([int(byte[1], 16)]) if byte else piece.encode("utf-8", "replace")
    return data.decode("utf-8", "replace").replace("\u2581", " ")
