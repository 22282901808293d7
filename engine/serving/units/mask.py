"""A unit made ready for a sentence model: its sentences, with stand-ins for what must come through unharmed.

Whatever is no language but stands in a sentence (a placeholder, an address, a picture that stands for a word) becomes one
private character each, an atom; so does what ends a sentence (a line break). For the model each atom is written as a word
that models keep, a stand-in. Other tags stay beside the text and are put back by alignment.
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

FIRST, LAST = 0xF0000, 0xFFFFD  # plane 15, for private use
ATOM = re.compile(f"[{chr(FIRST)}-{chr(LAST)}]")
# An atom with the letters and digits that touch it: "%dpx" is one word to a model.
# The letters before are read from their first on, so that a text without atoms is read once.
GROUP = re.compile(rf"(?:(?<![0-9A-Za-z])[0-9A-Za-z]+)?(?:[{chr(FIRST)}-{chr(LAST)}][0-9A-Za-z]*)+")
# What is pressed for an entry of a menu, written behind a tab: its programs read it.
KEYS = re.compile(
    r"\s*+(?:(?:Ctrl|Control|Strg|Alt|AltGr|Shift|Cmd|Command|Meta|Super|Win|Option|⌘|⌥|⇧|⌃)\s?\+\s?)*+"
    r"(?:F\d{1,2}|Del|Delete|Ins|Insert|Esc|Enter|Return|Tab|Space|Backspace|Home|End|Left|Right|Up|Down|PgUp|PgDown|PgDn|[!-~])\s*+"
)
MOST_ATOMS = 99  # in one sentence


@dataclass
class Prepared:
    """`parts` are the unit's with atoms; `sentences` are places in their text that are translated."""

    unit: Unit
    parts: TaggedText
    atoms: list[str | Tag] = field(default_factory=list)  # what each private character stands for
    breaks: set[int] = field(default_factory=set)  # those of the atoms that end a sentence
    written: dict[int, str] = field(default_factory=dict)  # tags that were written in the text, by their id
    percent: bool = False  # a percent sign is written %%
    shortcut: str = ""  # the letter of the keyboard shortcut, empty for none
    shortcut_line: int = 0  # of the stretches between breaks, the one that its mark stood in
    text: str = ""  # of the parts
    tags: list[int] = field(default_factory=list)  # the places in the text of the tags beside it
    sentences: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Masked:
    """A sentence as the model gets it; of each of its characters, the place in the prepared text."""

    text: str
    starts: list[int]
    ends: list[int]
    names: dict[str, str]  # stand-in -> what of the prepared text it stands for


@dataclass(frozen=True)
class Restored:
    """A translation with its atoms again; of each character of the model's text, the place in it."""

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
    fresh = 1 + max((part.id for part in unit.parts if isinstance(part, Tag)), default=0)
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
        for begin, end, kind, name in sorted(markup, key=lambda one: (one[0], -one[1])):
            if begin < at:  # in a tag, or in code
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
            result.written[fresh] = raw
            result.parts.append(Tag("open" if kind == "open" else "alone", fresh))
            if kind == "open":
                names.append((name, fresh))
            fresh += 1
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
    """Text, with its placeholders as atoms."""
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
        _atom(prepared, match[0], match[0] in allowed)  # a private character of the document's own is an atom too
        at = match.end()
    prepared.parts.append(text[at:])


def _find_shortcut(prepared: Prepared) -> None:
    """Take the mark of a keyboard shortcut out of a text that has one: `_Open file` is about the word Open."""
    mark = prepared.unit.shortcut
    if not mark:
        return
    pattern = re.compile(rf"(?<![\w&]){mark}(?=[^\W_])")
    matches = [
        (k, match) for k, part in enumerate(prepared.parts) if isinstance(part, str) for match in pattern.finditer(part)
    ]
    inside = "".join(part for part in prepared.parts if isinstance(part, str))
    if len(matches) != 1 or inside.count(mark) != 1:
        return
    k, match = matches[0]
    part = str(prepared.parts[k])
    prepared.shortcut = part[match.end()]
    before = [*prepared.parts[:k], part[: match.start()]]
    prepared.shortcut_line = len(break_places(prepared, "".join(one for one in before if isinstance(one, str))))
    prepared.parts[k] = part[: match.start()] + part[match.end() :]


def break_places(prepared: Prepared, text: str) -> list[int]:
    """Where in a text of the unit, or of its translation, there are atoms that end a sentence."""
    return [match.start() for match in ATOM.finditer(text) if ord(match[0]) - FIRST in prepared.breaks]


def _merged(parts: TaggedText) -> TaggedText:
    """Neighbouring texts as one, without empty ones."""
    done: TaggedText = []
    for part in parts:
        if isinstance(part, str):
            add_text(done, part)
        else:
            done.append(part)
    return done


def _sentences(prepared: Prepared, source: str) -> list[tuple[int, int]]:
    """Places of the sentences that have something to translate."""
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
    """Is there something to translate, and not only numbers, signs and atoms? More atoms than stand-ins are no language."""
    rest, atoms = GROUP.subn("", text)
    return atoms < MOST_ATOMS and any(map(str.isalpha, rest))


def _split(text: str, begin: int, end: int, source: str) -> list[tuple[int, int]]:
    """The sentences in a stretch of text, which without a language is one; with stand-ins for atoms, which end no sentence."""
    whole = mask(text, begin, end)
    if not whole.text:
        return []
    ends, at = [], 0
    for sentence in split_sentences(whole.text, source) if source else [whole.text]:
        for _ in range(sum(not c.isspace() for c in sentence)):  # a splitter may change spaces, nothing else
            at += 1
            while at < len(whole.text) and whole.text[at].isspace():
                at += 1
        ends.append(at)
    cuts = [0, *ends[:-1], len(whole.text)]
    results = []
    for a, b in itertools.pairwise(cuts):
        size = len(whole.text[a:b].rstrip())
        if size:
            results.append((whole.starts[a], whole.ends[a + size - 1]))
    return results


def mask(text: str, begin: int, end: int, *, family: int = 0) -> Masked:
    """A stretch of prepared text for the model: stand-ins for atoms, single spaces. It has no stand-ins where the family
    has too few.
    """
    groups = list(GROUP.finditer(text, begin, end))
    words = stand_ins(text[begin:end], len(groups), family)
    letters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    names: dict[str, str] = {}

    def add(shown: str, start: int, stop: int) -> None:
        letters.extend(shown)
        starts.extend([start] * len(shown))
        ends.extend([stop] * len(shown))

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
    """Put what the stand-ins stand for back into a translation."""
    text, starts, ends = "", [], []
    left = dict(names)
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
        value = left.pop(word, "")
        doubled = doubled or not value
        begin = len(text)
        text += value
        starts += [begin] * len(match[0])
        ends += [len(text)] * len(match[0])
    add(translation[at:])
    return Restored(text, starts, ends, list(left), doubled)


def decode(prepared: Prepared, parts: Sequence[str | Tag]) -> TaggedText:
    """Parts of a translation with what atoms and written tags stand for."""
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
