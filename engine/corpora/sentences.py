"""Sentence splitting: dedicated rules for Chinese and Japanese, pysbd for the languages that it supports, simple rules otherwise.

A line that clearly holds a single sentence is returned at once; in most uploads this applies to nearly every line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from engine.corpora.language import base_language

WIDE = ("zh", "ja")
PYSBD_CODES = "en hi mr bg es ru ar am hy fa ur pl nl da fr my el it de kk sk"
PYSBD = frozenset(PYSBD_CODES.split())

CLOSERS = "”’』」\"'»›)）】］"
# A sentence end followed by text, after a space or, in scripts without spaces, directly.
SEVERAL = re.compile(rf"[.!?…。！？‼⁇⁈⁉][{CLOSERS}]*\s+\S|[。！？।॥።։۔؟။༎][{CLOSERS}]*\s*\S")
GREEK = re.compile(r"[;\u037e]\s+\S")
SIMPLE = re.compile(rf"((?<![.!?…])[.!?…]++[{CLOSERS}]*+)\s++(?=[\"'“‘„«¿¡(\[]*[^\W\d_a-zà-öø-ÿа-я])")

END = re.compile(r"(?:[。！？!?｡‼⁇⁈⁉]|…+|⋯+|\.{3,})+([”’』」\"]*)")
PAIRS = {"“": "”", "‘": "’", "「": "」", "『": "』", "（": "）", "(": ")", "《": "》", "〈": "〉", "【": "】"}
LONG_LINE = 2000  # characters; a longer line is first cut into blocks
SURE_END = re.compile(rf"[^\W\d_]{{4}}[.!?]\s+(?=[^\W\d_])|[。！？][{CLOSERS}]*")
LONG_QUOTE = 150  # characters; a quoted speech longer than this is split like any other text
GOES_ON = "，、；：。！？!?…,;:”’』」）)》〉】—"
AFTER_DOTS = "等之的地得了着过吗呢吧罢啊呀么と、がをにはもので"
SAYS_ZH = re.compile(r"[^，。！？…“「『\s]{0,6}(?:说|說|道|问|問|答|喊|叫|想|曰)")
SAYS_JA = re.compile(r"と|って|という|、")


def split_sentences(text: str, language: str) -> list[str]:
    """The stripped sentences of one line of cleaned text, in order; only white space is lost.

    A line of more than `LONG_LINE` characters is first cut into blocks, since the running time of pysbd is quadratic.
    """
    code = base_language(language)
    if len(text) > LONG_LINE:
        return [sentence for block in _blocks(text) for sentence in _split_block(block, code)]
    return _split_block(text, code)


def _split_block(text: str, code: str) -> list[str]:
    if code in WIDE:
        pieces = list(_wide(text, code))
    elif not SEVERAL.search(text) and not (code == "el" and GREEK.search(text)):
        return [text]
    elif code in PYSBD:
        pieces = _pysbd(text, code)
    else:
        pieces = _simple(text)
    pieces = _mended([piece.strip() for piece in pieces])
    return pieces or [text]


def _blocks(text: str) -> Iterator[str]:
    """Blocks of about `LONG_LINE` characters: up to the last sure sentence end, otherwise the last space, otherwise the next."""
    start = 0
    while len(text) - start > LONG_LINE:
        stretch = text[start : start + LONG_LINE]
        end = max((match.end() for match in SURE_END.finditer(stretch)), default=0) or stretch.rfind(" ") + 1
        if not end:
            later = re.compile(r"\s").search(text, start + LONG_LINE)
            end = (later.end() if later else len(text)) - start
        if block := text[start : start + end].strip():
            yield block
        start += end
    if block := text[start:].strip():
        yield block


def _wide(text: str, code: str) -> Iterator[str]:
    inside = sorted(_protected(text))
    start = at = reach = 0  # `reach`: the furthest end of the quotes that began earlier
    for match in END.finditer(text):
        end = match.end()
        while at < len(inside) and inside[at][0] < match.start():
            reach, at = max(reach, inside[at][1]), at + 1
        if reach < end < len(text):
            closed = bool(match[1]) and not (match[1] == '"' and text.count('"', start, end) % 2)
            if match[1] and not closed:
                end -= 1  # this quote opens the next sentence
            if not _goes_on(text, match, start, end, closed=closed, code=code):
                yield text[start:end]
                start = end
    yield text[start:]


def _goes_on(text: str, match: re.Match[str], start: int, end: int, *, closed: bool, code: str) -> bool:
    """Whether the sentence continues after this end mark."""
    following = text[end]
    if following in GOES_ON:
        return True
    marks = match[0].rstrip('”’』」"')
    if marks[-1] in "!?." and not closed and not following.isspace() and following not in PAIRS:
        # An ASCII mark within text is part of an address or the remains of a lost character.
        return True
    if not marks.strip("….⋯") and not closed:
        # Dots may be a pause: the sentence continues in "一二三四……等", and after a stammer of a few characters.
        return following in AFTER_DOTS or match.start() - start < 3
    if closed:
        return bool((SAYS_ZH if code == "zh" else SAYS_JA).match(text, end))
    return False


def _protected(text: str) -> list[tuple[int, int]]:
    """(start, end) of quotes and brackets that are opened and closed within the text, at most LONG_QUOTE characters apart."""
    stack: list[int] = []
    results = []
    for i, c in enumerate(text):
        if c in PAIRS:
            stack.append(i)
        elif stack and c == PAIRS[text[stack[-1]]]:
            start = stack.pop()
            if i - start <= LONG_QUOTE:
                results.append((start, i))
    return results


@cache
def _segmenter(code: str) -> Any:
    import pysbd

    return pysbd.Segmenter(language=code, clean=False)


def _pysbd(text: str, code: str) -> list[str]:
    try:
        pieces: list[str] = _segmenter(code).segment(text)
    except Exception:  # pysbd builds regular expressions from the text, and some texts break them
        return _simple(text)
    # pysbd should be lossless, but is not for unusual quoting.
    return pieces if "".join("".join(pieces).split()) == "".join(text.split()) else _simple(text)


def _simple(text: str) -> list[str]:
    pieces, start = [], 0
    for match in SIMPLE.finditer(text):
        pieces.append(text[start : match.end(1)])
        start = match.end()
    return [*pieces, text[start:]]


def _mended(pieces: list[str]) -> list[str]:
    """Merge pieces so that none lacks letters and digits or begins with a comma or with the previous piece's closing quote."""
    done: list[str] = []
    for raw in filter(None, pieces):
        stray = re.match(rf"[{CLOSERS}]+\s+(?=\S)", raw) if done else None
        piece = raw[stray.end() :] if stray else raw
        if stray:
            done[-1] += stray[0].rstrip()
        if done and (piece[0] in ",;:，；：、" or not (any(map(str.isalnum, piece)) and any(map(str.isalnum, done[-1])))):
            wide = done[-1][-1] > "\u2e7f" or piece[0] > "\u2e7f"
            done[-1] += piece if wide else f" {piece}"
        else:
            done.append(piece)
    return done
