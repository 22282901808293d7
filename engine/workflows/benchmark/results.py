"""`bench/RESULTS.md`: parts written by commands, each between its own marks; the remaining text is left unchanged."""

from __future__ import annotations

from pathlib import Path

from engine.core.atomic_files import atomic_write

HEAD = "# Results\n\nMade by the commands that stand with each table; edits by hand are lost.\n"


def put_part(path: Path, name: str, text: str) -> None:
    """Put `text` between the marks of `name`, which are appended to a file without them. Raises StorageError if it cannot be
    written.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    content = path.read_text(encoding="utf-8") if path.exists() else HEAD
    part = f"{begin}\n{text.strip()}\n{end}\n"
    if begin in content and end in content:
        before, _, rest = content.partition(begin)
        content = before + part + rest.partition(end)[2].lstrip("\n")
    else:
        content = f"{content.rstrip()}\n\n{part}"
    with atomic_write(path, "the results") as temporary:
        temporary.write_text(content, encoding="utf-8")
