"""Pending imports: a bundle is set aside while it is checked and until a restrictive licence has been accepted.

It is stored in a folder of the project, so that it survives reloads and restarts.
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.atomic_files import read_json, write_json
from engine.errors import InputError, storage_errors
from engine.plugins.import_checks import Check, check_bundle
from engine.store import PluginRow, ProjectRow

if TYPE_CHECKING:
    from studio.services.service import Service

FOLDER = "incoming"
FORGOTTEN = 7 * 86400  # seconds after which an unfinished import is removed


@dataclass(frozen=True)
class PendingImport:
    """A bundle whose licence the user has to accept."""

    key: str
    name: str  # of the uploaded file
    licence: str


def checks_of(service: Service, project: ProjectRow, bundle: Path, name: str) -> Iterator[Check]:
    """The checks of a bundle to be imported into the project, up to the first failure; `name` is the file name to report."""
    return check_bundle(
        bundle, base=lambda: service.base_model(project), direction=(project.source, project.target),
        cache=service.settings.home_dir / "unpacked", shown=name,
    )  # fmt: skip


class PendingImports:
    """The imports of one project."""

    def __init__(self, service: Service, project: ProjectRow) -> None:
        self.service, self.project = service, project
        self.folder = service.library.folder(project.id) / FOLDER

    def keep(self, file: Path) -> str:
        """Set an upload aside and return its key. Raises StorageError."""
        self.service.workspace(self.project.id, change=True)
        self._sweep()
        key = secrets.token_hex(8)
        with storage_errors("the bundle", self.folder):
            self.folder.mkdir(exist_ok=True)
            shutil.copyfile(file, self.folder / f"{key}.zip")
        return key

    def checks(self, key: str, name: str) -> Iterator[Check]:
        """The checks of a stored bundle, which is removed if one fails."""
        passed = False
        try:
            for check in checks_of(self.service, self.project, self._path(key), name):
                passed = check.ok
                yield check
        finally:
            if not passed:
                self.drop(key)

    def ask(self, key: str, name: str, licence: str) -> PendingImport:
        """Record that a checked bundle waits for its licence to be accepted."""
        write_json(self.folder / f"{key}.json", {"name": name, "licence": licence}, "the import")
        return PendingImport(key, name, licence)

    def waiting(self) -> list[PendingImport]:
        """The imports whose licence has not been accepted yet."""
        results = []
        for file in sorted(self.folder.glob("*.json")) if self.folder.exists() else []:
            record = read_json(file)
            if record and self._path(file.stem).exists():
                results.append(PendingImport(file.stem, str(record.get("name", "")), str(record.get("licence", ""))))
        return results

    def finish(self, key: str, name: str = "") -> PluginRow:
        """Add a checked bundle to the project. Raises InputError if it no longer exists."""
        self.service.workspace(self.project.id, change=True)
        path = self._path(key)
        if not path.exists():
            raise InputError("This import has expired. Import the bundle again.")
        stored_name = next((pending.name for pending in self.waiting() if pending.key == key), name)
        row = self.service.library.take_in(self.project, path, stored_name, move=True)
        self.drop(key)
        return row

    def drop(self, key: str) -> None:
        """Discard an import."""
        for file in (self._path(key), self.folder / f"{key}.json"):
            file.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{16}", key):
            raise InputError("This import has expired. Import the bundle again.")
        return self.folder / f"{key}.zip"

    def _sweep(self) -> None:
        for file in self.folder.glob("*") if self.folder.exists() else []:
            if time.time() - file.stat().st_mtime > FORGOTTEN:
                file.unlink(missing_ok=True)
