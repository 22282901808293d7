"""HTML files: only texts are replaced; every other character is preserved, including templates and errors."""

from __future__ import annotations

import bisect
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, ClassVar

from engine.core.languages import primary_language
from engine.corpora.formats.documents.files import TextDocument, TextFile
from engine.corpora.formats.documents.model import Context, DocumentError, Result, Unit, changed, names
from engine.corpora.formats.documents.placeholders import CODE
from engine.corpora.formats.tagged_text import Tag, TaggedText, add_text, text_of
from engine.messages import Message

INLINE = names(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q rb ruby s small span strike "
    "strong sub sup time tt u blink output meter progress slot"
)
ALONE = names("img wbr embed area input")  # void elements within a sentence
ANNOTATIONS = names("rp rt")  # reading aids, which are dropped when their word is translated
SKIPPED = names("script style pre textarea svg math iframe object template noembed xmp plaintext canvas audio video")
VOID = ALONE | names("area base br col hr link meta param source track")
OPTIONAL = names("p li dt dd td th tr option optgroup thead tbody tfoot")  # elements with optional end tags
ATTRIBUTES = ("alt", "title", "placeholder", "aria-label", "summary", "label")
DESCRIPTIONS = names("description keywords og:title og:description og:site_name twitter:title twitter:description")
ATTRIBUTE = re.compile(r"""(?<![^\s"'<>/=])([^\s"'<>/=]++)\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'=<>`]++)""")
CHARSET = re.compile(rb"""<meta[^>]{1,500}?charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)


@dataclass
class Piece:
    """A section of the file: a tag, a text, or something else that is preserved."""

    kind: str  # open, close, void, text, other; also word and note for elements that are kept whole
    begin: int
    end: int
    name: str = ""
    attributes: dict[str, str | None] = field(default_factory=dict)


class Scanner(HTMLParser):
    """Cuts a file into consecutive pieces that cover all of it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.text = text
        self.starts = [0]
        for match in re.finditer("\n", text):
            self.starts.append(match.end())
        self.pieces: list[Piece] = []
        self.feed(text)
        self.close()
        ends = [piece.begin for piece in self.pieces[1:]]
        for piece, end in zip(self.pieces, [*ends, len(text)], strict=False):
            piece.end = end

    def _add(self, kind: str, name: str = "", attributes: Any = ()) -> None:
        line, column = self.getpos()
        self.pieces.append(Piece(kind, self.starts[line - 1] + column, -1, name, dict(attributes)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add("void" if tag in VOID else "open", tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add("void", tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._add("close", tag)

    def handle_data(self, data: str) -> None:
        self._add("text")

    def handle_entityref(self, name: str) -> None:
        self._add("text")

    def handle_charref(self, name: str) -> None:
        self._add("text")

    def handle_comment(self, data: str) -> None:
        self._add("other", "comment")

    def handle_decl(self, decl: str) -> None:
        self._add("other")

    def handle_pi(self, data: str) -> None:
        self._add("other")

    def unknown_decl(self, data: str) -> None:
        self._add("other")


Edit = tuple[int, int, str]  # begin, end, replacement


@dataclass
class Run:
    """The range of the file that forms one unit, and the ranges of its tags."""

    begin: int
    end: int
    tags: dict[tuple[str, int], tuple[int, int]]


class Html(TextDocument):
    """An HTML file."""

    title: ClassVar[str] = "HTML file"

    def __init__(self, file: TextFile, context: Context) -> None:
        super().__init__(file, context)
        self.runs: list[Run | tuple[int, int, str]] = []  # or an attribute: begin and end of its value, and its quotes
        self.languages: list[tuple[int, int]] = []
        try:
            pieces = Scanner(file.text).pieces
        except AssertionError as error:  # raised by Python's parser for invalid declarations
            raise DocumentError(
                "{context}: the HTML is damaged ({error}). Save or export it again.", context=context.name, error=error
            ) from None
        self._read(pieces)

    @classmethod
    def declared(cls, head: bytes) -> str:
        charset = CHARSET.search(head)
        return charset[1].decode("ascii") if charset else ""

    def _read(self, pieces: Sequence[Piece]) -> None:
        run: list[Piece] = []
        position = 0
        while position < len(pieces):
            piece = pieces[position]
            if piece.name in ANNOTATIONS:
                position = _annotation_end(pieces, position) if piece.kind == "open" else position + 1
                continue
            foreign = piece.kind == "open" and self._foreign(piece)
            if piece.kind in ("open", "void") and not foreign:
                self._attributes(piece)
            if piece.kind == "open" and (piece.name in SKIPPED or piece.name in CODE or foreign or _closed(piece)):
                after = _element_end(pieces, position)
                if piece.name in INLINE | CODE:
                    word = Piece("word", piece.begin, pieces[after - 1].end, piece.name)
                    run.append(word)
                else:
                    self._add(run)
                    run = []
                if _closed(piece):
                    self.skipped[Message('translate="no"')] += 1
                elif foreign:
                    self.skipped[Message("in another language")] += 1
                position = after
                continue
            if piece.kind == "open" and piece.name == "sup":
                after = _element_end(pieces, position)
                if after - position < 6 and not any(map(str.isalpha, self._text_of(pieces[position:after]))):
                    run.append(Piece("note", piece.begin, pieces[after - 1].end, "sup"))  # the number of a note, m²
                    position = after
                    continue
            inline = piece.kind == "text" or piece.name in INLINE | ALONE or piece.name in ("br", "comment")
            if inline:
                run.append(piece)
            else:
                self._add(run)
                run = []
            position += 1
        self._add(run)

    def _foreign(self, piece: Piece) -> bool:
        """Whether an element declares another language; `html` and `body` are ignored, as they often copy it from a template."""
        language = piece.attributes.get("lang") or piece.attributes.get("xml:lang") or ""
        source = primary_language(self.context.source)
        return piece.name not in ("html", "body") and primary_language(language or source) not in (source, "und", "x")

    def _text_of(self, pieces: Sequence[Piece]) -> str:
        return "".join(self.file.text[piece.begin : piece.end] for piece in pieces if piece.kind == "text")

    def _add(self, run: list[Piece]) -> None:
        """Add the unit of a run, if any, without the tags before and after its text."""
        text = self.file.text
        solid = [k for k, piece in enumerate(run) if piece.kind == "text" and text[piece.begin : piece.end].strip()]
        if not solid:
            return
        pairs = _pairs(run)
        first, last = solid[0], solid[-1]
        # Extend the unit until it contains both tags of every pair that begins or ends in it.
        grown = True
        while grown:
            grown = False
            for a, b in pairs.items():
                if first <= a <= last < b:
                    last, grown = b, True
                elif a < first <= b <= last:
                    first, grown = a, True
        ends = {b: a for a, b in pairs.items()}
        parts: TaggedText = []
        words, breaks = set(), set()
        tags: dict[tuple[str, int], tuple[int, int]] = {}
        for k in range(first, last + 1):
            piece = run[k]
            position = (piece.begin, piece.end)
            if piece.kind == "text":
                add_text(parts, html.unescape(text[piece.begin : piece.end]))
                continue
            if k in pairs:
                tag = Tag("open", k)
            elif k in ends:
                tag = Tag("close", ends[k])
            else:
                tag = Tag("alone", k)
                if piece.name == "br":
                    breaks.add(k)
                elif piece.kind == "word":
                    words.add(k)
            tags[tag.kind, tag.id] = position
            parts.append(tag)
        line = text.count("\n", 0, run[first].begin) + 1
        self.runs.append(Run(run[first].begin, run[last].end, tags))
        self.units.append(Unit(parts, f"line {line}", words=frozenset(words), breaks=frozenset(breaks)))

    def _attributes(self, piece: Piece) -> None:
        raw = self.file.text[piece.begin : piece.end]
        language = piece.attributes.get("lang")
        described = piece.name == "meta" and DESCRIPTIONS & {
            (piece.attributes.get("name") or "").lower(), (piece.attributes.get("property") or "").lower()
        }  # fmt: skip
        button = piece.name == "input" and (piece.attributes.get("type") or "").lower() in ("submit", "button", "reset")
        for match in ATTRIBUTE.finditer(raw, len(piece.name) + 1):
            name, value = match[1].lower(), match[2]
            quotes = value[0] if value[0] in "\"'" else ""
            begin, end = match.start(2) + len(quotes), match.end(2) - len(quotes)
            position = (piece.begin + begin, piece.begin + end)
            if name in ("lang", "xml:lang") and language and primary_language(language) == primary_language(self.context.source):
                self.languages.append(position)
            translatable = name in ATTRIBUTES or (name == "content" and described) or (name == "value" and button)
            if not translatable or not self.context.options.attributes or _closed(piece) or not raw[begin:end].strip():
                continue
            if name == "label" and piece.name not in ("track", "option", "optgroup"):
                continue
            line = self.file.text.count("\n", 0, position[0]) + 1
            self.runs.append((*position, quotes))
            self.units.append(Unit([html.unescape(raw[begin:end])], f"line {line}, {name}"))

    def build(self, results: Sequence[Result | None]) -> bytes:
        text = self.file.text
        changes = changed(self.runs, self.units, results)
        if not changes:
            return self.file.encoded(text)
        values: list[Edit] = [(begin, end, self.context.target) for begin, end in self.languages]
        for run, parts in changes:
            if isinstance(run, tuple):
                begin, end, quotes = run
                value = html.escape(text_of(parts), quote=True)
                values.append((begin, end, value if quotes else f'"{value}"'))
        values.sort()
        texts = [(run.begin, run.end, self._written(run, parts, values)) for run, parts in changes if isinstance(run, Run)]
        outside = [edit for edit in values if not any(begin <= edit[0] < end for begin, end, _ in _around(texts, edit))]
        return self.file.encoded(_edited(text, 0, len(text), sorted([*texts, *outside])), "xmlcharrefreplace")

    def _written(self, run: Run, parts: TaggedText, values: Sequence[Edit]) -> str:
        result = ""
        for part in parts:
            if isinstance(part, str):
                result += html.escape(part, quote=False).replace("\u00a0", "&nbsp;")
            else:
                begin, end = run.tags[part.kind, part.id]
                result += _edited(self.file.text, begin, end, values)
        return result


def _around(texts: Sequence[Edit], edit: Edit) -> Sequence[Edit]:
    """The one of the sorted texts, if any, that may contain an edit of an attribute value."""
    position = bisect.bisect_right(texts, (edit[0], 1 << 60, ""))
    return texts[max(0, position - 1) : position]


def _edited(text: str, begin: int, end: int, edits: Sequence[Edit]) -> str:
    """A range of the text with the edits in it applied; `edits` are sorted."""
    done, at = "", begin
    for first, last, replacement in edits[bisect.bisect_left(edits, (begin, 0, "")) :]:
        if last > end:
            break
        done += text[at:first] + replacement
        at = last
    return done + text[at:end]


def _closed(piece: Piece) -> bool:
    """Whether the element is marked as not to be translated."""
    text = (piece.attributes.get("translate") or "").lower()
    return text == "no" or "notranslate" in (piece.attributes.get("class") or "").split()


def _element_end(pieces: Sequence[Piece], start: int) -> int:
    """The position after the element that begins at `start`, whose end tag may be missing if HTML allows it.

    For an inline element without an end tag, this is the position after its start tag.
    """
    name = pieces[start].name
    opened: list[str] = []
    for position in range(start, len(pieces)):
        piece = pieces[position]
        if piece.kind == "open":
            implied = name in OPTIONAL and opened == [name] and (piece.name == name or (name == "p" and _block(piece.name)))
            if implied:
                return position
            opened.append(piece.name)
        elif piece.kind == "close" and piece.name in opened:
            while opened.pop() != piece.name:
                pass
            if not opened:
                return position + 1
        elif piece.kind == "close" and _block(piece.name) and _block(name):
            return position  # the end of the parent element
    return len(pieces) if _block(name) else start + 1


def _annotation_end(pieces: Sequence[Piece], start: int) -> int:
    """The position after a ruby annotation, whose end tag is optional."""
    for position, piece in enumerate(pieces[start + 1 :], start + 1):
        if piece.kind == "close" and piece.name == pieces[start].name:
            return position + 1
        if piece.name in ("rb", "ruby", *ANNOTATIONS):
            return position
    return start + 1


def _block(name: str) -> bool:
    return name not in INLINE and name not in ALONE and name not in CODE and name not in ("br", "sup")


def _pairs(run: Sequence[Piece]) -> dict[int, int]:
    """{opening tag: closing tag} for correctly nested pairs; the other tags are standalone."""
    result: dict[int, int] = {}
    stack: list[int] = []
    for k, piece in enumerate(run):
        if piece.kind == "open":
            stack.append(k)
        elif piece.kind == "close" and any(run[j].name == piece.name for j in stack):
            while run[stack[-1]].name != piece.name:
                stack.pop()
            result[stack.pop()] = k
    return result
