"""Removing a project with its rows and all its files, or not at all.

The project's folder is renamed first, then its rows are deleted in one transaction, then the renamed folder is removed. After
a crash in between, `finish_deletions` restores the folder if the rows still exist, and removes it otherwise.
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

    Bundles and files elsewhere are kept. Raises InputError if there is no such project or one of its jobs is running,
    StorageError if its folder cannot be renamed; then everything is kept.
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
    if folder.exists():  # made again by a page that looked the project up before its row was deleted
        _remove(settings, folder)


def finish_deletions(settings: Settings, store: Store) -> None:
    """Finish interrupted deletions: restore folders of existing projects, remove the others."""
    root = settings.home_dir / "projects"
    if not root.is_dir():
        return
    project_ids = {row.id for row in store.projects.list()}
    for path in root.iterdir():
        match = DOOMED.match(path.name)
        if match is None:
            continue
        folder = root / match[1]
        if int(match[1]) in project_ids and not folder.exists():
            os.rename(path, folder)
        else:
            _remove(settings, path)


def _remove(settings: Settings, folder: Path) -> None:
    """Remove a project's folder and its unpacked bundles."""
    for bundle in folder.glob("plugins/*.zip"):
        with contextlib.suppress(OSError, KeyError, zipfile.BadZipFile), zipfile.ZipFile(bundle) as archive:
            name = hashlib.sha256(archive.read(MANIFEST)).hexdigest()[:32]  # as in `engine.plugins.unpack_bundle`
            shutil.rmtree(settings.home_dir / "unpacked" / name, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
