"""One archive of a whole installation, made while it is running: rows as of one moment, each file complete."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engine
from engine.core.atomic_files import atomic_write, check_writable, copy_hashed
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.errors import InputError, storage_errors
from engine.store import Store
from engine.store.copy import copy_store
from engine.workflows.maintenance.archive import FORMAT, HOME, MANIFEST, STORE, left_out

PACKED = (".zip", ".safetensors", ".faiss", ".pt", ".docx", ".odt", ".pdf", ".gz", ".png")


def make_backup(
    settings: Settings, output: Path, *, samples: bool = True, bases: bool = True, progress: Progress | None = None
) -> dict[str, Any]:
    """Write the backup; returns {"file", "bytes", "files", "rows"}. It contains settings and hashed passwords: keep it safe.

    The rows are those of one moment, also on a PostgreSQL server; files are copied after them, so that files referenced by rows
    exist. A file deleted meanwhile is skipped. `samples` False leaves out the user's own sentences, except those in plugins and
    comparisons; `bases` False leaves out added bases and parsers. Raises StorageError.
    """
    progress = progress or Progress()
    check_writable(output, "the backup")
    home, files = settings.home_dir, {}
    progress.begin("Copying the store", 0, 2)
    with tempfile.TemporaryDirectory(prefix="tailormt-backup-") as folder, atomic_write(output, "the backup") as temporary:
        os.chmod(temporary, 0o600)
        store = Path(folder) / STORE
        rows = copy_rows(settings, store)
        paths = [path for path in walk(home) if not left_out(path, samples=samples, bases=bases)]
        paths = [path for path in paths if not same(home / path, output) and not same(home / path, temporary)]
        progress.begin("Copying files", 1, 2)
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, allowZip64=True, strict_timestamps=False) as archive:
            files[STORE] = add(archive, store, STORE)
            for number, path in enumerate(paths):
                progress.check()
                with contextlib.suppress(FileNotFoundError):
                    files[HOME + path.as_posix()] = add(archive, home / path, HOME + path.as_posix())
                progress.advance(number + 1, len(paths), path.name)
            manifest = {
                "format": FORMAT,
                "version": engine.__version__,
                "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "home": str(home.absolute()),
                "samples": samples,
                "bases": bases,
                "files": files,
            }
            archive.writestr(MANIFEST, json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False))
    os.chmod(output, 0o600)  # settings, hashed passwords and sentences are not for all users of the machine
    return {"file": str(output), "bytes": output.stat().st_size, "files": len(files), "rows": rows}


def copy_rows(settings: Settings, target: Path) -> int:
    """Copy all rows, as of one moment, to an SQLite file; returns their number. Raises InputError if there is no store, or it
    cannot be copied.
    """
    from engine.store.database import file_of, parse, sentences

    position = parse(settings.store_url)
    file = file_of(position)
    if file is None:
        return sum(copy_store(settings.store_url, f"sqlite:///{target}", live=True).values())
    if not file.exists():
        raise InputError("There is no store at {file}: nothing was made here yet, so there is nothing to back up.", file=file)
    with sentences(str(file)), storage_errors("the backup", target):
        try:
            with contextlib.closing(sqlite3.connect(file)) as origin, contextlib.closing(sqlite3.connect(target)) as goal:
                origin.execute("PRAGMA busy_timeout = 15000")
                origin.backup(goal, pages=4096, sleep=0.01)  # SQLite's online backup
                goal.execute("PRAGMA journal_mode = DELETE")
                if (result := goal.execute("PRAGMA quick_check").fetchone()[0]) != "ok":
                    raise InputError("The store at {file} is damaged ({found}). Run `tailormt doctor`.", file=file, found=result)
        except sqlite3.DatabaseError as error:
            raise InputError(
                "The store at {file} cannot be copied ({error}). Run `tailormt doctor`.", file=file, error=error
            ) from None
    store = Store(f"sqlite:///{target}")
    try:
        from engine.store.status import status

        return sum(status(f"sqlite:///{target}")["rows"].values())
    finally:
        store.close()
        for leftover in (f"{target}-wal", f"{target}-shm"):
            Path(leftover).unlink(missing_ok=True)


def walk(home: Path) -> Iterator[Path]:
    """Plain files of the data folder, as paths relative to it; links are not followed."""
    for parent, folders, names in os.walk(home):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(home)


def same(path: Path, other: Path) -> bool:
    return path.absolute() == other.absolute()


def add(archive: zipfile.ZipFile, path: Path, name: str) -> dict[str, Any]:
    """Add one file to the archive; the returned facts are those of the bytes read, even if the file grows meanwhile."""
    with path.open("rb") as file:
        info = zipfile.ZipInfo.from_file(path, name, strict_timestamps=False)
        info.compress_type = zipfile.ZIP_STORED if path.suffix in PACKED else zipfile.ZIP_DEFLATED
        with archive.open(info, "w", force_zip64=True) as out:
            return copy_hashed(file, out)
