"""Prepares a unit for a sentence model: splits it into sentences, with stand-ins for content that must stay unchanged.

Non-linguistic content in a sentence (a placeholder, an address, an image used as a word) is replaced by one private-use
character each, an atom, as is what ends a sentence (a line break). For the model, each atom is written as a stand-in, a word that
models preserve. Other tags are kept separate from the text and are placed by alignment.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.corpora.formats.documents.model import Unit
from engine.corpora.formats.documents.placeholders import (
    find_code,
    find_placeholders,
    find_signs,
    find_tags,
    stand_in_pattern,
    stand_ins,
)
from engine.corpora.formats.tagged_text import Tag, TaggedText, add_text, text_of
from engine.corpora.sentences import split_sentences

FIRST, LAST = 0xF0000, 0xFFFFD  # plane 15, private use
ATOM = re.compile(f"[{chr(FIRST)}-{chr(LAST)}]")
# An atom with adjacent letters and digits: "%dpx" is one word for a model.
# The lookbehind makes preceding letters match only from the first, so that scanning is linear without atoms.
GROUP = re.compile(rf"(?:(?<![0-9A-Za-z])[0-9A-Za-z]+)?(?:[{chr(FIRST)}-{chr(LAST)}][0-9A-Za-z]*)+")
# The keys of a menu entry, written after a tab and parsed by programs.
KEYS = re.compile(
    r"\s*+(?:(?:Ctrl|Control|Strg|Alt|AltGr|Shift|Cmd|Command|Meta|Super|Win|Option|⌘|⌥|⇧|⌃)\s?\+\s?)*+"
    r"(?:F\d{1,2}|Del|Delete|Ins|Insert|Esc|Enter|Return|Tab|Space|Backspace|Home|End|Left|Right|Up|Down|PgUp|PgDown|PgDn|[!-~])\s*+"
)
MOST_ATOMS = 99  # in one sentence


@dataclass
class Prepared:
    """A unit's `parts` with atoms; `sentences` are the spans of their text to translate."""

    unit: Unit
    parts: TaggedText
    atoms: list[str | Tag] = field(default_factory=list)  # the content of each private-use character
    breaks: set[int] = field(default_factory=set)  # indices of the atoms that end a sentence
    written: dict[int, str] = field(default_factory=dict)  # tags written in the text, by id, closing ones by -id
    percent: bool = False  # percent signs are written %%
    shortcut: str = ""  # the letter of the keyboard shortcut, empty for none
    shortcut_line: int = 0  # index of the section between breaks that contains its mark
    text: str = ""  # the text of the parts
    tags: list[int] = field(default_factory=list)  # positions in the text of the separate tags
    sentences: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Masked:
    """A sentence as given to the model, with the begin and end of each character in the prepared text."""

    text: str
    starts: list[int]
    ends: list[int]
    names: dict[str, str]  # stand-in -> the prepared text that it replaces


@dataclass(frozen=True)
class Restored:
    """A translation with restored atoms, with the begin and end in it of each character of the model's output."""

    text: str
    starts: list[int]
    ends: list[int]
    lost: list[str]  # stand-ins that the model dropped
    doubled: bool


def prepare(unit: Unit, source: str) -> Prepared:
    """Find atoms, written tags and sentences in a unit; `source` is its language."""
    result = Prepared(unit, [])
    result.percent = any(kind in unit.placeholders for kind in ("printf", "named")) and "%%" in unit.text
    names: list[tuple[str, int]] = []
    next_id = 1 + max((part.id for part in unit.parts if isinstance(part, Tag)), default=0)
    for part in unit.parts:
        if isinstance(part, Tag):
            if part.kind == "alone" and (part.id in unit.words or part.id in unit.breaks):
                _atom(result, part, part.id in unit.breaks)
            else:
                result.parts.append(part)
            continue
        at = 0
        tags = find_tags(part) if unit.markup else []
        markup = [*tags, *find_code(tags), *find_signs(part, unit.placeholders)]
        for begin, end, kind, name in sorted(markup, key=lambda span: (span[0], -span[1])):
            if begin < at:  # inside a tag or code
                continue
            _text(result, part[at:begin])
            at = end
            raw = part[begin:end]
            if name == "br" or kind == "word":
                _atom(result, raw, name == "br")
                continue
            if kind == "close" and (position := _opened(names, name)) is not None:
                id = names.pop(position)[1]
                result.written[-id] = raw
                result.parts.append(Tag("close", id))
                continue
            result.written[next_id] = raw
            result.parts.append(Tag("open" if kind == "open" else "alone", next_id))
            if kind == "open":
                names.append((name, next_id))
            next_id += 1
        _text(result, part[at:])
    _find_shortcut(result)
    result.parts = _merged(result.parts)
    result.text = text_of(result.parts)
    at = 0
    for part in result.parts:
        if isinstance(part, Tag):
            result.tags.append(at)
        else:
            at += len(part)
    result.sentences = _sentences(result, source)
    return result


def _opened(names: Sequence[tuple[str, int]], name: str) -> int | None:
    return next((position for position in reversed(range(len(names))) if names[position][0] == name), None)


def _atom(prepared: Prepared, value: str | Tag, ends: bool) -> None:
    if ends:
        prepared.breaks.add(len(prepared.atoms))
    prepared.parts.append(chr(FIRST + len(prepared.atoms)))
    prepared.atoms.append(value)


def _text(prepared: Prepared, text: str) -> None:
    """Add text, with its placeholders as atoms."""
    at = 0
    for begin, end in find_placeholders(text, prepared.unit.placeholders):
        if prepared.percent and text[begin:end] == "%%":
            continue
        _plain(prepared, text[at:begin])
        _atom(prepared, text[begin:end], False)
        at = end
    _plain(prepared, text[at:])


def _plain(prepared: Prepared, text: str) -> None:
    if prepared.percent:
        text = text.replace("%%", "%")
    at = 0
    unit = prepared.unit
    allowed = {"\n": unit.keep_lines, "\r\n": unit.keep_lines, "\t": unit.keep_tabs}
    for match in re.finditer(ATOM.pattern + "|\r\n|\n|\t", text):
        if not allowed.get(match[0], True):
            continue
        prepared.parts.append(text[at : match.start()])
        _atom(prepared, match[0], match[0] in allowed)  # private-use characters of the document become atoms too
        at = match.end()
    prepared.parts.append(text[at:])


def _find_shortcut(prepared: Prepared) -> None:
    """Remove the mark of a keyboard shortcut from a text that has one, as in `_Open file`."""
    mark = prepared.unit.shortcut
    if not mark:
        return
    pattern = re.compile(rf"(?<![\w&]){mark}(?=[^\W_])")
    matches = [(k, match) for k, part in enumerate(prepared.parts) if isinstance(part, str) for match in pattern.finditer(part)]
    inside = "".join(part for part in prepared.parts if isinstance(part, str))
    if len(matches) != 1 or inside.count(mark) != 1:
        return
    k, match = matches[0]
    part = str(prepared.parts[k])
    prepared.shortcut = part[match.end()]
    before = [*prepared.parts[:k], part[: match.start()]]
    prepared.shortcut_line = len(break_places(prepared, "".join(piece for piece in before if isinstance(piece, str))))
    prepared.parts[k] = part[: match.start()] + part[match.end() :]


def break_places(prepared: Prepared, text: str) -> list[int]:
    """Positions of the atoms that end a sentence, in a text of the unit or of its translation."""
    return [match.start() for match in ATOM.finditer(text) if ord(match[0]) - FIRST in prepared.breaks]


def _merged(parts: TaggedText) -> TaggedText:
    """Merge adjacent texts and drop empty ones."""
    done: TaggedText = []
    for part in parts:
        if isinstance(part, str):
            add_text(done, part)
        else:
            done.append(part)
    return done


def _sentences(prepared: Prepared, source: str) -> list[tuple[int, int]]:
    """Spans of the sentences that contain something to translate."""
    text = prepared.text
    spans: list[tuple[int, int]] = []
    at = 0
    for end in [*break_places(prepared, text), len(text)]:
        behind_tab = at > 0 and prepared.atoms[ord(text[at - 1]) - FIRST] == "\t"
        if not (behind_tab and prepared.unit.shortcut and KEYS.fullmatch(text, at, end)):
            spans += _split(text, at, end, "" if prepared.unit.whole else source)
        at = end + 1
    return [(a, b) for a, b in spans if _has_words(text[a:b])]


def _has_words(text: str) -> bool:
    """Whether there are words to translate, not only numbers, signs and atoms; False if there are too many atoms."""
    remainder, atoms = GROUP.subn("", text)
    return atoms < MOST_ATOMS and any(map(str.isalpha, remainder))


def _split(text: str, begin: int, end: int, source: str) -> list[tuple[int, int]]:
    """Spans of the sentences in a section of text, split with stand-ins for atoms; one sentence if `source` is empty."""
    masked = mask(text, begin, end)
    if not masked.text:
        return []
    ends, at = [], 0
    for sentence in split_sentences(masked.text, source) if source else [masked.text]:
        for _ in range(sum(not c.isspace() for c in sentence)):  # splitters may change only spaces
            at += 1
            while at < len(masked.text) and masked.text[at].isspace():
                at += 1
        ends.append(at)
    cuts = [0, *ends[:-1], len(masked.text)]
    results = []
    for a, b in itertools.pairwise(cuts):
        size = len(masked.text[a:b].rstrip())
        if size:
            results.append((masked.starts[a], masked.ends[a + size - 1]))
    return results


def mask(text: str, begin: int, end: int, *, family: int = 0) -> Masked:
    """Mask a section of prepared text for the model, with stand-ins for atoms and single spaces.

    If the family has too few stand-ins, none are used and the atoms stay.
    """
    groups = list(GROUP.finditer(text, begin, end))
    words = stand_ins(text[begin:end], len(groups), family)
    letters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    names: dict[str, str] = {}

    def add(piece: str, start: int, stop: int) -> None:
        letters.extend(piece)
        starts.extend([start] * len(piece))
        ends.extend([stop] * len(piece))

    def add_plain(start: int, stop: int) -> None:
        for k in range(start, stop):
            if not text[k].isspace():
                add(text[k], k, k + 1)
            elif letters and letters[-1] != " ":
                add(" ", k, k + 1)

    at = begin
    for group, word in zip(groups, words, strict=False):
        add_plain(at, group.start())
        names[word] = group[0]
        add(word, group.start(), group.end())
        at = group.end()
    add_plain(at, end)
    if letters and letters[-1] == " ":
        del letters[-1], starts[-1], ends[-1]
    return Masked("".join(letters), starts, ends, names)


def restore(translation: str, names: dict[str, str]) -> Restored:
    """Replace the stand-ins in a translation by the text that they represent."""
    text, starts, ends = "", [], []
    unplaced = dict(names)
    doubled = False
    at = 0

    def add(piece: str) -> None:
        nonlocal text
        for character in piece:
            starts.append(len(text))
            text += character
            ends.append(len(text))

    for match in stand_in_pattern(tuple(names)).finditer(translation) if names else ():
        word = "".join(match[0].split())
        add(translation[at : match.start()])
        at = match.end()
        value = unplaced.pop(word, "")
        doubled = doubled or not value
        begin = len(text)
        text += value
        starts += [begin] * len(match[0])
        ends += [len(text)] * len(match[0])
    add(translation[at:])
    return Restored(text, starts, ends, list(unplaced), doubled)


def decode(prepared: Prepared, parts: Sequence[str | Tag]) -> TaggedText:
    """Replace atoms and written tags in the parts of a translation by their content."""
    done: TaggedText = []
    for part in parts:
        if isinstance(part, Tag):
            key = -part.id if part.kind == "close" else part.id
            done.append(prepared.written.get(key, part))
            continue
        at = 0
        for match in ATOM.finditer(part):
            position = ord(match[0]) - FIRST
            done.append(_escaped(prepared, part[at : match.start()]))
            done.append(prepared.atoms[position] if position < len(prepared.atoms) else match[0])
            at = match.end()
        done.append(_escaped(prepared, part[at:]))
    return _merged(done)


def _escaped(prepared: Prepared, text: str) -> str:
    return text.replace("%", "%%") if prepared.percent else text
