"""Assembles a unit from its translated sentences: restores placeholders, places tags and collects warnings."""

from __future__ import annotations

import re
import string
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.flagged import FLAGS, flag_of, flagged
from engine.core.languages import unspaced
from engine.corpora.formats.documents.model import Result, together
from engine.corpora.formats.documents.placeholders import renumbered
from engine.corpora.formats.tagged_text import Tag, TaggedText, text_of
from engine.corpora.words import word_spans
from engine.decoding.tag_projection import project
from engine.decoding.word_alignment import Alignment
from engine.messages import Message
from engine.serving.units.mask import ATOM, FIRST, Masked, Prepared, Restored, break_places, decode, restore

NUMBER = re.compile(r"\d(?:[\d.,\u00a0\u202f']*\d)?")
LONG_RUN = 4.0  # times the source's length (wide characters counted twice) above which a translation is suspect


@dataclass(frozen=True)
class UnitSentence:
    """A sentence of a unit as given to the model, and its translation."""

    span: tuple[int, int]  # begin and end in the prepared text
    masked: Masked
    translation: str


def needs_alignment(prepared: Prepared, sentence: UnitSentence) -> bool:
    """Whether the sentence needs word alignment: it has a tag inside, or the translation lost a placeholder."""
    begin, end = sentence.span
    if bisect_left(prepared.tags, end) > bisect_right(prepared.tags, begin):
        return True
    return bool(restore(sentence.translation, sentence.masked.names).lost)


def assemble(prepared: Prepared, sentences: Sequence[UnitSentence], alignments: Mapping[int, Alignment], target: str) -> Result:
    """Assemble the unit in the language `target`; `alignments` are by index, for sentences that need one, in masked form."""
    text = prepared.text
    if all(sentence.translation == sentence.masked.text for sentence in sentences):
        return Result(prepared.unit.parts)  # untranslated, so keep it unchanged, including spaces
    doubts: list[str] = []
    builder = Builder(text, target)
    for k, sentence in enumerate(sentences):
        back = restore(sentence.translation, sentence.masked.names)
        if back.lost or back.doubled:
            doubts.append(_put_back(prepared, [sentence.masked.names[name] for name in back.lost]))
        builder.add(sentence, back, alignments.get(k))
        flag = flag_of(sentence.translation)
        doubts += [Message(FLAGS[flag])] if flag else _odd(sentence)
    translation, links = builder.finish()
    tagged = any(isinstance(part, Tag) for part in prepared.parts)
    parts: TaggedText = project(prepared.parts, translation, links, spaced=not unspaced(target)) if tagged else [translation]
    parts, doubt = _in_order(prepared, parts)
    parts = _with_shortcut(prepared, parts, target)
    flag = flag_of(flagged("", [flag_of(sentence.translation) for sentence in sentences]))
    return Result(decode(prepared, parts), together(*doubts, *doubt), flag)


class Builder:
    """Builds the target text and its alignment with the source text."""

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.solid = unspaced(target)
        self.text = ""
        self.at = 0  # position in the source
        self.links: list[tuple[tuple[int, int], dict[int, float]]] = []
        self.words = word_spans(source)
        self.ends = [end for _, end in self.words]
        self.indices = {span: i for i, span in enumerate(self.words)}

    def add(self, sentence: UnitSentence, back: Restored, alignment: Alignment | None) -> None:
        """Append a sentence."""
        begin, end = sentence.span
        self._between(begin, back.text)
        origin = len(self.text)
        inside = range(bisect_left(self.words, (begin,)), bisect_right(self.ends, end))
        if alignment is None:
            rows = _block(word_spans(back.text), inside)
        else:
            rows = self._rows(sentence.masked, back, alignment)
        text, rows = self._with_lost(sentence, back, rows)
        self.text += text
        self.links += [((origin + a, origin + b), row) for (a, b), row in rows]
        self.at = end

    def finish(self) -> tuple[str, Alignment]:
        """Append the text after the last sentence; returns the whole text and its alignment."""
        self._copy(self.source[self.at :], self.at)
        return self.text, Alignment(self.words, [span for span, _ in self.links], [row for _, row in self.links])

    def _between(self, begin: int, following: str) -> None:
        """Append the text before the next sentence; spaces between sentences are adapted to the target language."""
        piece = self.source[self.at : begin]
        if self.at and not piece.strip():
            wide = bool(self.text) and (not self.text[-1].isascii() or not following[:1].isascii())
            piece = "" if self.solid and wide else piece or " "
        self._copy(piece, self.at)

    def _copy(self, piece: str, begin: int) -> None:
        """Append untranslated text, whose words are aligned with themselves."""
        for a, b in word_spans(piece):
            origin = self.indices.get((begin + a, begin + b))
            row = {} if origin is None else {origin: 1.0}
            self.links.append(((len(self.text) + a, len(self.text) + b), row))
        self.text += piece

    def _rows(self, masked: Masked, back: Restored, alignment: Alignment) -> Rows:
        """Map the model's alignment to the prepared text and the restored translation."""
        owners: list[range] = []
        for a, b in alignment.source:
            start, end = masked.starts[a], masked.ends[b - 1]
            owners.append(range(bisect_right(self.ends, start), bisect_left(self.words, (end,))))
        rows: Rows = []
        for (a, b), weights in zip(alignment.target, alignment.weights, strict=True):
            start, end = back.starts[a], back.ends[b - 1]
            row: dict[int, float] = {}
            for i, weight in weights.items():
                for owner in owners[i]:
                    row[owner] = row.get(owner, 0.0) + weight / len(owners[i])
            # A stand-in may represent several words of the text; each word is added once.
            for x, y in word_spans(back.text[start:end]):
                if not rows or rows[-1][0][1] <= start + x:
                    rows.append(((start + x, start + y), dict(row)))
        return rows

    def _with_lost(self, sentence: UnitSentence, back: Restored, rows: Rows) -> tuple[str, Rows]:
        """Insert lost placeholders in place of the words aligned with them, else after the translation of the preceding word."""
        text = back.text
        begin, end = sentence.span
        for name in back.lost:
            value = sentence.masked.names[name]
            word = self.source.index(value, begin, end)
            words = range(bisect_left(self.words, (word,)), bisect_right(self.ends, word + len(value)))
            before = range(bisect_left(self.words, (begin,)), bisect_right(self.ends, word))
            first = next((j for j, (_, row) in enumerate(rows) if row and max(row, key=lambda i: row[i]) in words), None)
            k = -1  # the target word to insert after
            if first is not None:
                last = first
                while last + 1 < len(rows) and max(rows[last + 1][1], default=-1, key=rows[last + 1][1].get) in words:  # type: ignore[arg-type]
                    last += 1
                at = rows[first][0][0]
                text, rows = _cut(text, rows, first, last)
                k = first - 1
            else:
                if before and rows:
                    k = max(range(len(rows)), key=lambda j: (rows[j][1].get(before[-1], 0.0), -j))
                at = rows[k][0][1] if k >= 0 else 0
            left = "" if self.solid or not at or text[at - 1].isspace() or not text[at - 1].isalnum() else " "
            right = " " if not self.solid and text[at : at + 1].isalnum() else ""
            new_rows: Rows = [((at + len(left) + a, at + len(left) + b), {min(words): 1.0}) for a, b in word_spans(value)]
            size = len(left) + len(value) + len(right)
            text = text[:at] + left + value + right + text[at:]
            moved: Rows = [((a + size, b + size), row) if a >= at else ((a, b), row) for (a, b), row in rows]
            rows = [*moved[: k + 1], *new_rows, *moved[k + 1 :]]
        return text, rows


Rows = list[tuple[tuple[int, int], dict[int, float]]]


def _cut(text: str, rows: Rows, first: int, last: int) -> tuple[str, Rows]:
    """Remove the words from `first` to `last`."""
    begin, end = rows[first][0][0], rows[last][0][1]
    size = end - begin
    moved: Rows = [((a - size, b - size), row) for (a, b), row in rows[last + 1 :]]
    return text[:begin] + text[end:], [*rows[:first], *moved]


def _block(words: Sequence[tuple[int, int]], sources: Sequence[int]) -> Rows:
    """Alignment rows of a sentence without inner tags: first and last words to each other, the rest to all uniformly."""
    if not sources:
        return [(span, {}) for span in words]
    row = dict.fromkeys(sources, 1.0 / len(sources))
    rows: Rows = [(span, row) for span in words]
    if rows:
        rows[0] = (rows[0][0], {sources[0]: 1.0})
        rows[-1] = (rows[-1][0], {sources[-1]: 1.0})
    return rows


def _put_back(prepared: Prepared, lost: Sequence[str]) -> Message:
    """The warning about restored placeholders or, if none was lost, about a duplicated one."""
    if not lost:
        return Message("A placeholder came twice from the model; one of them was taken out.")
    parts = [part for value in lost for part in decode(prepared, [value])]
    texts = list(filter(None, (part.strip() for part in parts if isinstance(part, str))))
    if texts:
        return Message("{placeholders} was lost in translation and put back: check its place.", placeholders=", ".join(texts))
    return Message("A tag was lost in translation and put back: check its place.")


def _odd(sentence: UnitSentence) -> list[Message]:
    """Warnings about a suspect translation: empty, too long, or a missing number."""
    source, translation = sentence.masked.text, sentence.translation
    for name in sentence.masked.names:
        source, translation = source.replace(name, " "), translation.replace(name, " ")
    if not translation.strip():
        return [Message("The model gave no translation.")] if not sentence.masked.names else []
    if _size(translation) > 40 + LONG_RUN * _size(source):
        return [Message("The translation is much longer than its source.")]
    present = Counter(re.sub(r"\D", "", number) for number in NUMBER.findall(translation))
    written = {digits: number for number in NUMBER.findall(source) if len(digits := re.sub(r"\D", "", number)) > 2}
    missing = Counter(re.sub(r"\D", "", number) for number in NUMBER.findall(source)) - present
    return [
        Message("The number {number} is not in the translation.", number=written[digits]) for digits in missing if digits in written
    ]


def _size(text: str) -> int:
    return sum(1 + (c > "\u2e7f") for c in text)


def _in_order(prepared: Prepared, parts: TaggedText) -> tuple[TaggedText, list[Message]]:
    """Number placeholders that are distinguished only by their order, if the order has changed; else restore the order."""
    text = prepared.text
    atoms = [ord(c) - FIRST for c in ATOM.findall(text)]
    atoms = [k for k in atoms if k < len(prepared.atoms) and isinstance(prepared.atoms[k], str)]
    placed = [
        k
        for part in parts
        if isinstance(part, str)
        for c in ATOM.findall(part)
        if (k := ord(c) - FIRST) < len(prepared.atoms) and isinstance(prepared.atoms[k], str)
    ]
    values = [str(prepared.atoms[k]) for k in atoms]
    order = [atoms.index(k) for k in placed]
    numbered = renumbered(values, order, prepared.unit.placeholders)
    if numbered is None:
        # The program that fills them in relies on their order: an awkward sentence is better than a crash.
        again = iter(sorted(placed, key=atoms.index))
        moved = [part if isinstance(part, Tag) else ATOM.sub(lambda m: _next(prepared, m[0], again), part) for part in parts]
        return moved, [
            Message("Its placeholders can only be distinguished by their order, which the translation had changed: check it.")
        ]
    for k, value in zip(placed, numbered, strict=True):
        prepared.atoms[k] = value
    return parts, []


def _next(prepared: Prepared, atom: str, order: object) -> str:
    k = ord(atom) - FIRST
    if k >= len(prepared.atoms) or not isinstance(prepared.atoms[k], str):
        return atom
    return chr(FIRST + next(order))  # type: ignore[call-overload,no-any-return]


def _with_shortcut(prepared: Prepared, parts: TaggedText, target: str) -> TaggedText:
    """Restore the mark of a keyboard shortcut: before its letter, or as (_F) after a text in another script.

    It goes into the same line, or section between tabs, as in the source.
    """
    letter, mark = prepared.shortcut, prepared.unit.shortcut
    if not letter:
        return parts
    full_text = text_of(parts)
    bounds = [-1, *break_places(prepared, full_text), len(full_text)]
    line = min(prepared.shortcut_line, len(bounds) - 2)  # breaks stay in order
    begin = bounds[line] + 1
    text = full_text[begin : bounds[line + 1]]
    start = re.search(rf"(?<!\w){re.escape(letter)}", text, re.IGNORECASE) or re.search(re.escape(letter), text, re.IGNORECASE)
    if unspaced(target) or not any(c.isascii() and c.isalpha() for c in text):
        cut = len(text.rstrip(f"{string.whitespace}\u3000\xa0.…:：。"))
        return _inserted(parts, begin + cut, f"({mark}{letter.upper()})") if text.strip() else parts
    position = start.start() if start else next(i for i, c in enumerate(text) if c.isalpha())
    return _inserted(parts, begin + position, mark, before=False)


def _inserted(parts: TaggedText, position: int, insertion: str, *, before: bool = True) -> TaggedText:
    """Insert text into parts at a position of their text; between two parts, into the one before or after."""
    done: TaggedText = []
    at = 0
    for part in parts:
        size = len(part) if isinstance(part, str) else 0
        if insertion and size and (at < position <= at + size or at == position == 0 if before else at <= position < at + size):
            part = f"{part[: position - at]}{insertion}{part[position - at :]}"  # type: ignore[index]  # noqa: PLW2901
            insertion = ""
        at += size
        done.append(part)
    return done
