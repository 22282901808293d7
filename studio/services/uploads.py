"""Uploaded files on their way into a project: checked before they are read, copied all or not at all.

They come from the browser or, if the settings allow it, from a path on the studio's machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.core.atomic_files import read_json, write_json
from engine.core.settings import Settings
from engine.corpora.formats.archive import check_archive
from engine.corpora.formats.encoding import check_file
from engine.corpora.formats.read import READERS
from engine.errors import CorpusError, InputError, storage_errors
from engine.messages import Given, Message
from studio.auth.identity import client_of, guest, sign_in_needed
from studio.i18n.translate import mark

INBOX = "inbox"  # in the home folder: files dropped before a project exists
OLDEST = 86_400  # seconds after which Gradio removes unused uploads
ARCHIVES = {".docx": "Word document", ".odt": "OpenDocument text"}


class RefusedError(InputError):
    """None of the files can be used."""


def known_endings() -> list[str]:
    return [ending for item in READERS.values() for ending in item.endings]


def check_files(files: Sequence[Path], settings: Settings, existing: Iterable[str] = ()) -> dict[Path, Message]:
    """The files to refuse, each with the reason: unknown format, too large, or damaged. `existing` lists the names of the
    project's existing files. Raises InputError if the project would hold too many files.
    """
    refused = {file: reason for file in files if (reason := refusal(file, settings)) is not None}
    count = len({*existing, *(file.name for file in files if file not in refused)})
    if count > settings.max_upload_files:
        raise InputError(
            "A project holds up to {most} files (setting max_upload_files); these would be {count}.",
            most=settings.max_upload_files,
            count=count,
        )
    return refused


def refusal(file: Path, settings: Settings) -> Message | None:
    """Why a file is refused, stated with its name but not its path on the server; None if it is accepted."""
    endings = known_endings()
    if file.suffix.lower() not in endings:
        return Message(
            mark("{name} cannot be read as samples. Supported file extensions: {endings}."),
            name=file.name,
            endings=", ".join(endings),
        )
    try:
        if check_file(file) > settings.max_upload_mib * 2**20:
            return too_large(file.name, settings)
        if file.suffix.lower() in ARCHIVES:
            check_archive(file, ARCHIVES[file.suffix.lower()])
    except CorpusError as error:
        return error.message.naming(str(file), file.name)
    return None


def too_large(name: str, settings: Settings) -> Message:
    """The reason to refuse a file larger than `max_upload_mib`."""
    return Message(
        mark("{name} is larger than {limit} MiB (setting max_upload_mib). Split it into parts."),
        name=name,
        limit=settings.max_upload_mib,
    )


def all_refused(reasons: Sequence[Message]) -> RefusedError:
    """The error that lists why each of the files was refused."""
    result = reasons[0]
    if len(reasons) > 1:
        result = Message(mark("None of the {count} files can be read."), count=len(reasons))
        for reason in reasons:
            result = Message(mark("{reasons} {reason}"), reasons=result, reason=reason)
    return RefusedError(result)


def take_files(files: Sequence[Path], folder: Path) -> list[str]:
    """Copy files into a folder, replacing existing ones of the same name; returns their names there.

    Two files of the same name in one call are both kept. If copying fails, none of the files is added.
    """
    names: list[str] = []
    parts: list[tuple[Path, Path]] = []
    with storage_errors("the samples", folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for file in files:
                name = _free(file.name.lstrip(".") or f"file{file.suffix}", names)
                names.append(name)
                part = folder / f".{name}.{os.getpid()}.part"
                parts.append((part, folder / name))
                shutil.copyfile(file, part)
            for part, position in parts:
                part.replace(position)
        finally:
            for part, _ in parts:
                part.unlink(missing_ok=True)
    return names


def _free(name: str, existing: Sequence[str]) -> str:
    path, number, result = Path(name), 2, name
    while result in existing:
        result, number = f"{path.stem}-{number}{path.suffix}", number + 1
    return result


def paths_offered(settings: Settings) -> bool:
    """Whether paths on the studio's machine can be used at all. With accounts, `server_folders` has to name folders."""
    return settings.server_paths_allowed and (bool(settings.server_folders) or not sign_in_needed(settings))


def in_named_folders(real: Path, settings: Settings) -> bool:
    """Whether a resolved path is in one of the `server_folders`; always true if the setting is empty."""
    folders = [Path(os.path.realpath(Path(name).expanduser())) for name in settings.server_folders]
    return not folders or any(real.is_relative_to(folder) for folder in folders)


def outside(path: str) -> InputError:
    """The error for a path outside the `server_folders`."""
    return InputError(mark("{path} is not in a folder that may be read from here (setting server_folders)."), path=Given(path))


def server_files(text: str, settings: Settings) -> list[Path]:
    """The files at a path on the studio's machine: the file itself, or the readable files in the folder.

    Raises InputError if such paths are not allowed or nothing at the path may be read.
    """
    if not settings.server_paths_allowed:
        raise InputError("Paths on the server are switched off (setting server_paths). Upload the file.")
    path_text = text.strip().strip("\"'")
    if not path_text:
        raise InputError("Enter the path of a file or folder.")
    path = Path(path_text).expanduser()
    if not path.is_absolute():
        raise InputError("{path} is not an absolute path. Start it at the root, as in /data/manuals.tmx.", path=Given(path_text))
    signed, home = sign_in_needed(settings), os.path.realpath(settings.home_dir)

    def readable(path: Path) -> bool:
        real = Path(os.path.realpath(path))
        # Files in the studio's home folder belong to somebody's project.
        foreign = signed and (real.is_relative_to(home) or not settings.server_folders)
        return in_named_folders(real, settings) and not foreign

    if signed:
        visitor = guest()
        if visitor is None or visitor.access is None or not visitor.access.changes:
            raise InputError("Paths on the server are only for accounts with write access. Upload the file.")
    # Outside the folders, not even the existence of a file is revealed.
    if not readable(path):
        raise outside(path_text)
    real = Path(os.path.realpath(path))
    if real.is_dir():
        try:
            results = [entry for entry in sorted(real.iterdir()) if entry.suffix.lower() in known_endings() and entry.is_file()]
        except OSError:
            raise InputError(
                "The folder {path} cannot be read by the studio; check its permissions.", path=Given(path_text)
            ) from None
        # Links in the folder may lead out of it.
        results = list(filter(readable, results))
        if not results:
            raise InputError("The folder {path} contains no file that can be read as samples.", path=Given(path_text))
        return results
    if not real.is_file():
        raise InputError("There is no file at {path}; check the path.", path=Given(path_text))
    if not os.access(real, os.R_OK):
        raise InputError("{path} cannot be read by the studio; check its permissions.", path=Given(path_text))
    return [path if path.suffix.lower() in known_endings() else real]


def own_key() -> str:
    """The key of the files that the caller has chosen for a new project; addresses cannot contain such a key."""
    return "own-" + hashlib.sha256(client_of(guest()).encode()).hexdigest()[:24]


def stash(files: Sequence[Path], settings: Settings, key: str = "") -> str:
    """Remember files dropped on the home page, or chosen on the page Samples, for a new project; returns their key."""
    folder = settings.home_dir / INBOX
    token = key or secrets.token_hex(12)
    for old in folder.glob("*.json"):
        if time.time() - old.stat().st_mtime > OLDEST:
            old.unlink(missing_ok=True)
    write_json(folder / f"{token}.json", {"files": [str(file) for file in files]}, "the uploaded files")
    return token


def stashed(token: str, settings: Settings) -> list[Path]:
    """The existing files stored under the key in an address; without a valid key, those that the caller chose before."""
    if not re.fullmatch("[0-9a-f]{24}", token):
        token = own_key()
    result = read_json(settings.home_dir / INBOX / f"{token}.json").get("files", [])
    return [Path(file) for file in result if isinstance(file, str) and Path(file).is_file()]
