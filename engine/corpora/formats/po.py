"""Gettext PO files, read by polib: messages and their translations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.corpora.formats.encoding import check_file
from engine.corpora.formats.language_sides import NO_TRANSLATION, Sides
from engine.corpora.formats.records import Reading, Record, Request, SkippedLine
from engine.errors import CorpusError

if TYPE_CHECKING:
    from polib import POEntry, POFile

FUZZY = "fuzzy: not checked by the translator"
OBSOLETE = "obsolete"
LARGEST = 32 << 20  # bytes; polib holds the whole file in memory, and real PO files are smaller


def read_po(path: Path, request: Request) -> Reading:
    """Reader of PO; plurals yield a pair for the singular and one for the last form. Raises CorpusError if too large or damaged."""
    size = check_file(path)
    if size > LARGEST:
        raise CorpusError(
            "{path} is larger than {largest} MiB, more than a PO file has; split it into parts.", path=path, largest=LARGEST >> 20
        )
    messages, encoding = _open(path)
    sides = Sides(request)
    mark = messages.metadata.get("X-Accelerator-Marker", "")[:1]
    into = messages.metadata.get("Language", "").strip()
    from_ = messages.metadata.get("X-Source-Language", "").strip() or _source(sides, into)
    position = [0, max(1, len(messages))]

    def items() -> Iterator[Record | SkippedLine]:
        for position[0], entry in enumerate(messages, start=1):
            for source, target in _texts(entry, mark):
                yield _item(entry, sides.record(entry.linenum or 0, source, target, from_, into))

    return Reading(
        encoding,
        items(),
        lambda: max((entry.linenum or 0 for entry in messages), default=0),
        lambda: size * position[0] // position[1],
        stated_languages=sides.stated_languages,
        hint=sides.hint,
    )


def _source(sides: Sides, into: str) -> str:
    """The language of the messages, which PO does not state: the project's source language, otherwise English."""
    if sides.source and sides.source != into:
        return sides.source
    return "en" if into and not into.startswith("en") else ""


def _open(path: Path) -> tuple[POFile, str]:
    import polib

    try:
        encoding = polib.detect_encoding(str(path))
    except (LookupError, ValueError, UnicodeError):
        encoding = "utf-8"
    try:
        return polib.pofile(str(path), encoding=encoding, wrapwidth=0), encoding
    except UnicodeDecodeError:
        raise CorpusError(
            "{path} declares the encoding {encoding} but does not use it; save it as UTF-8 with charset=UTF-8 in its header.",
            path=path,
            encoding=encoding,
        ) from None
    except (OSError, ValueError, IndexError, AttributeError, KeyError, TypeError, LookupError) as error:
        line = "".join(c for c in str(error).rpartition("line ")[2].split(")")[0] if c.isdigit()) if "line " in str(error) else ""
        where = f"{path}, line {line}" if line else str(path)
        raise CorpusError("{where}: this is not a well-formed PO file; check it with msgfmt -c.", where=where) from None


def _texts(entry: POEntry, mark: str) -> Iterator[tuple[str, str]]:
    def plain(text: str) -> str:
        return text.replace(mark, "", 1) if mark else text

    if not entry.msgid_plural:
        yield plain(entry.msgid), plain(entry.msgstr)
        return
    forms = [entry.msgstr_plural[key] for key in sorted(entry.msgstr_plural)]
    if len(forms) > 1:
        yield plain(entry.msgid), plain(forms[0])
    yield plain(entry.msgid_plural), plain(forms[-1] if forms else "")


def _item(entry: POEntry, record: Record | SkippedLine) -> Record | SkippedLine:
    if isinstance(record, SkippedLine):
        return SkippedLine(record.line, OBSOLETE if entry.obsolete else record.reason, record.text)
    if entry.obsolete:
        return SkippedLine(record.line, OBSOLETE, record.text, record)
    if "fuzzy" in entry.flags:
        return SkippedLine(record.line, FUZZY, record.text, record)
    return record if record.text.strip() else SkippedLine(record.line, NO_TRANSLATION, record.source or "")
