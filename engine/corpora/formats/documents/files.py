"""Reading and writing the files of documents, with limits on sizes, archives and XML that are checked before parsing."""

from __future__ import annotations

import codecs
import copy
import io
import os
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from engine.corpora.formats.archive import DAMAGE
from engine.corpora.formats.documents.model import Context, Document, DocumentError
from engine.corpora.formats.encoding import detect_encoding
from engine.messages import Message, mark

if TYPE_CHECKING:
    from lxml import etree

MOST_XML = 200 << 20  # bytes of one XML part
MOST_UNPACKED = 1 << 30
MOST_MEMBERS = 10_000
HIGHEST_RATIO = 200  # of a member's unpacked to its packed size; text documents have 3 to 30
LOCAL_HEADER = 30  # bytes before the name of a member
SMALL = 1 << 20  # bytes; the ratio of smaller members is ignored
ASIDE = re.compile(rb"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)", re.DOTALL)  # to the end if unclosed
PROLOG = re.compile(rb"<[A-Za-z_]")


class TextFile:
    """The text of a file with its encoding and byte order mark; line ends remain in the text."""

    def __init__(self, text: str, encoding: str, mark: bytes = b"") -> None:
        self.text, self.encoding, self.mark = text, encoding, mark

    def lines(self) -> tuple[list[str], str]:
        """The lines with their line ends, and the line end for new lines, which is that of the first line."""
        lines = self.text.splitlines(keepends=True)
        return lines, "\r\n" if lines and lines[0].endswith("\r\n") else "\n"

    def encoded(self, text: str, errors: str = "strict") -> bytes:
        """Another text in the file's encoding, or in UTF-8 if that lacks a character and `errors` is "strict"."""
        try:
            return self.mark + text.encode(self.encoding, errors)
        except UnicodeEncodeError:
            return text.encode("utf-8")


MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read_text(path: Path, context: Context, declared: str = "") -> TextFile:
    """Read a text file in any encoding; `declared` is the one that the file states. Raises DocumentError, CorpusError."""
    data = path.read_bytes()
    mark = next((mark for mark, _ in MARKS if data.startswith(mark)), b"")
    encoding = dict(MARKS).get(mark, "")
    for name in [encoding] if encoding else [declared, "utf-8"]:
        try:
            return TextFile(data[len(mark) :].decode(name), codecs.lookup(name).name, mark)
        except (UnicodeError, LookupError):
            continue
    name = detect_encoding(path, [context.source])
    try:
        return TextFile(data.decode(name), name)
    except UnicodeError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise DocumentError(
            "{context}, line {line}: these bytes are not valid {name} text. Save the file as UTF-8 and try again.",
            context=context.name, line=line, name=name,
        ) from None  # fmt: skip


class TextDocument(Document):
    """A document that is a text file, in any encoding."""

    def __init__(self, file: TextFile, context: Context) -> None:
        super().__init__(context)
        self.file = file

    @classmethod
    def declared(cls, head: bytes) -> str:
        """The encoding that a file with this beginning declares; empty if none."""
        return ""

    @classmethod
    def read(cls, path: Path, context: Context) -> Self:
        with path.open("rb") as file:
            head = file.read(4096)
        return cls(read_text(path, context, cls.declared(head)), context)


def read_archive(path: Path, context: Context, select: Callable[[str], object]) -> dict[str, bytes]:
    """The members of a zip archive whose names are wanted, after checking the sizes of all. Raises DocumentError."""
    try:
        archive = zipfile.ZipFile(path)
    except DAMAGE:
        with path.open("rb") as file:
            old = file.read(4) == b"\xd0\xcf\x11\xe0"
        why = mark("it is damaged, or another kind of file")
        why = Message(mark("it has a password, or an older format") if old else why)
        raise DocumentError(
            "{context} cannot be opened: {why}. Save it again in your editor.", context=context.name, why=why
        ) from None
    with archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        odd = any(m.file_size > SMALL and m.file_size > HIGHEST_RATIO * max(1, m.compress_size) for m in members)
        if len(members) > MOST_MEMBERS or total > MOST_UNPACKED or odd:
            raise DocumentError(
                "{context} would unpack to {total:,.0f} MiB in {count:,} parts, far more than a real "
                "document. It was not opened.",
                context=context.name, total=total / 2 ** 20, count=len(members),
            )  # fmt: skip
        if any(member.flag_bits & 1 for member in members):
            raise DocumentError("{context} has a password. Save it without one.", context=context.name)
        try:
            return {m.filename: _member(archive, m, context) for m in members if select(m.filename)}
        except (*DAMAGE, RuntimeError) as error:
            raise DocumentError(
                "{context} is damaged ({error}). Save it again in your editor.", context=context.name, error=error
            ) from None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, context: Context) -> bytes:
    if member.file_size > MOST_XML:
        raise DocumentError(
            "{context}: {member} is larger than {most_xml} MiB. Split the document.",
            context=context.name, member=member.filename, most_xml=MOST_XML >> 20,
        )  # fmt: skip
    with archive.open(member) as file:
        return file.read(member.file_size + 1)


def rebuilt_archive(path: Path, changed: Mapping[str, bytes]) -> bytes:
    """The archive with some members replaced; all others are copied byte for byte, even if damaged."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, path.open("rb") as packed, zipfile.ZipFile(out, "w") as new:
        new.comment = old.comment
        for member in old.infolist():
            data = changed.get(member.filename)
            if data is None:
                _copy_member(packed, member, new)
            else:
                new.writestr(member, data, compress_type=member.compress_type)
    return out.getvalue()


def _copy_member(packed: BinaryIO, member: zipfile.ZipInfo, new: zipfile.ZipFile) -> None:
    """Copy an archive member without unpacking it; `zipfile` can only copy members that it can unpack."""
    packed.seek(member.header_offset)
    head = packed.read(LOCAL_HEADER)
    sizes = struct.unpack("<2H", head[-4:]) if len(head) == LOCAL_HEADER else (0, 0)  # of the name and the extra field
    packed.seek(sum(sizes), os.SEEK_CUR)
    data = packed.read(member.compress_size)
    entry = copy.copy(member)
    entry.flag_bits &= ~0x08  # the sizes are before the data, not after it
    out: Any = new
    entry.header_offset = out.fp.tell()
    out.fp.write(entry.FileHeader() + data)
    out.filelist.append(entry)
    out.NameToInfo[entry.filename] = entry
    out.start_dir, out._didModify = out.fp.tell(), True  # the position of the archive's directory


def parse_xml(data: bytes, where: str) -> etree._ElementTree:
    """Parse XML without fetching anything. Raises DocumentError if it is damaged or declares entities."""
    from lxml import etree

    if len(data) > MOST_XML:
        raise DocumentError("{where} is larger than {most_xml} MiB. Split the document.", where=where, most_xml=MOST_XML >> 20)
    if b"<!ENTITY" in _prolog(data):
        raise DocumentError("{where} declares XML entities, which is refused for safety. Save it without them.", where=where)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, strip_cdata=False)
    try:
        return etree.ElementTree(etree.fromstring(data, parser))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise DocumentError("{where}: the XML is damaged ({error}). Save or export it again.", where=where, error=error) from None


def _prolog(data: bytes) -> bytes:
    """The text before the first element, without comments, which may contain anything and be of any length."""
    for size in (1 << 20, len(data)):
        plain = ASIDE.sub(b"", data[:size].replace(b"\x00", b""))  # without null bytes, for UTF-16
        first = PROLOG.search(plain)
        if first and b"<!--" not in plain[: first.start()]:
            return plain[: first.start()]
    return plain


def xml_bytes(tree: Any, original: bytes) -> bytes:
    """The tree as bytes, with the encoding, declaration and line ends of the original."""
    from lxml import etree

    head = original[:200].replace(b"\x00", b"")
    match = re.search(rb"<\?xml[^<>]*+>", head)
    encoding = tree.docinfo.encoding or "UTF-8"
    standalone = tree.docinfo.standalone
    body: bytes = etree.tostring(tree, encoding=encoding, xml_declaration=bool(match), standalone=standalone)
    begin, declaration = 0, b""
    if match and not encoding.lower().startswith("utf-16"):
        body_match = re.match(rb"<\?xml[^>]*+>", body)
        begin = original.find(b"?>") + 2
        space = re.compile(rb"\s*").match(original, begin)
        if body_match and space:  # the declaration exactly as in the original
            begin += len(space[0])
            declaration, body = match[0] + space[0], body[body_match.end() :].lstrip()
    if b"\r\n" in original[begin : begin + 4096]:
        body = body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    body = declaration + body
    return codecs.BOM_UTF8 + body if original.startswith(codecs.BOM_UTF8) and not body.startswith(codecs.BOM_UTF8) else body
