"""Writing files so that a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.errors import storage_errors

__all__ = ["replacing", "write_json", "write_jsonl"]


@contextlib.contextmanager
def replacing(path: Path, what: str) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well, and is removed when it does not.

    `what` names the content in the sentence of a StorageError ("the plugin", "the checkpoint").
    """
    with storage_errors(what, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any], what: str) -> None:
    """Write JSON for people: indented, sorted, in UTF-8."""
    with replacing(path, what) as temporary:
        temporary.write_text(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]], what: str) -> None:
    """Write one JSON object a line."""
    with replacing(path, what) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
