"""The segments of a translated document, stored beside it for side-by-side reading and for edits that rebuild the document."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from engine.core.atomic_files import atomic_write, write_jsonl
from engine.corpora.formats.documents.formats import MOST_BYTES, open_document
from engine.corpora.formats.documents.model import Context, DocumentError, Result, Unit
from engine.corpora.formats.tagged_text import Tag, TaggedText, text_of
from engine.messages import MESSAGES, pack, unpack

SEGMENTS = "segments.jsonl"
# Words of scripts that use spaces, and every other character separately.
PIECE = re.compile(r"[^\W\u2e80-\U0003ffff]+|.", re.DOTALL)


def write_segments(path: Path, segments: Iterable[tuple[Unit, Result]]) -> None:
    """Write one row per segment: {"place", "source", "parts", "doubt"}, to which edits add "edited"."""
    rows = (
        pack({"place": unit.location, "source": unit.text, "parts": _packed(result.parts), "doubt": result.doubt})
        for unit, result in segments
    )
    write_jsonl(path, rows, "the segments")


def translation_of(row: Any) -> str:
    """The translation in a row, without its tags."""
    return text_of(_unpacked(row["parts"]))


def doubt_of(row: Any) -> str:
    """Why the translation in a row should be checked, as a message; empty if nothing is odd."""
    doubt = unpack({key: value for key, value in row.items() if key in ("doubt", MESSAGES)})["doubt"]
    return doubt if isinstance(doubt, str) else ""


def edit_segment(segments: Path, file: Path, output: Path, context: Context, index: int, text: str) -> None:
    """Replace the translation of segment `index` (from 0), and rebuild `output` from the document `file`.

    Tags stay next to the same words. Raises DocumentError if there is no such segment, the text is empty, or the document cannot be
    rebuilt; nothing is changed then.
    """
    rows = [json.loads(line) for line in segments.read_text(encoding="utf-8").split("\n") if line]
    if not 0 <= index < len(rows):
        raise DocumentError("{name} has no segment {number}. Reload the page.", name=context.name, number=index + 1)
    if not text.strip():
        raise DocumentError("A segment needs a translation. Type one, or leave it as it was.")
    row = rows[index]
    row |= {"parts": _packed(with_text(_unpacked(row["parts"]), text)), "doubt": "", "edited": True}
    document = open_document(file, context, most_bytes=max(MOST_BYTES, file.stat().st_size))
    if len(document.units) != len(rows):
        raise DocumentError("{name} has changed since it was translated. Translate it again.", name=context.name)
    data = document.build([Result(_unpacked(segment["parts"]), doubt_of(segment)) for segment in rows])
    with atomic_write(output, "the translation") as temporary:
        temporary.write_bytes(data)
    write_jsonl(segments, rows, "the segments")


def with_text(parts: TaggedText, text: str) -> TaggedText:
    """The parts with another text: each tag moves to where the text before and after it has moved."""
    old, new = PIECE.findall(text_of(parts)), PIECE.findall(text)
    moved_to = {0: 0}  # positions between pieces
    for _, begin, end, other, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if end - begin == last - other:
            moved_to |= zip(range(begin + 1, end + 1), range(other + 1, last + 1), strict=True)
        else:
            moved_to |= dict.fromkeys(range(begin + 1, end + 1), last)
    moved_to[len(old)] = len(new)
    boundaries, position = {0: 0}, 0  # from character offsets to positions between pieces
    for number, piece in enumerate(old, 1):
        boundaries |= dict.fromkeys(range(position + 1, position + len(piece)), number - 1) | {position + len(piece): number}
        position += len(piece)
    result: TaggedText = []
    position = copied = 0
    for part in parts:
        if isinstance(part, Tag):
            stop = moved_to[boundaries[position]]
            result += ["".join(new[copied:stop])] if stop > copied else []
            result.append(part)
            copied = max(copied, stop)
        else:
            position += len(part)
    return [*result, "".join(new[copied:])] if copied < len(new) else result


def _packed(parts: TaggedText) -> list[str | list[str | int]]:
    return [part if isinstance(part, str) else [part.kind, part.id] for part in parts]


def _unpacked(parts: Sequence[Any]) -> TaggedText:
    return [part if isinstance(part, str) else Tag(*part) for part in parts]
