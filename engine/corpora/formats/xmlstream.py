"""Streaming XML of any size: the items of a handler are passed on before the next piece is read.

Entity declarations are refused and document types are never fetched, so a file can neither expand while it is read nor access
other files. Text is decoded here, since expat supports few encodings.
"""

from __future__ import annotations

import codecs
import html
import html.entities
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, Generic, TypeVar
from xml.parsers import expat

from engine.errors import CorpusError

Item = TypeVar("Item")

XML_LANG = "http://www.w3.org/XML/1998/namespace lang"
CHUNK = 1 << 16  # bytes
DEEPEST = 500
DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")
MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
# Characters that XML forbids but some tools write; they become spaces.
CONTROLS = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF], " ")
CONTROL_REFERENCE = re.compile(r"&#(?:x0*(?:[0-8bBcCeEfF]|1[0-9a-fA-F]|[fF]{3}[eEfF])|0*(?:[0-8]|1[124-9]|2\d|3[01]|6553[45]));")
OPEN_REFERENCE = re.compile(r"&[#\w]{0,12}$")


class Handler(Generic[Item]):
    """Turns a document into items: override `start`, `end` and `text`, and append to `items`.

    Names are "namespace local" or "local"; `line` returns the number of the line being read.
    """

    def __init__(self) -> None:
        self.items: deque[Item] = deque()
        self.line: Callable[[], int] = lambda: 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Called at the start of an element."""

    def end(self, name: str) -> None:
        """Called at the end of an element."""

    def text(self, data: str) -> None:
        """Called with character data."""


def local_name(name: str) -> str:
    """The name without its namespace."""
    return name[name.rfind(" ") + 1 :]


def xml_encoding(head: bytes) -> str:
    """The encoding of a document with this beginning, by its byte order mark or declaration, otherwise UTF-8."""
    for mark, name in MARKS:
        if head.startswith(mark):
            return name
    if head[:4] in (b"<\x00?\x00", b"\x00<\x00?"):
        return "utf-16-le" if head[0] else "utf-16-be"
    match = DECLARED.match(head)
    if match:
        name = match[1].decode("ascii").lower()
        name = "gb18030" if name in ("gb2312", "gbk") else name
        try:
            if codecs.lookup(name)._is_text_encoding and not name.startswith("utf-16"):
                return name
        except LookupError:
            pass
    return "utf-8"


def parse(
    file: IO[bytes], handler: Handler[Item], where: str, *, encoding: str, read: Callable[[int], None] = lambda size: None
) -> Iterator[Item]:
    """Feed the file to the handler and yield its items. `read` is called with the number of bytes of each piece.

    Raises CorpusError, naming `where` and the line, if the XML is not well-formed or declares entities.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise CorpusError(
                "{where}, line {currentlinenumber}: elements are nested more than {deepest} deep; such files are "
                "refused.",
                where=where, currentlinenumber=parser.CurrentLineNumber, deepest=DEEPEST,
            )  # fmt: skip
        handler.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(name)

    def entity(*declared: object) -> None:
        raise CorpusError(
            "{where}, line {currentlinenumber}: it declares an XML entity, which is refused for safety; save it "
            "without its own entities.",
            where=where,
            currentlinenumber=parser.CurrentLineNumber,
        )

    def unknown(name: str, parameter: bool) -> None:
        # An entity of a document type that is not fetched: those of HTML are resolved, others become a space.
        handler.text(html.unescape(f"&{name};") if not parameter and f"{name};" in html.entities.html5 else " ")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = handler.text
    parser.EntityDeclHandler = entity
    parser.SkippedEntityHandler = unknown
    handler.line = lambda: parser.CurrentLineNumber
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    pending = ""
    try:
        while chunk := file.read(CHUNK):
            read(len(chunk))
            text = (pending + decoder.decode(chunk)).translate(CONTROLS)
            incomplete = OPEN_REFERENCE.search(text)
            text, pending = (text[: incomplete.start()], incomplete[0]) if incomplete else (text, "")
            parser.Parse(CONTROL_REFERENCE.sub(" ", text), False)
            while handler.items:
                yield handler.items.popleft()
        parser.Parse(CONTROL_REFERENCE.sub(" ", pending + decoder.decode(b"", True)), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code) or "unknown error"
        raise CorpusError(
            "{where}, line {lineno}: the XML is damaged ({what}); save or export the file again.",
            where=where, lineno=error.lineno, what=reason,
        ) from None  # fmt: skip
    while handler.items:
        yield handler.items.popleft()
