"""Random access to a JSON Lines file: read page by page and searched without parsing the whole file.

A corpus of 100,000 sentences is about 20 MB. Line offsets are computed once per state of the file; a search scans the raw
lines and parses only possible matches.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from studio.services.files import JsonRow


class JsonlPager:
    """One state of a file; `open_lines` returns the current one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._starts = array("Q")
        self._searches: dict[tuple[Any, ...], list[int]] = {}
        position = 0
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):  # skip a half-written last line
                    self._starts.append(position)
                position += len(line)

    def __len__(self) -> int:
        return len(self._starts)

    def get(self, indices: Sequence[int]) -> list[JsonRow]:
        """The objects in these lines (from 0), in that order; indices out of range are skipped."""
        results = []
        with self.path.open("rb") as file:
            for index in indices:
                if 0 <= index < len(self._starts):
                    file.seek(self._starts[index])
                    results.append(_parsed(file.readline()))
        return results

    def all(self) -> Iterator[JsonRow]:
        """Iterate over all objects."""
        with self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield _parsed(line)

    def search(self, words: str = "", fits: Callable[[JsonRow], bool] | None = None, key: tuple[Any, ...] = ()) -> Sequence[int]:
        """Indices of the objects that satisfy `fits` and whose text or source contains `words`, ignoring case.

        `key` identifies `fits` in the cache of search results.
        """
        words = words.strip().casefold()
        if not words and fits is None:
            return range(len(self))
        cache_key = (words, *key)
        if cache_key not in self._searches:
            if len(self._searches) > 40:
                self._searches.clear()
            self._searches[cache_key] = list(self._matches(words, fits))
        return self._searches[cache_key]

    def _matches(self, words: str, fits: Callable[[JsonRow], bool] | None) -> Iterator[int]:
        raw = json.dumps(words, ensure_ascii=False)[1:-1]
        with self.path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            for index, line in enumerate(file):
                if index >= len(self) or (raw and raw not in line.casefold()):
                    continue
                row = _parsed(line)
                if words and not any(words in str(row.get(name) or "").casefold() for name in ("text", "source")):
                    continue
                if fits is None or fits(row):
                    yield index


def _parsed(line: bytes | str) -> JsonRow:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def open_lines(path: Path) -> JsonlPager | None:
    """A pager for the current state of a file; None if the file does not exist."""
    try:
        stat = path.stat()
        return _opened(path, stat.st_mtime_ns, stat.st_size)
    except OSError:
        return None


@lru_cache(maxsize=24)
def _opened(path: Path, modified: int, size: int) -> JsonlPager:
    return JsonlPager(path)
