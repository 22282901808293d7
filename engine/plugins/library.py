"""The plugins of a project: importing, renaming, versioning, exporting and deleting."""

from __future__ import annotations

import contextlib
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.core.atomic_files import atomic_write
from engine.core.settings import Settings
from engine.errors import BundleError, InputError, OptionError, storage_errors
from engine.methods import get_method
from engine.plugins.bundle import PARTS, damage, open_bundle, read_bundle_card, read_config
from engine.plugins.import_checks import check_bundle

if TYPE_CHECKING:
    from engine.store import PluginRow, ProjectRow, Store

LONGEST = 120  # characters of a name


@dataclass(frozen=True)
class Versions:
    """A plugin as the user sees it: all bundles of one name, newest first."""

    name: str
    rows: tuple[PluginRow, ...]

    @property
    def newest(self) -> PluginRow:
        return self.rows[0]

    @property
    def older(self) -> tuple[PluginRow, ...]:
        return self.rows[1:]

    def number(self, row: PluginRow) -> int:
        """The version's number; 1 is the oldest that exists."""
        return len(self.rows) - self.rows.index(row)


def by_name(rows: Sequence[PluginRow]) -> list[Versions]:
    """The plugins of rows sorted newest first; a plugin takes the position of its newest version."""
    groups: dict[str, list[PluginRow]] = {}
    for row in rows:
        groups.setdefault(row.name, []).append(row)
    return [Versions(name, tuple(group)) for name, group in groups.items()]


class Library:
    """Operations on the plugins of projects: rows in the store and bundles in the projects' folders."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store, self.settings = store, settings

    def folder(self, project_id: int) -> Path:
        """The folder of a project's bundles, created if missing."""
        folder = self.settings.home_dir / "projects" / str(project_id) / "plugins"
        with storage_errors("the project's folder", folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    # -- importing

    def take_in(self, project: ProjectRow, file: Path, shown: str = "", *, move: bool = False) -> PluginRow:
        """Copy (or move) a checked bundle into the project and register it; `shown` is the displayed file name."""
        card = read_bundle_card(file)
        with reserved_path(self.folder(project.id), Path(shown or file.name).stem) as target:
            if move:
                with storage_errors("the plugin", target):
                    file.replace(target)
            else:
                with atomic_write(target, "the plugin") as temporary:
                    shutil.copyfile(file, temporary)
            return self.store.plugins.create(
                project.id,
                str(card["name"]) or target.stem,
                method=str(card["method"]),
                path=str(target),
                base_fingerprint=str(card["base_fingerprint"]),
                metrics=card["metrics"],
                imported=True,
            )

    def import_bundle(self, project: ProjectRow, file: str | Path, base: Callable[[], BaseModel]) -> PluginRow:
        """Check a bundle against the project and add it. Raises BundleError with the sentence of the failed check."""
        checks = check_bundle(
            file, base=base, direction=(project.source, project.target), cache=self.settings.home_dir / "unpacked",
            shown=Path(file).name,
        )  # fmt: skip
        for check in checks:
            if not check.ok:
                raise BundleError(check.sentence)
        return self.take_in(project, Path(file))

    # -- names, tags, versions

    def versions(self, project_id: int) -> list[Versions]:
        """The plugins of a project, sorted by newest version."""
        return by_name(self.store.plugins.list(project_id))

    def rename(self, project_id: int, name: str, new: str) -> None:
        """Rename a plugin with all its versions. If the name is taken, both become versions of one plugin.

        Raises InputError on an empty name, or if there is no plugin with the old name.
        """
        new = " ".join(new.split())[:LONGEST]
        if not new:
            raise InputError("A plugin needs a name.")
        rows = [row for row in self.store.plugins.list(project_id) if row.name == name]
        if not rows:
            raise InputError("There is no plugin named {name} any more. Reload the page.", name=name)
        for row in rows:
            self.store.plugins.update(row.id, name=new)

    def tag(self, project_id: int, name: str, tags: Sequence[str]) -> list[str]:
        """Replace the tags of all versions of a plugin; returns them as stored."""
        selected: list[str] = []
        for row in self.store.plugins.list(project_id):
            if row.name == name:
                selected = self.store.tags.set(row.id, tags)
        return selected

    # -- exporting and deleting

    def export(self, row: PluginRow, output: Path, *, with_phrases: bool = True) -> None:
        """Copy a bundle under the plugin's current name; `with_phrases=False` omits the user's texts.

        Raises OptionError if its method needs them, InputError if the bundle is missing, BundleError, StorageError.
        """
        from engine.plugins.repack import repack

        repack(present(row), output, with_phrases=with_phrases, name=row.name)

    def needs_texts(self, row: PluginRow) -> bool:
        """Whether the plugin's method reads the samples' texts, so that its bundle needs them."""
        return needs_texts(Path(row.path))

    def delete(self, row: PluginRow) -> None:
        """Delete a plugin, with its bundle if that is in the project's folder."""
        self.store.plugins.delete(row.id)
        path = Path(row.path).resolve()
        if path.is_relative_to(self.folder(row.project_id).resolve()):
            with storage_errors("the plugin", path):
                path.unlink(missing_ok=True)

    # -- blending

    def blend(
        self, project: ProjectRow, name: str, weights: Mapping[int, float], base: BaseModel | None = None, progress: Any = None
    ) -> PluginRow:
        """Create a blend of plugins of the project, {number: weight}, and register it. Raises as `make_blend` does."""
        from engine.plugins.blend import Part, make_blend

        rows = [self.store.plugins.get(number) for number in weights]
        strange = next((row for row in rows if row.project_id != project.id), None)
        if strange is not None:
            raise InputError("{strange} belongs to another project. Import it into this project first.", strange=strange.name)
        parts = [Part(present(row), weights[row.id], row.name) for row in rows]
        with reserved_path(self.folder(project.id), name) as target:
            card = make_blend(target, name, parts, base=base, progress=progress)
        return self.store.plugins.create(
            project.id, str(card["name"]), method=str(card["method"]), path=str(target),
            base_fingerprint=str(card["base_fingerprint"]), metrics={},
        )  # fmt: skip


def present(row: PluginRow) -> Path:
    """The path of a plugin's bundle. Raises InputError if it no longer exists."""
    if not row.exists:
        raise InputError("The bundle of {row} no longer exists. Train it again or import it.", row=row.name)
    return Path(row.path)


def needs_texts(path: Path) -> bool:
    """Whether a bundle's method, or one in a blend, reads the samples' texts. Raises BundleError."""
    with open_bundle(path) as bundle:
        cards = [read_config(path, bundle)]
        for name in (name for name in PARTS if name in bundle.namelist()):
            with damage(path, name), bundle.open(name) as file, zipfile.ZipFile(file) as part:
                cards.append(read_config(path / name, part))
    for card in cards:
        try:
            if get_method(str(card.get("method"))).capabilities.needs_texts:
                return True
        except OptionError:
            continue
    return False


@contextlib.contextmanager
def reserved_path(folder: Path, name: str) -> Iterator[Path]:
    """A unique file name for a bundle, reserved within the block: letters of any script and digits, otherwise hyphens."""
    stem = re.sub(r"[\W_]+", "-", name.lower()).strip("-")[:60] or "plugin"
    path, number = folder / f"{stem}.zip", 2
    with storage_errors("the plugin", folder):
        while True:
            try:
                path.touch(exist_ok=False)
                break
            except FileExistsError:
                path = folder / f"{stem}-{number}.zip"
                number += 1
    try:
        yield path
    except BaseException:
        path.unlink(missing_ok=True)
        raise
