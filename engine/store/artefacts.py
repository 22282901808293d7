"""The published files of each workspace, by content hash; each publication is one atomic change."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from engine.store import tables


@dataclass(frozen=True)
class ArtefactSet:
    """The files of one workspace, {path: (SHA-256, bytes)}; `version` counts its changes."""

    workspace: str
    project_id: int | None
    version: int
    files: dict[str, tuple[str, int]] = field(repr=False)
    changed: datetime.datetime

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files.values())


def _out(record: tables.ArtefactSet) -> ArtefactSet:
    files = {str(path): (str(row[0]), int(row[1])) for path, row in record.files.items()}
    return ArtefactSet(record.workspace, record.project_id, record.version, files, record.changed)


class Artefacts(tables.StorePart):
    """The published files. Written without permission checks, by the program itself."""

    def get(self, workspace: str) -> ArtefactSet | None:
        """The files of a workspace; None if nothing was published."""
        with self._store.read() as session:
            record = session.get(tables.ArtefactSet, workspace)
            return None if record is None else _out(record)

    def list(self) -> list[ArtefactSet]:
        """The files of all workspaces, sorted by workspace name."""
        with self._store.read() as session:
            return [_out(record) for record in session.scalars(select(tables.ArtefactSet).order_by(tables.ArtefactSet.workspace))]

    def versions(self) -> dict[str, int]:
        """{workspace: version}, a quick way to detect changes."""
        with self._store.read() as session:
            rows = session.execute(select(tables.ArtefactSet.workspace, tables.ArtefactSet.version))
            return {str(name): int(version) for name, version in rows}

    def merge(
        self, workspace: str, new: Mapping[str, Any], gone: Iterable[str] = (), *, project_id: int | None = None
    ) -> ArtefactSet:
        """Record new or changed files and removed ones (`gone`); other files stay as published."""
        try:
            return self._merge(workspace, new, set(gone), project_id)
        except IntegrityError:  # another process has just added the workspace, or its project was deleted
            return self._merge(workspace, new, set(gone), project_id)

    def _merge(self, workspace: str, new: Mapping[str, Any], gone: set[str], project_id: int | None) -> ArtefactSet:
        with self._store.system() as session:
            record = session.get(tables.ArtefactSet, workspace, with_for_update=True)
            if record is None:
                record = tables.ArtefactSet(workspace=workspace, project_id=project_id, version=0, files={})
                session.add(record)
            remaining = {path: row for path, row in record.files.items() if path not in gone}
            record.files = remaining | {path: [row[0], row[1]] for path, row in new.items()}
            record.version, record.changed = record.version + 1, tables.now()
            session.flush()
            return _out(record)

    def drop(self, workspace: str) -> None:
        """Remove a workspace; its blobs are removed by the next garbage collection."""
        with self._store.system() as session:
            record = session.get(tables.ArtefactSet, workspace)
            if record is not None:
                session.delete(record)
