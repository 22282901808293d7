"""The normal form of sentences, and the reasons for skipping a sentence."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, cast

from engine.corpora.inline_tags import PIECE
from engine.corpora.types import CorpusOptions
from engine.messages import mark

EMPTY = mark("empty")
TOO_SHORT = mark("too short")
TOO_LONG = mark("too long")
NO_LETTERS = mark("no letters")
MARKUP = mark("only markup or a link")
UNDECODABLE = mark("undecodable characters")

# Characters that never belong to a sentence: soft hyphen, zero-width space, direction marks, byte order mark,
# invisible operators, annotation marks, language tags, lone surrogates, control characters other than white space.
INVISIBLE = re.compile(
    "[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
# The joiners U+200C and U+200D are part of the spelling in Arabic and Indic scripts and join emoji; elsewhere they are noise.
JOINER = re.compile("[\u200c\u200d]+")
JOINING = re.compile("[\u0600-\u0fff\u1000-\u109f\u1780-\u17ff]")
# Characters that PDF readers return for plain ones, such as radicals (⾬ for 雨, ⻢ for 马) and ligatures (ﬁ). They are replaced
# by their compatibility form or, if they have none, according to Unicode's table of equivalent unified ideographs.
RADICALS = (
    "⺁厂⺟母⺠民⻁虎⻄西⻅见⻆角⻉贝⻋车⻐钅⻑長⻓长⻔门⻘青⻙韦⻚页⻛风⻜飞⻝食⻠饣⻢马⻣骨"
    "⻤鬼⻥鱼⻦鸟⻧卤⻨麦⻩黄⻬齐⻭歯⻮齿⻯竜⻰龙⻳龟"
)
LOOKALIKES = {
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in (*range(0x2F00, 0x2FD6), *range(0xFB00, 0xFB07))},
    **dict(zip(map(ord, RADICALS[::2]), RADICALS[1::2], strict=True)),
}
PICTURE = re.compile("[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]")
SPACE = re.compile(r"[\s\x1c-\x1f\x85]+")


def clean(text: str, normalization: str = "NFC") -> str:
    """The text in one Unicode form, without invisible characters, with single spaces and none at either end.

    NFC leaves full-width punctuation as it is; look-alikes are replaced by the plain characters. `clean` is idempotent.
    """
    text = INVISIBLE.sub("", text)
    text = JOINER.sub(_joiner, text)
    if normalization != "none":
        form = cast(Literal["NFC", "NFKC"], normalization)
        text = unicodedata.normalize(form, text.translate(LOOKALIKES))
    return SPACE.sub(" ", text).strip()


def _joiner(match: re.Match[str]) -> str:
    before, after = match.string[max(0, match.start() - 1) : match.start()], match.string[match.end() : match.end() + 1]
    if (JOINING.match(before) and JOINING.match(after)) or (PICTURE.match(before) and PICTURE.match(after)):
        return match[0][0]
    return ""


def reason_to_skip(text: str, options: CorpusOptions) -> str | None:
    """The reason why a cleaned sentence cannot be used, or None if it can."""
    if not text:
        return EMPTY
    if "�" in text:
        return UNDECODABLE
    if not any(c.isalpha() for c in text):
        return NO_LETTERS
    if not any(c.isalpha() for c in PIECE.sub(" ", text)):
        return MARKUP
    if len(text) < options.min_chars:
        return TOO_SHORT
    if len(text) > options.max_chars:
        return TOO_LONG
    return None
