"""Hashes (keys) of the inputs of each step of a workspace; a step is repeated exactly when its key has changed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.core.atomic_files import read_json, write_json

SHARED = "shared"  # in a workspace: holds a folder for each additional variant of a step


def content_hash(*parts: Any) -> str:
    """A short SHA-256 of any JSON value."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]


def digest_files(paths: Iterable[str]) -> list[str]:
    """SHA-256 of each file's bytes, without its name: copies of the same sentences are the same input."""
    results = []
    for path in paths:
        with Path(path).open("rb") as file:
            results.append(hashlib.file_digest(file, "sha256").hexdigest())
    return results


class StepCache:
    """steps.json of a folder: {step: key}.

    `shared`: several runs use the folder, perhaps with different settings, so `variant` assigns each variant of a step a folder.
    `used` holds the keys of the steps that were requested, in any folder; `made` names those that were run rather than skipped.
    """

    def __init__(self, folder: Path, *, shared: bool = False, of: str = "") -> None:
        self.folder, self.shared, self._of = folder, shared, of
        self.file = folder / "steps.json"
        self.used: dict[str, str] = {}
        self.made: set[str] = set()
        values = read_json(self.file).items()
        self.values: dict[str, str] = {step: key for step, key in values if isinstance(key, str)}

    def get(self, step: str) -> str:
        """The key of a finished step; empty if it is not finished."""
        return self.values.get(step, "")

    def variant(self, step: str, key: str) -> StepCache:
        """The cache for that variant of the step: this one, or one in a subfolder if this one has another variant.

        A subfolder is only used for variants of the same samples; those of other samples are removed.
        """
        self.used[step] = key
        samples = self.get("samples")
        if not self.shared or self.get(step) in ("", key) or self.get(f"{step} of") != samples:
            return self
        name = step.replace(" ", "-")
        for other in (self.folder / SHARED).glob(f"{name}-*"):
            if StepCache(other).get(f"{step} of") != samples:
                shutil.rmtree(other, ignore_errors=True)
        folder = self.folder / SHARED / f"{name}-{key[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
        variant = StepCache(folder, of=samples)
        variant.made = self.made
        return variant

    def is_fresh(self, step: str, key: str, *files: Path) -> bool:
        """Whether the step was finished with this key and its files still exist."""
        return self.values.get(step) == key and all(file.exists() for file in files)

    def invalidate(self, step: str) -> None:
        """Forget the step, before its files change."""
        if self.values.pop(step, None) is not None:
            self._write()

    def mark_done(self, step: str, key: str) -> None:
        """Record the step as finished, with the key of its inputs. Raises StorageError."""
        self.values[step] = key
        self.made.add(step)
        samples = self._of or self.get("samples")
        if samples and step != "samples":
            self.values[f"{step} of"] = samples
        self._write()

    def _write(self) -> None:
        write_json(self.file, self.values, "the list of finished steps")
