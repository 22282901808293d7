"""Removing a project whole: its rows and all its files, or nothing of it.

The project's folder is renamed first, then its rows go in one transaction, then the renamed folder is removed. A crash in
between leaves a renamed folder: at the next look it is put back where the rows are still there, and removed where not.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import uuid
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.settings import Settings
from engine.errors import InputError, storage_errors

if TYPE_CHECKING:
    from engine.store import Store

DOOMED = re.compile(r"^\.deleted-(\d+)-[0-9a-f]{32}$")
MANIFEST = "manifest.json"


def delete_project(settings: Settings, store: Store, project_id: int) -> None:
    """Remove a project with its samples, phrases, plugins, comparisons, jobs and their logs.

    Bundles and files elsewhere stay. Raises InputError when there is no such project or one of its jobs is at work,
    StorageError when a file cannot be removed; then everything is still there.
    """
    store.projects.get(project_id)
    jobs = store.jobs.list(project_id)
    if any(job.state == "running" for job in jobs):
        raise InputError("A job of this project is running. Cancel it first, then delete the project.")
    for job in jobs:
        if job.state == "queued":
            store.jobs.cancel(job.id)
    root = settings.home_dir / "projects"
    folder, doomed = root / str(project_id), root / f".deleted-{project_id}-{uuid.uuid4().hex}"
    with storage_errors("the project's folder", folder):
        if folder.exists():
            os.rename(folder, doomed)
        try:
            store.projects.delete(project_id)
        except BaseException:
            if doomed.exists():
                os.rename(doomed, folder)
            raise
    for job in jobs:
        (settings.home_dir / "jobs" / f"{job.id}.log").unlink(missing_ok=True)
    _remove(settings, doomed)


def finish_deletions(settings: Settings, store: Store) -> None:
    """Finish what a crash interrupted: put folders back whose project is still there, remove the others."""
    root = settings.home_dir / "projects"
    if not root.is_dir():
        return
    known = {row.id for row in store.projects.list()}
    for path in root.iterdir():
        match = DOOMED.match(path.name)
        if match is None:
            continue
        folder = root / match[1]
        if int(match[1]) in known and not folder.exists():
            os.rename(path, folder)
        else:
            _remove(settings, path)


def _remove(settings: Settings, folder: Path) -> None:
    """Remove a project's folder, and what was unpacked of its bundles."""
    for bundle in folder.glob("plugins/*.zip"):
        with contextlib.suppress(OSError, KeyError, zipfile.BadZipFile), zipfile.ZipFile(bundle) as archive:
            name = hashlib.sha256(archive.read(MANIFEST)).hexdigest()[:32]  # as `engine.plugins.unpack_bundle` names it
            shutil.rmtree(settings.home_dir / "unpacked" / name, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
