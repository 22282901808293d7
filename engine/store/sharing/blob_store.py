"""A content-addressed store on fsspec: a folder or an S3 bucket in which a file's name is the SHA-256 of its bytes.

    blobs/ab/abcdef…       one file's bytes, written once and never changed

Files appear atomically: in a folder they are written under a temporary name and renamed; S3 shows an object only after all
of it was sent. Workers that publish the same content write the same bytes. Every fetch is verified against the name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from engine.core.atomic_files import copy_hashed
from engine.core.json_object import Json
from engine.core.settings import Settings
from engine.errors import InputError, MissingError, StorageError, storage_errors

CHUNK = 1 << 20
WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between attempts
# Files that grow in place and are therefore never hard-linked to a blob.
APPENDED = ("metrics.jsonl", "decisions.jsonl", "excluded_phrases.jsonl", "sentences.jsonl")
TEMPORARY = ".tmp-"

Found = TypeVar("Found")


class DamagedError(StorageError):
    """A blob does not match the hash in its name."""


@dataclass(frozen=True)
class Blob:
    """A blob as listed by the store; `age` is in seconds since it was written or, in a folder, last refreshed by a publisher."""

    name: str
    bytes: int
    age: float


def open_blobs(settings: Settings) -> BlobStore | None:
    """The store specified in the settings; None if artefacts are only in the data folder.

    Raises InputError for an invalid address, MissingError if its library is not installed.
    """
    return BlobStore(settings.artefacts, endpoint=settings.artefacts_endpoint) if settings.artefacts else None


class BlobStore:
    """`url`: a folder, or any fsspec address such as s3://bucket/prefix. `endpoint`: that of an S3-compatible service."""

    waits = WAITS

    def __init__(self, url: str, *, endpoint: str = "") -> None:
        self.url = url.rstrip("/")
        folder = "://" not in self.url or self.url.startswith("file://")
        self.local = Path(self.url.removeprefix("file://")).expanduser().absolute() if folder else None
        self._system: Any = None
        self.root = str(self.local)
        if self.local is None:
            self._system, self.root = _open(self.url, endpoint)

    def location(self, name: str) -> str:
        return f"{self.root}/blobs/{name[:2]}/{name}"

    # -- writing

    def put(self, path: Path, file: BinaryIO, size: int, name: str, *, fresh_for: float = 3600.0) -> bool:
        """Store the first `size` bytes of an open file under `name`, their SHA-256; returns whether they had to be sent.

        An existing blob is not sent again, but in a folder its time is updated if it is older than `fresh_for` seconds, so that
        a concurrent garbage collection skips it. Raises StorageError.
        """
        existing = self._try(f"{path.name} could not be looked up", lambda: self.look(name))
        if existing is not None and existing.bytes == size:
            if existing.age < fresh_for:
                return False
            if self.local:
                with contextlib.suppress(OSError):
                    os.utime(self.location(name))
                return False
        send = self._put_local if self.local else self._put_remote
        try:
            self._try(f"{path.name} could not be published", lambda: send(path, file, size, name))
        except FileNotFoundError:
            raise StorageError(
                "{path} could not be published: there is no bucket {url}. Make it first.", path=path.name, url=self.url
            ) from None
        return True

    def _put_local(self, path: Path, file: BinaryIO, size: int, name: str) -> None:
        destination = Path(self.location(name))
        with storage_errors(f"the artefact {path.name}", destination):
            destination.parent.mkdir(parents=True, exist_ok=True)
            temporary = destination.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
            try:
                if not _linked(path, file, size, temporary):
                    with temporary.open("wb") as out:
                        _copy(file, size, name, out)
                        out.flush()
                        os.fsync(out.fileno())
                else:
                    os.utime(temporary)
                os.replace(temporary, destination)
            finally:
                temporary.unlink(missing_ok=True)

    def _put_remote(self, path: Path, file: BinaryIO, size: int, name: str) -> None:
        location, system = self.location(name), self._system
        if size <= 4 * CHUNK:
            file.seek(0)
            data = file.read(size)
            if hashlib.sha256(data).hexdigest() != name:
                raise Changed
            system.pipe_file(location, data)
            return
        out = system.open(location, "wb", block_size=16 * CHUNK)
        try:
            _copy(file, size, name, out)
        except BaseException:
            with contextlib.suppress(Exception):
                out.discard()
            raise
        out.close()

    # -- reading

    def look(self, name: str) -> Blob | None:
        """Size and age of a blob, without reading it; None if there is none."""
        try:
            if self.local:
                result = os.stat(self.location(name))
                return Blob(name, result.st_size, time.time() - result.st_mtime)
            self._system.invalidate_cache(self.location(name))
            info = self._system.info(self.location(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Blob(name, int(info["size"]), _age(info))

    def fetch(self, name: str, path: Path) -> None:
        """Write a blob to `path`, replacing an existing file; from a folder on the same disk, as a hard link.

        Raises DamagedError if the bytes do not match the name, StorageError if the blob is missing or cannot be reached;
        `path` is then unchanged.
        """
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        with storage_errors(f"the artefact {path.name}", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._try(f"{path.name} could not be fetched", lambda: self._fetch(name, path, temporary))
                os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)

    def _fetch(self, name: str, path: Path, temporary: Path) -> None:
        try:
            with self.open(name) as file:
                if self.local and path.name not in APPENDED and _link(self.location(name), temporary):
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                else:
                    with temporary.open("wb") as out:
                        digest = copy_hashed(file, out)["sha256"]
        except FileNotFoundError:
            raise StorageError(
                "The artefact {path} ({name}) is missing from {url}. Run `tailormt doctor`; if no copy is "
                "left, its step must be repeated.",
                path=path.name, name=name[:12], url=self.url,
            ) from None  # fmt: skip
        if digest != name:
            raise DamagedError(
                "The artefact {path} ({name}) in {url} is damaged: its bytes are not those that were published. Run "
                "`tailormt doctor --repair`.",
                path=path.name, name=name[:12], url=self.url,
            )  # fmt: skip

    def open(self, name: str) -> Any:
        """Open a blob for reading; the caller verifies its content."""
        return open(self.location(name), "rb") if self.local else self._system.open(self.location(name), "rb")

    def is_intact(self, name: str) -> bool:
        """Whether a blob exists and matches its name; reads all of it."""

        def read() -> bool:
            try:
                with self.open(name) as file:
                    return bool(copy_hashed(file)["sha256"] == name)
            except FileNotFoundError:
                return False

        return self._try(f"The artefact {name[:12]} could not be read", read)

    # -- listing and removing

    def all(self) -> Iterator[Blob]:
        """All blobs. Raises StorageError."""
        for position, info in self._all().items():
            name = position.rsplit("/", 1)[1]
            if len(name) == 64:
                yield Blob(name, int(info["size"]), _age(info))

    def leftovers(self) -> list[tuple[str, float]]:
        """(location, age in seconds) of temporary files left by a crash."""
        return [
            (position, _age(info)) for position, info in self._all().items() if position.rsplit("/", 1)[1].startswith(TEMPORARY)
        ]

    def _all(self) -> Json:
        def find() -> Json:
            if self.local:
                result = {}
                for file in Path(self.root, "blobs").glob("*/*"):
                    with contextlib.suppress(FileNotFoundError):
                        info = file.stat()
                        result[str(file)] = {"size": info.st_size, "mtime": info.st_mtime}
                return result
            self._system.invalidate_cache()
            try:
                return dict(self._system.find(f"{self.root}/blobs", detail=True))
            except FileNotFoundError:
                return {}

        return self._try("The artefacts could not be listed", find)

    def remove(self, name_or_location: str) -> None:
        """Remove a blob by its name, or a leftover by its location, if it exists."""

        def remove() -> None:
            with contextlib.suppress(FileNotFoundError):
                target = self.location(name_or_location) if len(name_or_location) == 64 else name_or_location
                os.unlink(target) if self.local else self._system.rm_file(target)

        self._try("An artefact could not be removed", remove)

    def _try(self, what: str, work: Callable[[], Found]) -> Found:
        """Run `work`, retrying if a remote service fails. Raises StorageError."""
        for wait in (*(() if self.local else self.waits), None):
            try:
                return work()
            except (StorageError, FileNotFoundError, Changed):
                raise
            except Exception as error:
                if self.local:
                    raise
                if _for_good(error) or wait is None:
                    raise StorageError(
                        "{what} at {url}: {words}. Resume the job once the store answers; what is finished is kept.",
                        what=what, url=self.url, words=_words(error),
                    ) from error  # fmt: skip
                time.sleep(wait)
        raise AssertionError("not reached")


class Changed(Exception):  # noqa: N818 - not an error but a reason to try again
    """A file was written while it was being published."""


def _open(url: str, endpoint: str) -> tuple[Any, str]:
    import fsspec

    options: Json = {}
    if url.startswith("s3://"):
        patience = {"connect_timeout": 5, "read_timeout": 60, "retries": {"max_attempts": 2, "mode": "standard"}}
        options = {"config_kwargs": patience, "use_listings_cache": False, "skip_instance_cache": True}
        if endpoint:
            options["client_kwargs"] = {"endpoint_url": endpoint}
    try:
        system, root = fsspec.core.url_to_fs(url, **options)
    except ImportError as error:
        raise MissingError(
            "Artefacts at {url} need another library ({error}): pip install 'tailor-mt[s3]'.", url=url, error=error
        ) from None
    except ValueError as error:
        raise InputError("artefacts: {url} is neither a folder nor a supported address ({error}).", url=url, error=error) from None
    if hasattr(system, "retries"):
        system.retries = 1  # `_try` retries
    return system, str(root).rstrip("/")


def _link(source: str | Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:  # another disk, or a file system without hard links
        return False
    return True


def _linked(path: Path, file: BinaryIO, size: int, temporary: Path) -> bool:
    """Hard-link the file if its bytes never change in place and it is still the opened one; returns whether it did."""
    if path.name in APPENDED or "partial" in path.name or path.suffix in (".log", ".db") or not _link(path, temporary):
        return False
    original, other = os.fstat(file.fileno()), temporary.stat()
    if (original.st_ino, original.st_dev, other.st_size) == (other.st_ino, other.st_dev, size):
        return True
    temporary.unlink()
    return False


def _copy(file: BinaryIO, size: int, name: str, out: Any) -> None:
    """Copy the first `size` bytes. Raises Changed if they do not match the name."""
    file.seek(0)
    digest, remaining = hashlib.sha256(), size
    while remaining and (block := file.read(min(CHUNK, remaining))):
        digest.update(block)
        out.write(block)
        remaining -= len(block)
    if remaining or digest.hexdigest() != name:
        raise Changed


def _age(info: Json) -> float:
    moment: Any = info.get("mtime") or info.get("LastModified")
    stamp = moment.timestamp() if hasattr(moment, "timestamp") else moment
    return max(0.0, time.time() - float(stamp)) if stamp is not None else 0.0


def _for_good(error: Exception) -> bool:
    """Whether the error is permanent: wrong credentials, missing bucket, no permission."""
    return isinstance(error, PermissionError) or "NoSuchBucket" in str(error) or "NoCredentials" in type(error).__name__


def _words(error: Exception) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return (words if len(words) < 200 else words[:200] + " …").rstrip(".")
