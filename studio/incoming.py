"""Imports on their way: a bundle is kept aside while it is checked, and until a restricting licence has been accepted.

It lies in a folder of the project, so that a reload or a restart forgets nothing.
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

from engine.errors import InputError, storage_errors
from engine.files import write_json
from engine.plugins.checks import Check, check_bundle
from studio.files import read_object

if TYPE_CHECKING:
    from engine.store import PluginRow, ProjectRow
    from studio.service import Service

__all__ = ["Incoming", "Waiting"]

FOLDER = "incoming"
FORGOTTEN = 7 * 86400  # seconds after which an import that nobody finished is removed


@dataclass(frozen=True)
class Waiting:
    """A bundle whose licence asks for a word of the user."""

    key: str
    name: str  # the file's, as the user knows it
    licence: str


class Incoming:
    """The imports of one project."""

    def __init__(self, service: Service, project: ProjectRow) -> None:
        self.service, self.project = service, project
        self.folder = service.library.folder(project.id) / FOLDER

    def keep(self, file: Path) -> str:
        """Copy an upload aside; returns its key. Raises StorageError."""
        self.service.workspace(self.project.id, change=True)
        self._sweep()
        key = secrets.token_hex(8)
        with storage_errors("the bundle", self.folder):
            self.folder.mkdir(exist_ok=True)
            shutil.copyfile(file, self.folder / f"{key}.zip")
        return key

    def checks(self, key: str, name: str) -> Iterator[Check]:
        """The checks of a bundle that was kept aside; it is removed where one fails."""
        checks = check_bundle(
            self._place(key), base=lambda: self.service.base_model(self.project),
            direction=(self.project.source, self.project.target), cache=self.service.settings.home_dir / "unpacked",
            shown=name,
        )  # fmt: skip
        whole = False
        try:
            for check in checks:
                whole = check.ok
                yield check
        finally:
            if not whole:
                self.drop(key)

    def ask(self, key: str, name: str, licence: str) -> Waiting:
        """Keep a checked bundle until its licence is accepted."""
        write_json(self.folder / f"{key}.json", {"name": name, "licence": licence}, "the import")
        return Waiting(key, name, licence)

    def waiting(self) -> list[Waiting]:
        """Those whose licence is not accepted yet."""
        found = []
        for file in sorted(self.folder.glob("*.json")) if self.folder.exists() else []:
            about = read_object(file)
            if about and self._place(file.stem).exists():
                found.append(Waiting(file.stem, str(about.get("name", "")), str(about.get("licence", ""))))
        return found

    def finish(self, key: str, name: str = "") -> PluginRow:
        """Take a checked bundle into the project. Raises InputError when it is no longer there."""
        self.service.workspace(self.project.id, change=True)
        place = self._place(key)
        if not place.exists():
            raise InputError("This import is no longer there. Import the bundle again.")
        known = next((one.name for one in self.waiting() if one.key == key), name)
        row = self.service.library.take_in(self.project, place, known, move=True)
        self.drop(key)
        return row

    def drop(self, key: str) -> None:
        """Forget an import."""
        for file in (self._place(key), self.folder / f"{key}.json"):
            file.unlink(missing_ok=True)

    def _place(self, key: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{16}", key):
            raise InputError("This import is no longer there. Import the bundle again.")
        return self.folder / f"{key}.zip"

    def _sweep(self) -> None:
        for file in self.folder.glob("*") if self.folder.exists() else []:
            if time.time() - file.stat().st_mtime > FORGOTTEN:
                file.unlink(missing_ok=True)
