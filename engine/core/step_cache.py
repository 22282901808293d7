"""What each step of a workspace was made from, as a hash: its key. A step is done again exactly when that has changed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.core.atomic_files import read_json, write_json

SHARED = "shared"  # in a workspace: a folder for each further way in which a step was done


def content_hash(*parts: Any) -> str:
    """A short SHA-256 of anything JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]


def digest_files(paths: Iterable[str]) -> list[str]:
    """SHA-256 of each file's bytes, without its name: a copy of the same sentences is the same work."""
    results = []
    for path in paths:
        with Path(path).open("rb") as file:
            results.append(hashlib.file_digest(file, "sha256").hexdigest())
    return results


class StepCache:
    """steps.json of a folder: {step: key}.

    `shared`: several runs use the folder, perhaps with different settings, so `variant` gives each variant of a step a folder.
    `used` holds the keys of the steps that were requested, in whatever folder; `made` names those that were run, not skipped.
    """

    def __init__(self, folder: Path, *, shared: bool = False, of: str = "") -> None:
        self.folder, self.shared, self._of = folder, shared, of
        self.file = folder / "steps.json"
        self.used: dict[str, str] = {}
        self.made: set[str] = set()
        values = read_json(self.file).items()
        self.values: dict[str, str] = {step: key for step, key in values if isinstance(key, str)}

    def get(self, step: str) -> str:
        """The key of a step that was done; empty if it was not."""
        return self.values.get(step, "")

    def variant(self, step: str, key: str) -> StepCache:
        """The cache of that variant of the step: this one, or, if this one has another variant of the same samples, one in a folder
        of its own. Variants of samples that have changed are removed.
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
        """Whether the step was done with this key and its files are still there."""
        return self.values.get(step) == key and all(file.exists() for file in files)

    def invalidate(self, step: str) -> None:
        """Forget the step, before its files change."""
        if self.values.pop(step, None) is not None:
            self._write()

    def mark_done(self, step: str, key: str) -> None:
        """Record the step as done, with the key of its inputs. Raises StorageError."""
        self.values[step] = key
        self.made.add(step)
        samples = self._of or self.get("samples")
        if samples and step != "samples":
            self.values[f"{step} of"] = samples
        self._write()

    def _write(self) -> None:
        write_json(self.file, self.values, "the list of finished steps")
