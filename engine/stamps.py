"""Stamps: what each step of a workspace was made from, so that a step is done again exactly when that has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.files import write_json

__all__ = ["Stamps", "digest", "digest_files"]


def digest(*parts: Any) -> str:
    """A short SHA-256 of anything JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]


def digest_files(paths: Iterable[str]) -> list[str]:
    """SHA-256 of each file's bytes, without its name: a copy of the same sentences is the same work."""
    found = []
    for path in paths:
        with Path(path).open("rb") as file:
            found.append(hashlib.file_digest(file, "sha256").hexdigest())
    return found


class Stamps:
    """steps.json of a workspace."""

    def __init__(self, workspace: Path) -> None:
        self.file = workspace / "steps.json"
        try:
            self.values: dict[str, str] = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self.values = {}

    def get(self, step: str) -> str:
        return self.values.get(step, "")

    def holds(self, step: str, stamp: str, *files: Path) -> bool:
        """Whether the step was done with this stamp and its files are still there."""
        return self.values.get(step) == stamp and all(file.exists() for file in files)

    def begin(self, step: str) -> None:
        """The step's files are about to change: what they were is no longer sure."""
        if self.values.pop(step, None) is not None:
            self._write()

    def set(self, step: str, stamp: str) -> None:
        self.values[step] = stamp
        self._write()

    def _write(self) -> None:
        write_json(self.file, self.values, "the list of finished steps")
