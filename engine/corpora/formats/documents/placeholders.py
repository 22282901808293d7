"""Stretches of a text that must come through a translation unchanged: placeholders, addresses, written tags."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from functools import cache

from engine.corpora.formats.documents.model import names

LENGTH = r"(?:hh|h|ll|l|q|j|z|t|L)?"
# By kind, from the most to the least certain. `plain` is for prose, where a % may be a percent sign. A program's text may
# also be `numbered`: its %s may become %1$s.
KINDS: dict[str, str] = {
    "url": r"(?:https?://|ftp://|www\.)[^\s<>\"'“”‘’（）【】，。；！？、]*[^\s<>\"'“”‘’（）【】，。；！？、.,;:!?)\]}]",
    "mail": r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",
    "template": r"\$\([A-Za-z_]\w*\)|\{\{.{0,500}?\}\}|\{%.{0,500}?%\}|<%.{0,500}?%>|\$\{[^{}\s]*\}|#\{[^{}\s]*\}|%\{\w+\}",
    "named": r"%\(\w+\)[-+#0 ]{0,9}\d{0,9}(?:\.\d+)?[diouxXeEfFgGcrsa]",
    "brace": r"\{(?:[A-Za-z_]\w*|\d+)?(?:[.\[][\w.\[\]]*)?(?:![rsa])?(?::[^{}\s]*)?\}",
    "printf": rf"%(?:\d{{1,9}}\$)?[-+#0 ]{{0,9}}(?:\d{{1,9}}|\*)?(?:\.(?:\d{{1,9}}|\*))?{LENGTH}[diouxXeEfFgGaAcsSpn@](?![^\W\d_])",
    "printf-strict": rf"(?<![\d%\w])%(?:\d{{1,9}}\$)?[-+#0]{{0,9}}\d{{0,9}}(?:\.\d{{1,9}})?{LENGTH}[diouxXeEfgGcspn@](?!\w)",
    "qt": r"(?<![\d%\w])%L?\d{1,2}(?![\w$])|(?<![\d%\w])%n(?!\w)",
    "variable": r"(?<!\w)\$[A-Za-z_]\w+|%[A-Z_]{2,}%",
}
PLAIN = ("url", "mail", "template", "named", "brace", "printf-strict")
CLOSING = re.compile(r"</([A-Za-z][\w:.-]{0,40})")
TAG = re.compile(
    r"<(/?)([A-Za-z][\w:.-]{0,40})((?:\s+[\w:.@-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))?)*)\s*(/?)>"
)
VOID = names("area base br col embed hr img input link meta source track wbr")
CODE = names("code kbd samp var")  # kept as they are, in the place of a word
CHOICE = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,")  # ICU messages hold texts of their own


# Signs that vocabularies lack, with the space before them: the shipped bases write others in their place.
SIGN = "[©®™℠\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff][\ufe0e\ufe0f\u200d]*+"
SIGNS = re.compile(f"(?<! ) *+{SIGN}(?: *+{SIGN})*")


@cache
def _pattern(kinds: tuple[str, ...]) -> re.Pattern[str]:
    names = dict.fromkeys(name for kind in kinds for name in (PLAIN if kind == "plain" else (kind,)))
    return re.compile("|".join(KINDS[name] for name in KINDS if name in names), re.DOTALL)


def find_placeholders(text: str, kinds: Sequence[str]) -> list[tuple[int, int]]:
    """The places of placeholders in a text, in order, without overlaps; `kinds` are keys of KINDS, and `plain`."""
    taken = list(_choices(text))
    result = list(taken)
    for match in _pattern(tuple(kinds)).finditer(text):
        last = bisect.bisect_left(taken, (match.end(),)) - 1  # the last choice that begins before the match ends
        if match[0] and not (last >= 0 and match.start() < taken[last][1]):
            result.append(match.span())
    return sorted(result)


def _choices(text: str) -> Iterator[tuple[int, int]]:
    starts = [match.start() for match in CHOICE.finditer(text)]
    if not starts:
        return
    ends: dict[int, int] = {}  # of each brace, where the one that closes it ends
    opened: list[int] = []
    for match in re.finditer(r"[{}]", text):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            ends[opened.pop()] = match.end()
    end = 0
    for start in starts:
        if start >= end and start in ends:
            end = ends[start]
            yield start, end


def find_tags(text: str) -> list[tuple[int, int, str, str]]:
    """(begin, end, kind, name) of tags written in a text; kinds are open, close and alone."""
    if "<" not in text:
        return []
    results, closed = [], set(CLOSING.findall(text))
    for match in TAG.finditer(text):
        slash, name, attributes, alone = match.groups()
        known = name.lower() in (KNOWN if not attributes else VOID)
        if not (slash or alone or "=" in attributes or known or name in closed):
            continue  # "press <Enter>" and "a <b and b> c" are text
        kind = "close" if slash else "alone" if alone or name.lower() in VOID else "open"
        results.append((match.start(), match.end(), kind, name.lower()))
    return results


def find_code(tags: Sequence[tuple[int, int, str, str]]) -> list[tuple[int, int, str, str]]:
    """Of the tags of a text (`find_tags`), elements of code with what they hold, <code>make</code>: each stands for a word."""
    results, ends = [], {}
    for begin, end, kind, name in reversed(tags):
        if kind == "close":
            ends[name] = end
        elif kind == "open" and name in CODE and name in ends:
            results.append((begin, ends.pop(name), "word", name))
    return results[::-1]


def find_signs(text: str, kinds: Sequence[str]) -> list[tuple[int, int, str, str]]:
    """Pictures and emoji in a text, as `find_tags` gives tags: those that stand together are one, with the space before them.
    In placeholders there are none.
    """
    signs = [] if text.isascii() else [match.span() for match in SIGNS.finditer(text)]
    taken = find_placeholders(text, kinds) if signs else []
    places = [bisect.bisect_right(taken, (begin, len(text))) - 1 for begin, _ in signs]
    return [
        (begin, end, "alone", "sign")
        for (begin, end), k in zip(signs, places, strict=True)
        if k < 0 or taken[k][1] <= begin
    ]


KNOWN = VOID | names(
    "a abbr b bdi bdo big cite code del dfn div em font h1 h2 h3 h4 h5 h6 i ins kbd li mark ol p pre q s samp small "
    "span strike strong sub sup table tbody td th thead tr tt u ul var"
)


# Words to stand for placeholders while a text is translated. No base can be relied on to keep %s or {name}: of 120, not
# one came through in either shipped base. What they keep differs. In 120 sentences each, the German-English base kept
# X1, N1, T1 and the like in 99 %, the English-Chinese one in 20 %, but of the numbers and names below 60 to 95 %. So each
# family is tried where the one before failed.
FAMILIES: tuple[tuple[str, ...], ...] = (
    tuple(f"{letter}{number}" for number in range(1, 100) for letter in "XNTKQZVW"),
    ("250", "35", "300", "12", "48", "500", "64", "7"),
    ("DNA", "NASA", "TED", "iPhone"),
)


def stand_ins(text: str, count: int, family: int = 0) -> list[str]:
    """Words to put in the place of `count` placeholders, none of which is in the text; empty where there are too few."""
    free = [word for word in FAMILIES[family][: count + 100] if word.casefold() not in text.casefold()][:count]
    return free if len(free) == count else []


@cache
def stand_in_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Finds these stand-ins in a translation, each as a word of its own; a space before the digit does not matter."""
    spelt = "|".join(re.sub(r"(?<=[A-Z])(?=\d)", r"\\s?", word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![0-9A-Za-z])(?<!\d[.,])({spelt})(?![0-9A-Za-z]|[.,]\d)")


# Those distinguished only by their position in the text, as %s and {} are.
BY_ORDER = re.compile(rf"%[-+#0 ]*(?:\d+|\*)?(?:\.(?:\d+|\*))?{LENGTH}[a-zA-Z@]|\{{(?:![rsa])?(?::[^{{}}]*)?\}}")


def renumbered(source: Sequence[str], order: Sequence[int], kinds: Sequence[str]) -> list[str] | None:
    """The placeholders of a translation, where `order` says which of the source's (from 0) stands at each place.

    Those distinguished only by their order are numbered where it has changed: `%s … %d` becomes `%2$d … %1$s`. None where
    they cannot be numbered, as in Python's.
    """
    moving = [i for i in order if BY_ORDER.fullmatch(source[i])]
    if moving == sorted(moving):
        return [source[i] for i in order]
    braces = all(source[i].startswith("{") for i in moving)
    if not braces and ("numbered" not in kinds or any("*" in source[i] for i in moving)):
        return None
    rank = {i: k for k, i in enumerate(sorted(moving))}
    results = []
    for i in order:
        if i not in rank:
            results.append(source[i])
        elif braces:
            results.append("{" + str(rank[i]) + source[i][1:])
        else:
            results.append(f"%{rank[i] + 1}${source[i][1:]}")
    return results
