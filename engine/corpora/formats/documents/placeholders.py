"""Parts of a text that must pass through a translation unchanged: placeholders, addresses, tags in the text."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from functools import cache

from engine.corpora.formats.documents.model import names

LENGTH = r"(?:hh|h|ll|l|q|j|z|t|L)?"
# By kind, from the most to the least certain. `plain` is for prose, in which % may be a percent sign. The texts of a program may
# also be `numbered`: %s may become %1$s.
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
TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]{0,40})((?:\s+[\w:.@-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))?)*)\s*(/?)>")
VOID = names("area base br col embed hr img input link meta source track wbr")
CODE = names("code kbd samp var")  # kept as they are, as a word
CHOICE = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,")  # ICU messages, which contain texts


# Signs missing from vocabularies, with the space before them: the shipped bases replace them by other signs.
SIGN = "[©®™℠\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff][\ufe0e\ufe0f\u200d]*+"
SIGNS = re.compile(f"(?<! ) *+{SIGN}(?: *+{SIGN})*")


@cache
def _pattern(kinds: tuple[str, ...]) -> re.Pattern[str]:
    names = dict.fromkeys(name for kind in kinds for name in (PLAIN if kind == "plain" else (kind,)))
    return re.compile("|".join(KINDS[name] for name in KINDS if name in names), re.DOTALL)


def find_placeholders(text: str, kinds: Sequence[str]) -> list[tuple[int, int]]:
    """The spans of placeholders in a text, in order, without overlaps; `kinds` are keys of KINDS, or `plain`."""
    choices = list(_choices(text))
    result = list(choices)
    for match in _pattern(tuple(kinds)).finditer(text):
        last = bisect.bisect_left(choices, (match.end(),)) - 1  # the last choice that begins before the match ends
        if match[0] and not (last >= 0 and match.start() < choices[last][1]):
            result.append(match.span())
    return sorted(result)


def _choices(text: str) -> Iterator[tuple[int, int]]:
    starts = [match.start() for match in CHOICE.finditer(text)]
    if not starts:
        return
    ends: dict[int, int] = {}  # {opening brace: end of its closing brace}
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
    """(begin, end, kind, name) of the tags in a text; kinds are open, close and alone."""
    if "<" not in text:
        return []
    results, closed = [], set(CLOSING.findall(text))
    for match in TAG.finditer(text):
        slash, name, attributes, alone = match.groups()
        is_known = name.lower() in (KNOWN if not attributes else VOID)
        if not (slash or alone or "=" in attributes or is_known or name in closed):
            continue  # "press <Enter>" and "a <b and b> c" are text
        kind = "close" if slash else "alone" if alone or name.lower() in VOID else "open"
        results.append((match.start(), match.end(), kind, name.lower()))
    return results


def find_code(tags: Sequence[tuple[int, int, str, str]]) -> list[tuple[int, int, str, str]]:
    """Elements of code with their content (<code>make</code>) among the tags from `find_tags`; each is treated as a word."""
    results, ends = [], {}
    for begin, end, kind, name in reversed(tags):
        if kind == "close":
            ends[name] = end
        elif kind == "open" and name in CODE and name in ends:
            results.append((begin, ends.pop(name), "word", name))
    return results[::-1]


def find_signs(text: str, kinds: Sequence[str]) -> list[tuple[int, int, str, str]]:
    """Pictographs and emoji outside placeholders, as `find_tags` returns tags; a sequence is one sign, with the space before it."""
    signs = [] if text.isascii() else [match.span() for match in SIGNS.finditer(text)]
    placeholders = find_placeholders(text, kinds) if signs else []
    places = [bisect.bisect_right(placeholders, (begin, len(text))) - 1 for begin, _ in signs]
    return [
        (begin, end, "alone", "sign") for (begin, end), k in zip(signs, places, strict=True) if k < 0 or placeholders[k][1] <= begin
    ]


KNOWN = VOID | names(
    "a abbr b bdi bdo big cite code del dfn div em font h1 h2 h3 h4 h5 h6 i ins kbd li mark ol p pre q s samp small "
    "span strike strong sub sup table tbody td th thead tr tt u ul var"
)


# Words that replace placeholders while a text is translated, since bases do not preserve %s or {name}: neither shipped base
# preserved any of 120. In 120 sentences each, the German-English base preserved X1, N1, T1 and the like in 99 %, the
# English-Chinese base only in 20 %, but the numbers and names below in 60 to 95 %. Each family is tried if the previous failed.
FAMILIES: tuple[tuple[str, ...], ...] = (
    tuple(f"{letter}{number}" for number in range(1, 100) for letter in "XNTKQZVW"),
    ("250", "35", "300", "12", "48", "500", "64", "7"),
    ("DNA", "NASA", "TED", "iPhone"),
)


def stand_ins(text: str, count: int, family: int = 0) -> list[str]:
    """Words to replace `count` placeholders, none of which occur in the text; empty if there are too few."""
    free = [word for word in FAMILIES[family][: count + 100] if word.casefold() not in text.casefold()][:count]
    return free if len(free) == count else []


@cache
def stand_in_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Matches these stand-ins in a translation as separate words, optionally with a space before the digit."""
    spelt = "|".join(re.sub(r"(?<=[A-Z])(?=\d)", r"\\s?", word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![0-9A-Za-z])(?<!\d[.,])({spelt})(?![0-9A-Za-z]|[.,]\d)")


# Placeholders distinguished only by their position in the text, such as %s and {}.
BY_ORDER = re.compile(rf"%[-+#0 ]*(?:\d+|\*)?(?:\.(?:\d+|\*))?{LENGTH}[a-zA-Z@]|\{{(?:![rsa])?(?::[^{{}}]*)?\}}")


def renumbered(source: Sequence[str], order: Sequence[int], kinds: Sequence[str]) -> list[str] | None:
    """The placeholders of a translation; `order` lists the indices (from 0) of the source's placeholders in their new order.

    Placeholders distinguished only by their position are numbered if their order has changed: `%s … %d` becomes
    `%2$d … %1$s`. None if they cannot be numbered, as in Python's % formatting.
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
