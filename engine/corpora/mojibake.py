"""Detection of text that was decoded wrongly before import ("mojibake"): â€™ for ’, 浣犲ソ for 你好, 锟斤拷 for lost characters.

The test reverses the error: text whose bytes in the wrong encoding are valid UTF-8 is not real text in any language.
"""

from __future__ import annotations

import re

from engine.messages import mark

GARBLED = mark("garbled: a wrong encoding")

LOST = re.compile("锟斤拷|烫烫烫|ï»¿")
# The characters of the bytes 80 to FF in Latin-1 and Windows-1252.
WESTERN = "\u0080-\u00ff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
WESTERN_RUN = re.compile(f"[{WESTERN}]{{2,}}")
# UTF-8 sequences of characters common in real text, by first byte: Latin-1 letters (C3), signs (C2), Greek and Cyrillic
# (CE-D1, in runs), general punctuation and CJK (E2-E9), full-width forms (EF), emoji (F0).
PLAUSIBLE = re.compile(
    rb"[\xc2\xc3][\x80-\xbf]|(?:[\xce-\xd1][\x80-\xbf]){3}|[\xe2-\xe9\xef][\x80-\xbf]{2}|\xf0[\x90-\x9f][\x80-\xbf]{2}"
)
CHINESE_RUN = re.compile("[\u00a4-\uffff]{4,}")
WIDE = re.compile(rb"[\xe2-\xe9\xef][\x80-\xbf]{2}")
LEAST_WIDE = 3
WIDE_SHARE = 0.7  # of the bytes of a run


def is_garbled(text: str) -> bool:
    """Whether part of this line (as read from the file, not cleaned) comes from a wrong encoding."""
    if LOST.search(text):
        return True
    if any(_western(match[0]) for match in WESTERN_RUN.finditer(text)):
        return True
    return any(_chinese(match[0]) for match in CHINESE_RUN.finditer(text))


def _western(run: str) -> bool:
    """Whether the run is UTF-8 read as Windows-1252 or Latin-1; it may end in the middle of a character."""
    raw = b"".join(_western_byte(character) for character in run)
    match = PLAUSIBLE.search(raw)
    if match is None:
        return False
    try:
        match[0].decode("utf-8")
    except UnicodeDecodeError:
        return False
    # Two signs may be adjacent by chance, as in "É »" with a no-break space: C2 and C3 count only for letters and three signs.
    return len(match[0]) > 2 or match[0].decode("utf-8").isalpha() or match[0] in (b"\xc2\xa0", b"\xc2\xab", b"\xc2\xbb")


def _western_byte(character: str) -> bytes:
    try:
        return character.encode("cp1252")
    except UnicodeEncodeError:
        return character.encode("latin-1")


def _chinese(run: str) -> bool:
    """Whether the run is UTF-8 read as GBK: re-encoded as GBK, most of its bytes form three-byte UTF-8 characters.

    Not all of them, because bytes invalid in GBK were lost. In genuine Chinese text, only about one byte in thirty does.
    """
    raw = run.encode("gbk", errors="ignore")
    wide = len(WIDE.findall(raw))
    return wide >= LEAST_WIDE and 3 * wide >= WIDE_SHARE * len(raw)
