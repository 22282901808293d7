"""The archive of a backup: a zip with the store as an SQLite file, the files of the data folder, and a checksum of each.

manifest.json      format, version of the program, date, path of the data folder, {file: {sha256, bytes}}
store.db           all rows as of one moment, whatever their database
home/…             the data folder without caches
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.corpora.formats.archive import DAMAGE
from engine.errors import InputError

FORMAT = 1
MANIFEST, STORE, HOME = "manifest.json", "store.db", "home/"
CHUNK = 1 << 20
MOST_JSON = 256 << 20
# Created again when needed, or specific to a process or to this machine.
CACHES = ("unpacked", "uploads", "work", "evaluation", "artefacts")
PROCESSES = ("worker.json", "worker.log", "errors.log")
# The only parts of a project that are kept if the user's sentences are left out.
NO_TEXTS = ("plugins", "import_options.json", "domains.json")


def left_out(path: Path, *, samples: bool, bases: bool) -> bool:
    """Whether a file is left out of a backup, by its path in the data folder."""
    first, name = path.parts[0], path.name
    if first in CACHES or (len(path.parts) == 1 and (name in PROCESSES or name.startswith("tailor.db"))):
        return True
    if any(part.startswith(".") or part.endswith((".tmp", ".lock")) for part in path.parts):
        return True
    if first in ("models", "parsers") and not bases:
        return True
    return first == "projects" and not samples and len(path.parts) > 2 and path.parts[2] not in NO_TEXTS


def read_manifest(path: Path, archive: zipfile.ZipFile) -> Json:
    """The manifest of a backup. Raises InputError if the file is not a backup, or has another format."""
    try:
        if archive.getinfo(MANIFEST).file_size > MOST_JSON:
            raise ValueError("too large")
        data = json.loads(archive.read(MANIFEST))
    except (KeyError, RecursionError, RuntimeError, *DAMAGE):
        raise InputError("{path} is no backup of Tailor MT, or a damaged one: its manifest cannot be read.", path=path) from None
    if not isinstance(data, dict) or not isinstance(data.get("files"), dict) or not isinstance(data.get("home"), str):
        raise InputError("{path} is no backup of Tailor MT: its manifest holds something else.", path=path)
    if data.get("format") != FORMAT:
        raise InputError(
            "{path} has format {format}; this program reads {known}. Update Tailor MT.",
            path=path, format=data.get("format"), known=FORMAT,
        )  # fmt: skip
    return data


def check(path: Path, archive: zipfile.ZipFile, progress: Progress) -> Json:
    """Verify a whole backup against its checksums; returns its manifest. Raises InputError, one sentence."""
    manifest = read_manifest(path, archive)
    names = [name for name in archive.namelist() if name != MANIFEST]
    if sorted(names) != sorted(manifest["files"]) or len(set(names)) != len(names) or STORE not in names:
        raise InputError("{path} is damaged: its files are not those of its manifest. Use another backup.", path=path)
    for name in names:
        inside = name == STORE or (name.startswith(HOME) and len(name) > len(HOME))
        if not inside or "\\" in name or ":" in name or ".." in Path(name).parts or name.endswith("/"):
            raise InputError("{path} holds the path {name!r}, which no backup has. Nothing was restored.", path=path, name=name)
    for number, name in enumerate(names):
        entry, digest = manifest["files"][name], hashlib.sha256()
        try:
            for block in blocks(archive, name):
                digest.update(block)
                progress.check()
        except (RuntimeError, *DAMAGE) as error:
            raise InputError(
                "{path} is damaged: {name} cannot be read ({error}). Use another backup.", path=path, name=name, error=error
            ) from None
        if not isinstance(entry, dict) or digest.hexdigest() != entry.get("sha256"):
            raise InputError("{path} is damaged: {name} is not what its manifest says. Use another backup.", path=path, name=name)
        progress.advance(number + 1, len(names), name)
    return manifest


def blocks(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """A file of the archive in blocks. Raises ValueError if it is longer than stated."""
    remaining = archive.getinfo(name).file_size
    with archive.open(name) as file:
        while block := file.read(CHUNK):
            remaining -= len(block)
            if remaining < 0:
                raise ValueError("longer than it says")
            yield block
