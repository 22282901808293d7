"""JSON Lines: one object or one string per line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.corpora.clean import TOO_LONG
from engine.corpora.formats.columns import columns_of_header
from engine.corpora.formats.records import Reading, Record, Request, SkippedLine
from engine.corpora.formats.textfile import TextFile

NOT_JSON = "not JSON"
NO_TEXT = "no text in the object"


def read_jsonl(path: Path, request: Request) -> Reading:
    """Reader of JSON Lines. Keys include text, target, tgt, translation; source, src; domain; and language codes.

    {"translation": {"en": …, "zh": …}}, as in data sets on Hugging Face, is also supported.
    """
    file = TextFile(path, request)
    return Reading(file.encoding, _items(file, request), lambda: file.lines, file.position)


def _items(file: TextFile, request: Request) -> Iterator[Record | SkippedLine]:
    for line in file:
        if line.cut:
            yield SkippedLine(line.number, TOO_LONG, line.text)
        elif not line.text.strip():
            yield Record(line.number, "")
        else:
            try:
                value = json.loads(line.text)
            except (ValueError, RecursionError):
                yield SkippedLine(line.number, NOT_JSON, line.text)
                continue
            yield _record(value, line.number, request) or SkippedLine(line.number, NO_TEXT, line.text)


def _record(value: Any, number: int, request: Request) -> Record | None:
    if isinstance(value, str):
        return Record(number, value)
    if not isinstance(value, dict):
        return None
    inner = value.get("translation")
    values: Mapping[str, Any] = {**value, **inner} if isinstance(inner, dict) else value
    texts = {key: item for key, item in values.items() if isinstance(item, str)}
    columns = columns_of_header(list(texts), request.language, request.source_language)
    if columns is None:
        return None
    cells = list(texts.values())
    source = None if columns.source is None else cells[columns.source]
    return Record(number, cells[columns.text], source, "" if columns.domain is None else cells[columns.domain].strip())
