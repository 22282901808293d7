"""Writing files so that readers see either the old or the new content, never an incomplete file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from engine.core.json_object import Json
from engine.errors import InputError, StorageError, capitalised, storage_errors
from engine.messages import Message, pack, unpack

CHUNK = 1 << 20  # bytes copied at a time


def make_parent(path: Path, what: str) -> None:
    """Create the parent folder of `path`. Raises StorageError if a file is in the way, or `path` is a folder."""
    if path.is_dir():
        raise StorageError(
            "{path} is a folder, so {what} cannot be written there. Specify a file name.", path=path, what=Message(what)
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StorageError(
            "{what} cannot be written to {path}: {file} is a file, not a folder. Choose another folder.",
            what=capitalised(what),
            path=path,
            file=file_above(path),
        ) from None


def file_above(path: Path) -> Path:
    """The nearest existing folder above the path."""
    return next(folder for folder in path.absolute().parents if folder.exists())


def is_device(path: Path) -> bool:
    """Whether the path is something that is written into but never replaced, such as /dev/null, /dev/stdout or a pipe."""
    return path.exists() and not path.is_dir() and (not path.is_file() or path.parent == Path("/dev"))


def check_writable(path: Path, what: str) -> None:
    """Check before long work whether its result can be written, without leaving a trace. Raises StorageError."""
    above = file_above(path)
    if path.is_dir() or not above.is_dir():
        make_parent(path, what)
    if not (os.access(path, os.W_OK) if is_device(path) else os.access(above, os.W_OK | os.X_OK)):
        raise StorageError(
            "{what} could not be written to {where}: no permission. Choose another folder.", what=capitalised(what), where=path
        )


def check_apart(output: Path, inputs: Iterable[Path]) -> None:
    """Raise InputError if `output` is one of the inputs."""
    for input_path in inputs:
        if output.exists() and input_path.exists() and not is_device(output) and output.samefile(input_path):
            raise InputError("{path} is read by this command, so it cannot be its output. Choose another name.", path=output)


@contextlib.contextmanager
def atomic_write(path: Path, what: str) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it if the block succeeds and is removed otherwise.

    A device or pipe, such as /dev/null, is not replaced but written into. `what` names the content in a StorageError ("the
    plugin", "the checkpoint").
    """
    with storage_errors(what, path):
        if is_device(path):
            with _written_into(path) as temporary:
                yield temporary
            return
        make_parent(path, what)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _written_into(device: Path) -> Iterator[Path]:
    """A temporary file that is copied into the device or pipe if the block succeeds."""
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / "content"
        temporary.touch()
        yield temporary
        with temporary.open("rb") as content, device.open("wb") as into:
            shutil.copyfileobj(content, into)


@contextlib.contextmanager
def atomic_folder(folder: Path, what: str) -> Iterator[Path]:
    """A new folder beside `folder` that replaces it by two renames if the block succeeds and is removed otherwise.

    A crash between the renames leaves `<name>.old`: read from the first complete folder of `folder_and_old`.
    """
    temporary, (current, old) = folder.with_name(f"{folder.name}.tmp"), folder_and_old(folder)
    with storage_errors(what, folder.parent):
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            temporary.mkdir(parents=True)
            yield temporary
            shutil.rmtree(old, ignore_errors=True)
            if current.exists():
                current.rename(old)
            temporary.rename(current)
            shutil.rmtree(old, ignore_errors=True)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def folder_and_old(folder: Path) -> tuple[Path, Path]:
    """The folder, and where `atomic_folder` leaves the previous version if it is killed between its renames."""
    return folder, folder.with_name(f"{folder.name}.old")


def copy_hashed(source: IO[bytes], into: IO[bytes] | None = None) -> Json:
    """Copy the remainder of a file, or only read it; returns its `sha256` and `bytes`."""
    digest, count = hashlib.sha256(), 0
    while block := source.read(CHUNK):
        digest.update(block)
        count += len(block)
        if into is not None:
            into.write(block)
    return {"sha256": digest.hexdigest(), "bytes": count}


def read_json(path: Path) -> Json:
    """The object in a JSON file; empty if the file is missing, damaged or being written."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return unpack(data) if isinstance(data, dict) else {}


def write_json(path: Path, value: Mapping[str, Any], what: str) -> None:
    """Write JSON for human readers: indented, sorted, in UTF-8; messages are stored with their data."""
    with atomic_write(path, what) as temporary:
        temporary.write_text(json.dumps(pack(value), ensure_ascii=False, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_jsonl(path: Path) -> Iterator[Json]:
    """The objects in a file with one per line. Raises OSError, and ValueError on an invalid line."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        yield from map(json.loads, lines)


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]], what: str) -> None:
    """Write one JSON object per line."""
    with atomic_write(path, what) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
