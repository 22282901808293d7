"""Restores a backup to a data folder: it is verified completely first, and put in place by one rename."""

from __future__ import annotations

import datetime
import os
import shutil
import uuid
import zipfile
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from engine.core.progress import Progress
from engine.core.settings import Settings, home_path
from engine.corpora.formats.archive import DAMAGE
from engine.errors import InputError, storage_errors
from engine.store import Store
from engine.store.copy import copy_store
from engine.store.status import status
from engine.store.tables import Base
from engine.workflows.maintenance.archive import HOME, STORE, blocks, check

BROKEN_OFF = "It was at work when the backup was made. Resume it: finished steps and the last checkpoint are kept."


def restore_backup(settings: Settings, path: Path, *, replace: bool = False, progress: Progress | None = None) -> dict[str, Any]:
    """Restore a backup to the settings' data folder, and its rows to their store; returns {"home", "files", "rows", "kept"}.

    The folder may differ from the backed-up one: paths in rows are changed accordingly. If the settings name a PostgreSQL database,
    the rows go there; it has to be empty. Raises InputError if the backup is damaged, or the folder is not empty and `replace` is
    not set. The replaced folder is kept under another name.
    """
    progress = progress or Progress()
    home = home_path(settings.home).absolute()
    if not path.is_file():
        raise InputError("There is no file {path}.", path=path)
    try:
        archive = zipfile.ZipFile(path)
    except DAMAGE as error:
        raise InputError(
            "{path} is no backup of Tailor MT: it cannot be read as a zip file ({error}).", path=path, error=error
        ) from None
    with archive:
        full = home.exists() and any(home.iterdir())
        if full and not replace:
            raise InputError(
                "{home} is not empty, so nothing was restored. Give another folder with --home, or --replace, which "
                "keeps what lies there under another name.",
                home=home,
            )
        if full:
            refuse_workers(settings)
        progress.begin("Checking the backup", 0, 3)
        manifest = check(path, archive, progress)
        progress.begin("Unpacking", 1, 3)
        staging = home.with_name(f".{home.name}.restoring-{uuid.uuid4().hex[:8]}")
        with storage_errors("the data folder", home):
            try:
                staging.mkdir(parents=True, mode=0o700)
                unpack(archive, staging, progress)
                progress.begin("Entering the rows", 2, 3)
                rows = enter(settings, staging, Path(manifest["home"]), home)
                selected = replace_folder(staging, home)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    return {"home": str(home), "files": len(manifest["files"]), "rows": rows, "kept": str(selected) if selected else None}


def refuse_workers(settings: Settings) -> None:
    """Raises InputError while a worker serves the store that would be replaced."""
    try:
        store = Store(settings.store_url)
    except InputError:  # a damaged store is a reason to restore
        return
    workers = store.workers.list(within=20)
    store.close()
    if workers:
        raise InputError(
            "A worker serves {place} on {host}. Stop the studio and all workers first.", place=store.address, host=workers[0].host
        )


def unpack(archive: zipfile.ZipFile, folder: Path, progress: Progress) -> None:
    names = [name for name in archive.namelist() if name == STORE or name.startswith(HOME)]
    for number, name in enumerate(names):
        target = folder / ("tailor.db" if name == STORE else name[len(HOME) :])
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as out:
            for block in blocks(archive, name):
                out.write(block)
                progress.check()
        progress.advance(number + 1, len(names), name)
    os.chmod(folder / "tailor.db", 0o600)


def enter(settings: Settings, staging: Path, old: Path, home: Path) -> int:
    """Adapt the rows to their new location, and copy them to another database if the settings name one. Returns their number."""
    from engine.store.database import file_of, parse

    url = f"sqlite:///{staging / 'tailor.db'}"
    store = Store(url)  # upgrades the rows of an older version
    rehome(store, str(old), str(home))
    for job in store.jobs.list(states=["running"]):
        store.jobs.interrupt(job.id, job.attempt, BROKEN_OFF)
    for worker in store.workers.list(within=None):
        store.workers.remove(worker.name)
    store.close()
    rows = sum(status(url)["rows"].values())
    elsewhere = settings.database_url and file_of(parse(settings.database_url)) is None
    if elsewhere:
        copy_store(url, settings.database_url)
    for leftover in ("tailor.db-wal", "tailor.db-shm", *(["tailor.db"] if elsewhere else [])):
        (staging / leftover).unlink(missing_ok=True)
    return int(rows)


def replace_folder(staging: Path, home: Path) -> Path | None:
    """Replace the old folder by the new one; the old one is kept beside it if it is not empty. Returns its path."""
    selected = None
    if home.exists():
        if any(home.iterdir()):
            moment = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
            selected = home.with_name(f"{home.name}.before-restore-{moment}")
            os.rename(home, selected)
        else:
            home.rmdir()
    try:
        os.rename(staging, home)
    except OSError:
        if selected is not None:
            os.rename(selected, home)
        raise
    return selected


def rehome(store: Any, old: str, new: str) -> int:
    """Change paths below one data folder to paths below another in all rows; returns the number of changed rows."""
    if old == new:
        return 0

    def moved(value: Any) -> Any:
        if isinstance(value, str):
            return new + value[len(old) :] if value == old or value.startswith((f"{old}/", f"{old}\\")) else value
        if isinstance(value, dict):
            return {key: moved(item) for key, item in value.items()}
        return [moved(item) for item in value] if isinstance(value, list) else value

    count = 0
    with store.system() as session:
        connection = session.connection()
        for table in Base.metadata.sorted_tables:
            if table.name == "audit":  # audit records are never changed
                continue
            keys = list(table.primary_key.columns)
            for row in connection.execute(select(table)).mappings().all():
                changed = {name: after for name, before in row.items() if (after := moved(before)) != before}
                if changed:
                    where = [key == row[key.name] for key in keys]
                    connection.execute(update(table).where(*where).values(changed))
                    count += 1
    return count
