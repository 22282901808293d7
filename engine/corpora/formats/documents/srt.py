"""Subtitles in SRT and WebVTT: the text of captions, with sentences joined across captions; numbers and times are preserved."""

from __future__ import annotations

import html
import itertools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from engine.corpora.formats.documents.files import TextDocument, TextFile
from engine.corpora.formats.documents.model import Context, DocumentError, Result, Unit, changed
from engine.corpora.formats.documents.placeholders import find_tags
from engine.corpora.formats.tagged_text import Tag, TaggedText, text_of
from engine.corpora.words import word_spans

TIME = re.compile(r"^\s*+(?:\d{1,4}:)?\d{1,2}:\d{2}[,.]\d{1,3}\s*+-->\s*+(?:\d{1,4}:)?\d{1,2}:\d{2}[,.]\d{1,3}.*")
# In WebVTT everything between < and > is a tag: <v Mary Ann>, <c.yellow>, the time <00:01.500> of a word.
CUE_TAG = re.compile(r"<(/?)([^\s<>./]*+)[^<>]*+>")
CUE_TIME = re.compile(r"<\d")
ENTITY = re.compile(r"&(?:amp|lt|gt);")
STYLE = re.compile(r"\{\\[^{}]*\}")  # {\an8}: the position on the screen
HIDDEN = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
DASH = re.compile(r"(?:<[^<>]*>|\{\\[^{}]*\}|\s)*([-–—]\s*)(?=\S)")  # of a speaker, after any tags
SPEAKER = re.compile(r"\n|[-–—]\s*")  # separates the texts of two speakers
ENDS = re.compile(r"[.!?…。！？:：♪][\"'”’»)\]]*\s*$")
GOES_ON = re.compile(r"^\s*+[\"'“‘«(]?[^\W\d_]")
LONGEST_RUN = 12  # captions in one sentence


@dataclass
class Caption:
    """The lines of a caption's text in the file, and its parts."""

    first: int
    last: int  # excluded
    parts: TaggedText = field(default_factory=list)


class Subtitles(TextDocument):
    """A subtitle file."""

    title: ClassVar[str] = "subtitle file"

    def __init__(self, file: TextFile, context: Context) -> None:
        super().__init__(file, context)
        self.lines, self.end = file.lines()
        self.web = file.text.startswith("WEBVTT")
        self.tags: dict[int, str] = {}  # the tags as written in the file, by number; negative for closing tags
        self.groups: list[list[Caption]] = []
        captions = self._captions()
        if not captions:
            raise DocumentError(
                "{context} contains no caption with a time, such as 00:00:01,000 --> 00:00:02,500.", context=context.name
            )
        for group in self._joined(captions):
            self._add(group)

    def _captions(self) -> list[Caption]:
        results = []
        number = 0
        while number < len(self.lines):
            number += 1
            if not TIME.fullmatch(self.lines[number - 1].rstrip("\r\n")):
                continue
            first = number
            while number < len(self.lines) and self.lines[number].strip():
                number += 1
            if first < number:
                caption = Caption(first, number)
                caption.parts = self._parts("".join(self.lines[first:number]).rstrip("\r\n"))
                results.append(caption)
        return results

    def _parts(self, text: str) -> TaggedText:
        """The text of a caption with its tags; a line break is a space unless a speaker begins."""
        lines = text.splitlines()
        speakers = len(lines) > 1 and all(map(DASH.match, lines))
        parts: TaggedText = []
        names: list[tuple[str, int]] = []
        for index, line in enumerate(lines):
            if index:
                parts.append(self._tag("alone", "\n") if speakers else " ")
            pieces = _cue_tags(line) if self.web else [piece for piece in find_tags(line) if piece[2] != "alone"]
            pieces += [(m.start(), m.end(), "alone", "") for m in STYLE.finditer(line)]
            if speakers and (dash := DASH.match(line)):
                pieces.append((*dash.span(1), "alone", ""))
            at = 0
            for begin, end, kind, name in sorted(pieces):
                parts.append(self._read_text(line[at:begin]))
                at = end
                if kind == "open":
                    parts.append(tag := self._tag("open", line[begin:end]))
                    names.append((name, tag.id))
                elif kind == "close" and names and names[-1][0] == name:
                    id = names.pop()[1]
                    self.tags[-id] = line[begin:end]
                    parts.append(Tag("close", id))
                else:
                    parts.append(self._tag("alone", line[begin:end]))
            parts.append(self._read_text(line[at:]))
        unclosed = {id for _, id in names}
        return [Tag("alone", p.id) if isinstance(p, Tag) and p.id in unclosed else p for p in parts if p != ""]

    def _read_text(self, raw: str) -> str:
        """The displayed text: WebVTT writes <, > and & as entities."""
        return html.unescape(raw) if self.web else raw

    def _tag(self, kind: str, raw: str) -> Tag:
        id = len(self.tags) + 1
        while id in self.tags:
            id += 1
        self.tags[id] = raw
        return Tag("open" if kind == "open" else "alone", id)

    def _joined(self, captions: Sequence[Caption]) -> list[list[Caption]]:
        """Group captions that form a sentence: one does not end the sentence, and the next one continues in lower case."""
        groups: list[list[Caption]] = []
        for caption in captions:
            text = text_of(caption.parts)
            before = text_of(groups[-1][-1].parts) if groups else ""
            first = GOES_ON.match(text)
            letter = first[0].strip()[-1] if first else ""
            on = letter.islower() or (bool(letter) and unicodedata.category(letter) == "Lo")
            plain = not any(isinstance(p, Tag) and self.tags[p.id] == "\n" for p in caption.parts)
            # In scripts without lower case, only a comma indicates that the sentence continues.
            on = on and (letter.islower() or bool(re.search(r"[，、,]\s*$", before)))
            if groups and before.strip() and on and plain and not ENDS.search(before) and len(groups[-1]) < LONGEST_RUN:
                groups[-1].append(caption)
            else:
                groups.append([caption])
        return groups

    def _add(self, group: list[Caption]) -> None:
        parts: TaggedText = []
        for index, caption in enumerate(group):
            if index:
                parts += [self._tag("alone", ""), " "]  # the end of a caption, as a tag without text
            parts += caption.parts
        if not text_of(parts).strip():
            return
        breaks = frozenset(p.id for p in parts if isinstance(p, Tag) and SPEAKER.fullmatch(self.tags[p.id]))
        self.groups.append(group)
        self.units.append(Unit(parts, f"line {group[0].first + 1}", breaks=breaks, markup=False))

    def build(self, results: Sequence[Result | None]) -> bytes:
        lines = list(self.lines)
        pairs = list(zip(self.groups, self.units, strict=True))
        for (group, unit), parts in reversed(changed(pairs, self.units, results)):
            for caption, text in reversed(list(zip(group, self._cut(group, unit, self._timed(parts)), strict=True))):
                ended = self.lines[caption.last - 1].endswith("\n")
                written = [line + self.end for line in self._wrapped(text)]
                if not ended:
                    written[-1] = written[-1].rstrip("\r\n")
                lines[caption.first : caption.last] = written
        return self.file.encoded("".join(lines))

    def _timed(self, parts: TaggedText) -> TaggedText:
        """Put the times of words in ascending order, since players skip captions that go back in time."""
        times = {part for part in parts if isinstance(part, Tag) and CUE_TIME.match(self.tags[part.id])}
        ordered = iter(sorted(times, key=lambda tag: tag.id))
        return [next(ordered) if part in times else part for part in parts]

    def _cut(self, group: Sequence[Caption], unit: Unit, parts: TaggedText) -> list[str]:
        """The text of each caption, cut according to the alignment, or by length if that leaves a caption without text."""
        if len(group) == 1:
            return [self._raw(parts)]
        ends = {part.id for part in unit.parts if isinstance(part, Tag) and self.tags[part.id] == ""}
        pieces: list[TaggedText] = [[]]
        opened: list[Tag] = []
        for part in parts:
            if isinstance(part, Tag) and part.id in ends:
                pieces[-1] += [Tag("close", tag.id) for tag in reversed(opened)]
                pieces.append(list(opened))
                continue
            if isinstance(part, Tag) and part.kind == "open":
                opened.append(part)
            elif isinstance(part, Tag) and part.kind == "close":
                opened = [tag for tag in opened if tag.id != part.id]
            pieces[-1].append(part)
        order = [part.id for part in parts if isinstance(part, Tag) and part.id in ends]
        if order == sorted(order) and all(text_of(piece).strip() for piece in pieces):
            return [self._raw(piece) for piece in pieces]
        return self._by_length(group, self._raw([p for p in parts if not (isinstance(p, Tag) and p.id in ends)]))

    def _by_length(self, group: Sequence[Caption], text: str) -> list[str]:
        sizes = [max(1, len(text_of(caption.parts))) for caption in group]
        hidden = _hidden(text)
        words = [span for span in word_spans(text) if hidden[span[0]].isalnum()]
        cuts, share = [0], 0.0
        for size in sizes[:-1]:
            share += size / sum(sizes)
            target = round(share * len(text))
            candidates = [a for a, _ in words if a > cuts[-1]]
            cuts.append(min(candidates, key=lambda a: abs(a - target)) if candidates else cuts[-1])
        cuts.append(len(text))
        return [text[a:b].strip() for a, b in itertools.pairwise(cuts)]

    def _raw(self, parts: Sequence[str | Tag]) -> str:
        result = ""
        for part in parts:
            text = html.escape(part, quote=False) if self.web and isinstance(part, str) else part
            result += text if isinstance(text, str) else self.tags[-text.id if text.kind == "close" else text.id]
        return result.strip(" ")

    def _wrapped(self, text: str) -> list[str]:
        """The lines of a caption: as few as the width allows, of similar length."""
        lines = []
        for line in text.split("\n"):
            lines += _balanced(line.strip(), self.context.options.subtitle_width)
        return lines


def _columns(text: str) -> int:
    plain = ENTITY.sub("&", HIDDEN.sub("", text))
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in plain)


def _balanced(text: str, width: int) -> list[str]:
    size = _columns(text)
    count = -(-size // width)
    if count <= 1:
        return [text]
    lines = []
    for remaining in range(count, 1, -1):
        target = _columns(text) / remaining
        candidates = [m.start() for m in re.finditer(r"(?<=\S)\s+(?=\S)", _hidden(text))] or [
            m.start() for m in re.finditer(r"(?<=[，。、；：！？…])(?=[^，。、；：！？…”』」）])", _hidden(text))
        ] or [a for a, _ in word_spans(text) if a and text[a].isalnum() and _hidden(text)[a] != "\0"]  # fmt: skip
        candidates = [position for position in candidates if _columns(text[:position]) <= width] or candidates[:1]
        if not candidates:
            break
        position = min(candidates, key=lambda at: abs(_columns(text[:at]) - target))
        lines.append(text[:position].rstrip())
        text = text[position:].lstrip()
    return [*lines, text]


def _hidden(text: str) -> str:
    """The text with tags and entities replaced by null characters, so that no line is broken inside one."""
    return ENTITY.sub(_blot, HIDDEN.sub(_blot, text))


def _blot(match: re.Match[str]) -> str:
    return "\0" * len(match[0])


def _cue_tags(line: str) -> list[tuple[int, int, str, str]]:
    """(begin, end, kind, name) of the tags in a line of WebVTT, as in `find_tags`."""
    return [
        (match.start(), match.end(), "close" if match[1] else "alone" if match[2][:1].isdigit() else "open", match[2])
        for match in CUE_TAG.finditer(line)
    ]
