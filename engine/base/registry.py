"""The bases on this machine: those bundled with the program and those that the user added.

    <assets>/models   bundled with the program; read-only
    <home>/models     added by `tailormt base add`, or copied there by hand
A base is referred to by its folder's name there (en-zh), by the path of any folder, or by the hub id that it was fetched from.
A new base is copied under a temporary name, checked as a whole and renamed, so that no incomplete base is ever listed.
"""

from __future__ import annotations

import contextlib
import datetime
import difflib
import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from engine.base.files import read_json
from engine.base.metadata import knows, read_card
from engine.base.quality import Score, card_scores
from engine.core.json_object import Json
from engine.core.languages import language_message
from engine.core.model_card import read_card_file
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.errors import InputError, MissingError, ModelError, TailorError, storage_errors
from engine.messages import Message

if TYPE_CHECKING:
    from engine.store import Store

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
ORIGIN = "origin.json"
STALE = 24 * 3600  # seconds after which the remains of a killed `base add` are removed


@dataclass(frozen=True)
class BaseEntry:
    """One installed base."""

    name: str
    folder: Path
    shipped: bool

    @cached_property
    def origin(self) -> Json:
        """Where it was added from: `origin` (hub id or folder), `revision`, `added`, `fingerprint`; empty if unknown."""
        with contextlib.suppress(ModelError):
            return read_json(self.folder / ORIGIN)
        return {}

    @property
    def scores(self) -> list[Score]:
        """The quality scores on its card."""
        return card_scores(read_card_file(self.folder).body)

    def card(self) -> Json:
        """`read_card` of the folder, with its `name`, `shipped` and `origin`. Raises ModelError."""
        return read_card(self.folder) | {
            "name": self.name,
            "path": str(self.folder),
            "shipped": self.shipped,
            "origin": str(self.origin.get("origin", "")),
        }


class BaseRegistry:
    """The bases of one installation and one data folder."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @property
    def folder(self) -> Path:
        """The folder of added bases."""
        return self.settings.home_dir / "models"

    def entries(self) -> list[BaseEntry]:
        """All installed bases, bundled ones first; a bundled base hides an added one of the same name."""
        result: dict[str, BaseEntry] = {}
        for root, shipped in ((self.settings.assets_dir / "models", True), (self.folder, False)):
            for folder in sorted(root.iterdir()) if root.is_dir() else ():
                if folder.is_dir() and not folder.name.startswith("."):
                    result.setdefault(folder.name, BaseEntry(folder.name, folder, shipped))
        return list(result.values())

    def cards(self) -> list[Json]:
        """Cards of all usable bases; other folders are skipped."""
        results = []
        for entry in self.entries():
            with contextlib.suppress(ModelError):
                results.append(entry.card())
        return results

    def default(self, source: str, target: str, *, added_first: bool = False) -> Path:
        """The first base that translates in that direction; `added_first`: before bundled ones. Raises MissingError."""
        for entry in sorted(self.entries(), key=lambda entry: added_first and entry.shipped):
            if knows(entry.folder, source, target):
                return entry.folder
        raise MissingError(
            "No installed base translates from {source} to {target}. Specify one with --base, or add one "
            "with `tailormt base add`; `tailormt base list` shows those installed.",
            source=language_message(source),
            target=language_message(target),
        )

    def find(self, name: str | Path, *, download: bool = False) -> Path:
        """The folder of a base given by folder, short name or hub id.

        With `download`, a hub id that is not on this machine is fetched into the registry. Raises MissingError if it is not
        here, saying which files to put where.
        """
        text = str(name).strip()
        path = Path(text).expanduser()
        if (path / "config.json").exists():
            return path
        for entry in self.entries():
            if text in (entry.name, entry.origin.get("origin")):
                return entry.folder
        if path.exists() or path.is_absolute() or text.startswith((".", "~")) or not text:
            return path  # the reader of its config reports what is wrong
        if HUB_ID.fullmatch(text):
            cached = in_hub_cache(text)
            if cached:
                return cached
            if download:
                return self.add(text).folder
            short = text.rpartition("/")[2]
            from engine.base.download import NEEDED

            raise MissingError(
                "The base {text} is not on this machine. With a connection, fetch it with `tailormt base add "
                "{text}`; without one, copy its files ({needed}) into {folder}.",
                text=text, needed=NEEDED, folder=self.folder / short,
            )  # fmt: skip
        names = [entry.name for entry in self.entries()]
        near = difflib.get_close_matches(text, names, n=1)
        hint = (
            Message("Did you mean {name}?", name=near[0])
            if near
            else Message("Available: {names}.", names=", ".join(names) or "none")
        )
        raise MissingError(
            "There is no base {text}: it is neither a folder nor the name of an installed base. {hint}", text=text, hint=hint
        )

    # -- adding

    def add(
        self, source: str, *, name: str = "", revision: str = "", convert: bool = False, progress: Progress | None = None
    ) -> BaseEntry:
        """Check a folder or fetch a hub id, and add it under `name` (by default the name of the folder or repository).

        `convert` allows pickled weights: torch reads them as weights only, which runs no code, and they are stored as
        safetensors. Raises ModelError if it is not a usable base, MissingError if offline, StorageError if the disk is full,
        InputError if the name is taken; then nothing is left behind.
        """
        from engine.base import download as fetch

        progress = progress or Progress()
        path = Path(source).expanduser()
        local = path.exists() or not HUB_ID.fullmatch(source)
        name = name or (path.resolve().name if local else source.rpartition("/")[2])
        self._check_name(name)
        with self._staging(name) as staging:
            if local:
                if revision:
                    raise InputError("A revision can be given for a hub id only, not for a folder.")
                origin = {"origin": str(path.resolve()), "revision": ""}
                fetch.copy(path, staging, convert, progress)
            else:
                origin = {"origin": source, "revision": fetch.download(source, revision, staging, convert, progress)}
            progress.begin("Checking the base", 1, 2)
            try:
                pickled = fetch.convert_weights(staging) if convert else False
                fingerprint = fetch.prove(staging, name)
            except TailorError as error:  # users know their folder, not where its copy is
                raise type(error)(error.message.naming(str(staging), source)) from error
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            record = {**origin, "added": now, "converted": pickled, "fingerprint": fingerprint}
            (staging / ORIGIN).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            staging.chmod(0o755)
            staging.rename(self.folder / name)
        return BaseEntry(name, self.folder / name, False)

    def _check_name(self, name: str) -> None:
        if not NAME.fullmatch(name):
            raise InputError(
                "{name!r} is not a valid name for a base. Use letters, digits, dots and hyphens, such as opus-mt-en-de.", name=name
            )
        existing = next((entry for entry in self.entries() if entry.name == name), None)
        if existing:
            raise InputError(
                "There is already a base {name} in {folder}. Choose another name with --name, or remove it first.",
                name=name,
                folder=existing.folder,
            )

    @contextlib.contextmanager
    def _staging(self, name: str) -> Iterator[Path]:
        """A temporary folder that is not listed, beside the bases; removed at the end unless it was renamed."""
        with storage_errors("the base", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            for old in self.folder.glob(".*.tmp"):  # of a process that was killed
                if time.time() - old.stat().st_mtime > STALE:
                    shutil.rmtree(old, ignore_errors=True)
            staging = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".tmp", dir=self.folder))
            try:
                yield staging
            finally:
                shutil.rmtree(staging, ignore_errors=True)

    # -- removing

    def users(self, entry: BaseEntry, store: Store | None = None) -> list[str]:
        """What uses a base: projects by their base, plugins by its fingerprint, in words such as `the project Novels`.

        With a `store` that was opened for a user, only what that user may see.
        """
        if store is None:
            from engine.store import Store as Opened

            store = Opened(self.settings.store_url)
        names = {entry.name, str(entry.folder), entry.origin.get("origin")}
        projects = [p for p in store.projects.list() if p.base in names or Path(p.base) == entry.folder]
        mark = entry.origin.get("fingerprint")
        plugins = [p for p in store.plugins.list() if mark and p.base_fingerprint == mark]
        return [f"the project {p.name}" for p in projects] + [f"the plugin {p.name}" for p in plugins]

    def remove(self, name: str, *, force: bool = False) -> int:
        """Remove an added base; returns the bytes freed.

        Raises InputError if there is no such base or it is bundled with the program, and, without `force`, if a project or
        plugin uses it.
        """
        entry = next((entry for entry in self.entries() if entry.name == name), None)
        if entry is None:
            raise InputError("No base {name} is installed; see `tailormt base list`.", name=name)
        if entry.shipped:
            raise InputError("The base {name} is bundled with the program and cannot be removed.", name=name)
        users = self.users(entry) if not force else []
        if users:
            more = Message(" and {count} more", count=len(users) - 3) if len(users) > 3 else ""
            raise InputError(
                "The base {name} is used by {users}{more}, which cannot work without it. Use --force to "
                "remove it anyway.",
                name=name, users=", ".join(users[:3]), more=more,
            )  # fmt: skip
        size = sum(file.stat().st_size for file in entry.folder.rglob("*") if file.is_file() and not file.is_symlink())
        with storage_errors("the base", entry.folder):
            if entry.folder.is_symlink():
                entry.folder.unlink()
                return 0
            gone = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".tmp", dir=self.folder))
            entry.folder.rename(gone / name)  # hides it from other processes at once; the files follow
            shutil.rmtree(gone)
        return size


def in_hub_cache(name: str) -> Path | None:
    """The folder of a hub id in the hub's shared cache, filled by other programs; None if it is not there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError):
        return None
    return folder if (folder / "config.json").exists() else None
