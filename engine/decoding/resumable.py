"""Back-translation of many texts that can be stopped and goes on: finished parts are kept in a file beside the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.decoding.greedy import back_translate
from engine.errors import storage_errors
from engine.progress import Progress

if TYPE_CHECKING:
    from engine.base.model import BaseModel

__all__ = ["back_translate_all"]

PART = 512  # texts between two writes


class Shifted(Progress):
    """Reports the progress of one part as that of the whole."""

    def __init__(self, whole: Progress, done: int, total: int) -> None:
        super().__init__()
        self.whole, self.before, self.total = whole, done, total

    def advance(self, done: float, total: float | None, note: str = "") -> None:
        self.whole.advance(self.before + done, self.total, note)

    def check(self) -> None:
        self.whole.check()


def back_translate_all(
    base: BaseModel,
    texts: Sequence[str],
    partial: Path | None,
    progress: Progress,
    by: Callable[[BaseModel, Sequence[str], Progress], list[str]] | None = None,
) -> list[str]:
    """Translate all texts; with `partial`, each finished part is appended to it and not done again after a stop.

    `by` translates a part in another way than the plain greedy one.

    The file belongs to these texts and this base (it starts with their hash); it is removed when all are done, so a
    caller writes its own result next. Parts hold texts of like length.
    """
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
    key = hashlib.sha256(json.dumps([base.fingerprint(), base.source, base.target, *texts]).encode()).hexdigest()
    finished = read_partial(partial, key)
    results: list[str] = finished[: len(texts)]
    for begin in range(len(results), len(texts), PART):
        part = [texts[i] for i in order[begin : begin + PART]]
        shifted = Shifted(progress, begin, len(texts))
        done = by(base, part, shifted) if by else back_translate(base, part, progress=shifted)
        results += done
        if partial is not None:
            with storage_errors("the translations", partial), partial.open("a", encoding="utf-8") as file:
                if not finished and begin == 0:
                    file.truncate(0)
                    file.write(json.dumps(key) + "\n")
                file.write(json.dumps(done, ensure_ascii=False) + "\n")
    if partial is not None:
        partial.unlink(missing_ok=True)
    placed = [""] * len(texts)
    for i, text in zip(order, results, strict=True):
        placed[i] = text
    return placed


def read_partial(partial: Path | None, key: str) -> list[str]:
    """What an earlier run finished; nothing when the file is another's or cut short in its first part."""
    if partial is None or not partial.exists():
        return []
    found: list[str] = []
    try:
        with partial.open(encoding="utf-8") as file:
            if json.loads(file.readline()) != key:
                return []
            for line in file:
                found += json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        # A line cut by a crash would be followed by the next part: start over rather than mix them.
        return []
    return found
