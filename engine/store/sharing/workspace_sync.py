"""Synchronising the files of one workspace with their last published versions."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.atomic_files import read_json, write_json
from engine.errors import StorageError, storage_errors
from engine.store.sharing.blob_store import Changed

if TYPE_CHECKING:
    from engine.store import Store
    from engine.store.artefacts import ArtefactSet
    from engine.store.sharing.blob_store import BlobStore

STATE = ".artefacts.json"
LOCK = ".artefacts.lock"
LAST = ("steps.json",)  # describes the other files, so it is written last
TRIES = 5


@dataclass(frozen=True)
class FileEntry:
    """The content of a file: its hash and size."""

    sha256: str
    bytes: int


Look = tuple[int, int, int]  # bytes, nanoseconds of the last change, inode


class WorkspaceSync:
    """A workspace folder, `name`d such as projects/3 in the store. Without `blobs`, only the hashes are recorded."""

    def __init__(self, folder: Path, name: str, store: Store, blobs: BlobStore | None, project_id: int | None = None) -> None:
        self.folder, self.name, self.store, self.blobs, self.project_id = folder, name, store, blobs, project_id
        data = read_json(folder / STATE)
        self.version = data["version"] if isinstance(data.get("version"), int) else 0
        self.known: dict[str, FileEntry] = {}  # at `version`
        self._looks: dict[str, Look] = {}
        self._fresh: dict[str, Look] = {}  # when all files were last hashed
        files = data.get("files")
        for path, row in files.items() if isinstance(files, dict) else ():
            with contextlib.suppress(TypeError, ValueError, KeyError):
                self.known[path] = FileEntry(str(row["sha256"]), int(row["bytes"]))
                size, moment, inode = row["look"]
                self._looks[path] = (int(size), int(moment), int(inode))

    # -- local files

    def looks(self) -> dict[str, Look]:
        """(bytes, mtime in ns, inode) of all files of the workspace except temporary ones, by path."""
        result: dict[str, Look] = {}
        for parent, folders, names in os.walk(self.folder):
            folders[:] = [folder for folder in folders if not _passing(folder)]
            for name in names:
                path = Path(parent, name)
                if _passing(name) or path.is_symlink():
                    continue
                with contextlib.suppress(FileNotFoundError):
                    info = path.stat()
                    result[path.relative_to(self.folder).as_posix()] = (info.st_size, info.st_mtime_ns, info.st_ino)
        return result

    def changed(self) -> bool:
        """Whether a file has changed since it was last published, judging by size, time and inode."""
        return self.looks() != self._looks

    def hashed(self) -> dict[str, FileEntry]:
        """A consistent snapshot of the hashes of all files. Raises Changed if they keep changing."""
        for _ in range(TRIES):
            before, entries = self.looks(), {}
            for path, look in before.items():
                if self._looks.get(path) == look and path in self.known:
                    entries[path] = self.known[path]
                    continue
                with contextlib.suppress(FileNotFoundError), (self.folder / path).open("rb") as file:
                    entries[path] = FileEntry(hashlib.file_digest(file, "sha256").hexdigest(), look[0])
            if self.looks() == before and entries.keys() == before.keys():
                self._fresh = before
                return entries
            time.sleep(0.05)
        raise Changed

    # -- publishing and fetching

    def push(self) -> int:
        """Publish local changes; returns the number of files. Raises StorageError, or Changed if the files keep changing."""
        with self._held():
            now = self.hashed()
            new = {path: entry for path, entry in now.items() if self.known.get(path) != entry}
            gone = [path for path in self.known if path not in now]
            if not new and not gone and self.version:
                self._remember(now, self.version)
                return 0
            if self.blobs is not None:
                for path, entry in new.items():
                    file_path = self.folder / path
                    with self._there(), file_path.open("rb") as file:
                        self.blobs.put(file_path, file, entry.bytes, entry.sha256)
            rows = {path: [entry.sha256, entry.bytes] for path, entry in new.items()}
            after = self.store.artefacts.merge(self.name, rows, gone, project_id=self.project_id)
            # Files published by others meanwhile are fetched by the next pull.
            self._remember(now, after.version if after.files.keys() == now.keys() else self.version)
            return len(new) + len(gone)

    def pull(self) -> int:
        """Fetch published changes, except to locally changed files; returns the number of files. Raises StorageError."""
        if self.blobs is None:
            return 0
        row = self.store.artefacts.get(self.name)
        if row is None or row.version == self.version:
            return 0
        with self._held():
            now, count = self.hashed(), 0
            published = {path: FileEntry(sha, size) for path, (sha, size) in row.files.items()}
            after = dict(now)
            for path in sorted(published, key=lambda path: (Path(path).name in LAST, path)):
                local, entry = now.get(path), published[path]
                if local == entry or (local is not None and local != self.known.get(path)):
                    continue
                self._check_inside(path)
                self.blobs.fetch(entry.sha256, self.folder / path)
                after[path], count = entry, count + 1
            for path in self.known.keys() - published.keys():
                if now.get(path) == self.known[path]:
                    (self.folder / path).unlink(missing_ok=True)
                    after.pop(path, None)
                    count += 1
            self._fresh = self.looks()
            # Locally changed files are left out, so that the next push publishes them.
            self._remember({path: entry for path, entry in published.items() if after.get(path) == entry}, row.version)
            return count

    def missing(self, row: ArtefactSet) -> Iterator[tuple[str, FileEntry, str]]:
        """(path, published entry, problem) of each published file that is missing or changed locally."""
        for path, (sha, size) in sorted(row.files.items()):
            folder = self.folder / path
            try:
                with folder.open("rb") as file:
                    if folder.stat().st_size != size or hashlib.file_digest(file, "sha256").hexdigest() != sha:
                        yield path, FileEntry(sha, size), "changed"
            except OSError:
                yield path, FileEntry(sha, size), "gone"

    # -- internals

    def _remember(self, entries: Mapping[str, FileEntry], version: int) -> None:
        self.known, self.version = dict(entries), version
        self._looks = {path: look for path, look in self._fresh.items() if path in entries}
        files = {
            path: {"sha256": entry.sha256, "bytes": entry.bytes, "look": list(self._looks.get(path, ()))}
            for path, entry in entries.items()
        }
        if self.folder.is_dir():
            write_json(self.folder / STATE, {"version": version, "files": files}, "the list of artefacts")

    def _check_inside(self, path: str) -> None:
        if path.startswith(("/", "\\")) or ".." in Path(path).parts or not path:
            raise StorageError(
                "The list of artefacts of {name} names {path!r}, which leads out of its folder.", name=self.name, path=path
            )

    @contextlib.contextmanager
    def _there(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise Changed from None

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Lock the workspace, so that only one process synchronises it at a time."""
        with storage_errors("the workspace", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / LOCK).open("w")
        try:
            with contextlib.suppress(ImportError):  # not on Windows, where only one program uses a data folder
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            reloaded = WorkspaceSync(self.folder, self.name, self.store, self.blobs)  # changes by other processes
            self.version, self.known, self._looks = reloaded.version, reloaded.known, reloaded._looks
            yield
        finally:
            file.close()


def _passing(name: str) -> bool:
    """Whether a file or folder is temporary or belongs only to this machine."""
    return name.startswith(".") or name.endswith((".tmp", ".old", ".lock"))
