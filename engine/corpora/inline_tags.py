"""Inline codes: the tags inside a sentence, removed or kept as numbered placeholders.

Readers of formats with inline elements (TMX, XLIFF) also write those as tags: `<g id="1">`, `</g id="1">`, `<x id="2"/>`.
Tags are therefore separated from text only here, whatever the file format.

    strip:         Press <b>Open</b> now.  ->  Press Open now.
    placeholders:  Press <b>Open</b> now.  ->  Press {1}Open{/1} now.   (the same numbers in the source and the target)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

INLINE_TAGS = ("strip", "placeholders")
TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]{0,40}|\d{1,3})((?:\s[^<>]{0,300}?)?)\s*(/?)>")
# Elements of HTML, TMX and XLIFF. Other names count as tags only if they are closing, self-closing or have attributes:
# "press <Enter>" is text.
ELEMENTS = (
    "a abbr b bdi bdo big blockquote br c center cite code dd del dfn div dl dt em font h1 h2 h3 h4 h5 h6 hr i img ins "
    "kbd li mark nobr ol p pre q rb rp rt ruby s samp small span strike strong style sub sup table tbody td th thead tr "
    "tt u ul var wbr bpt ept ph it ut hi g x bx ex mrk pc sc ec sm em"
)
BREAKING = "blockquote br center dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre table tbody td th thead tr ul"
NAMES, BREAKS = frozenset(ELEMENTS.split()), frozenset(BREAKING.split())
IDENTITY = re.compile(r"""\bid\s*=\s*["']?([^"'\s>]{1,60})""")
# Non-linguistic parts of a text: tags, entities, links, and placeholders of programs.
PIECE = re.compile(
    r"<[^<>]{0,500}>|&#?\w{1,30};|https?://\S+|www\.\S+|\{/?\w{0,30}\}|%(?:\(\w{1,30}\)|\d+\$)?[-+#0]*\d*(?:\.\d+)?[sdifuxX@](?!\w)"
    r"|\$\{\w{1,30}\}"
)


def _tags(text: str) -> Iterator[re.Match[str]]:
    for match in TAG.finditer(text):
        closing, name, attributes, alone = match.groups()
        if name.lower() in NAMES or closing or alone or "=" in attributes or name.isdigit():
            yield match


def has_tags(text: str) -> bool:
    """Whether there is a tag that `without_tags` would remove."""
    return "<" in text and next(_tags(text), None) is not None


def without_tags(text: str) -> str:
    """The text without its tags; a tag that breaks a line leaves a space, except between characters of wide scripts."""
    if "<" not in text:
        return text
    parts, end = [], 0
    for match in _tags(text):
        parts.append(text[end : match.start()])
        wide = text[match.start() - 1 : match.start()] > "\u2e7f" and text[match.end() : match.end() + 1] > "\u2e7f"
        parts.append(" " if match[2].lower() in BREAKS and not wide else "")
        end = match.end()
    return "".join([*parts, text[end:]])


def with_placeholders(text: str, source: str | None = None) -> tuple[str, str | None]:
    """Text and source with `{1}`, `{/1}`, `{2}` for their tags; a tag that occurs in both has the same number in both."""
    numbers: dict[tuple[str, str, int], int] = {}
    numbered_source = None if source is None else _numbered(source, numbers)
    return _numbered(text, numbers), numbered_source


def _numbered(text: str, numbers: dict[tuple[str, str, int], int]) -> str:
    if "<" not in text:
        return text
    parts, end = [], 0
    counts: Counter[tuple[str, str]] = Counter()
    still_open: list[tuple[str, str, int]] = []
    for match in _tags(text):
        closing, name, attributes, _ = match.groups()
        identity = IDENTITY.search(attributes)
        kind = (name.lower(), identity[1] if identity else "")
        if closing:
            position = next((tag for tag in reversed(still_open) if tag[0] == kind[0] and kind[1] in ("", tag[1])), None)
            key = position or (*kind, 1)
            if position:
                still_open.remove(position)
        else:
            counts[kind] += 1
            key = (*kind, counts[kind])
            still_open.append(key)
        number = numbers.setdefault(key, len(numbers) + 1)
        parts += [text[end : match.start()], f"{{/{number}}}" if closing else f"{{{number}}}"]
        end = match.end()
    return "".join([*parts, text[end:]])


def code_spans(text: str) -> list[tuple[int, int]]:
    """The spans of tags, entities, links and placeholders, which no phrase may overlap."""
    if not any(mark in text for mark in "<&{%") and "http" not in text and "www." not in text:
        return []
    return [match.span() for match in PIECE.finditer(text)]
