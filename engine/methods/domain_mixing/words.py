"""Reconstruction of words from the pieces of a SentencePiece tokenizer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")
START = "▁"
JOINERS = frozenset("'’-‐·_")


def words_of(tokens: Sequence[str], *, unspaced: bool) -> list[tuple[str, list[int]]]:
    """The words that the tokens form, in order, each with the indices of its tokens. Every token belongs to exactly one word.

    Words are separated by spaces. Punctuation is a separate word at the ends of a word, but not inside (don't, well-known, 3.5).
    If `unspaced`, every piece is a word, except that runs of Latin letters and digits and the bytes of a character stay together.
    """
    words: list[list[int]] = []
    start = True  # the next token begins a word
    for i, token in enumerate(tokens):
        begins = token.startswith(START)
        body = token[1:] if begins else token
        joined = bool(words) and not begins and not start and _continues(tokens, i, body, unspaced)
        lone = bool(words) and start and not _text(tokens, words[-1])  # a space marker belongs to the following token
        if joined or lone:
            words[-1].append(i)
        else:
            words.append([i])
        # A word starts after separate punctuation, with or without a space.
        start = not body or (_is_punctuation(body) and not joined)
    return [(_text(tokens, word), word) for word in words]


def _continues(tokens: Sequence[str], i: int, body: str, unspaced: bool) -> bool:
    """Whether token i, which is not preceded by a space, continues the previous word."""
    byte, before = BYTE.match(body), tokens[i - 1].removeprefix(START)
    if byte and BYTE.match(before):
        return not unspaced or int(byte[1], 16) & 0xC0 == 0x80  # 10xxxxxx continues a character
    if _is_punctuation(body):
        after = tokens[i + 1] if i + 1 < len(tokens) else START
        inner = body in JOINERS and after[:1].isalnum() and before[-1:].isalnum()
        decimal = body in (".", ",", ":") and before[-1:].isdigit() and after[:1].isdigit()
        return (inner or decimal) and (not unspaced or after[:1].isascii())
    if unspaced:
        return _latin(body) and _latin(before)
    return True


def _latin(text: str) -> bool:
    return bool(text) and not BYTE.match(text) and all(c.isascii() and (c.isalnum() or c in "'-._,:") for c in text)


def _is_punctuation(text: str) -> bool:
    return bool(text) and not BYTE.match(text) and all(unicodedata.category(c)[0] in "PS" for c in text)


def _text(tokens: Sequence[str], word: Sequence[int]) -> str:
    data = b""
    for i in word:
        byte = BYTE.match(tokens[i].removeprefix(START))
        data += bytes([int(byte[1], 16)]) if byte else tokens[i].replace(START, "").encode()
    return data.decode("utf-8", errors="replace")
