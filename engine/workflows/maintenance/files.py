"""Checks of the data folder and the store of artefacts: unreferenced files, damage, leftovers of a crash."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.core.settings import Settings
from engine.store import Store
from engine.store.project_files import finish_deletions
from engine.store.sharing.garbage_collection import mend, verify
from engine.workflows.maintenance.finding import Finding

LOST = "lost+found"
OLD = 3600.0  # seconds after which a temporary file is no longer being written
TEMPORARY = re.compile(r"^\..*\.tmp$|\.tmp$|^\.unpacking-|^\.deleted-\d+-|\.restoring-")


def checksums(settings: Settings, store: Store) -> Iterator[Finding]:
    """Artefacts whose bytes differ from those published. A repair raises OSError if there is no good copy."""
    for wrong in verify(settings, store):
        where, local = wrong["where"], not settings.artefacts
        if local and wrong["problem"] == "gone":
            continue  # removed by the user, or reported with its row
        if local and not where.endswith((".zip", ".safetensors")):
            continue  # decisions and settings change without a job; files with weights do not

        def repair(wrong=wrong) -> str:  # type: ignore[no-untyped-def]
            if mend(settings, store, wrong):
                return "The artefact was published again from the data folder."
            raise OSError("no good copy is in this data folder; run this where one is, or do its step again")

        yield Finding(
            "checksums", f"The artefact {where} is {wrong['problem']}"
            + (" since its job ended" if local else f" in {settings.artefacts}")
            + ". Restore it from a backup, or repeat its step.",
            where, None if local else repair,
        )  # fmt: skip


def unnamed(settings: Settings, store: Store) -> Iterator[Finding]:
    """Folders of projects, logs of jobs, bundles and artefacts that no row refers to."""
    home = settings.home_dir
    numbers = {str(row.id) for row in store.projects.list()}
    jobs = {str(row.id) for row in store.jobs.list()}
    for folder in sorted((home / "projects").glob("*")):
        if folder.is_dir() and folder.name.isdigit() and folder.name not in numbers:
            yield Finding(
                "unnamed", f"{folder} belongs to no project. Review its contents, then remove it.", str(folder), _away(home, folder)
            )
    for path in sorted((home / "jobs").glob("*")):
        if path.stem.isdigit() and path.stem not in jobs:
            yield Finding("unnamed", f"{path} belongs to no job and can be removed.", str(path), _away(home, path))
    named = {os.path.realpath(row.path) for row in store.plugins.list()}
    busy = {row.project_id for row in store.jobs.list(states=["running"])}
    for bundle in sorted((home / "projects").glob("*/plugins/*.zip")):
        owner = bundle.parent.parent.name
        if owner in numbers and int(owner) not in busy and os.path.realpath(bundle) not in named:
            yield Finding(
                "unnamed",
                f"{bundle} is not a plugin of project {owner}. Import it, or remove it.",
                str(bundle),
                _away(home, bundle),
            )
    if settings.artefacts:
        from engine.store.sharing.garbage_collection import collect

        idle = collect(settings, store, dry_run=True)
        if idle.blobs or idle.leftovers:
            yield Finding(
                "unnamed", f"{idle.blobs:,} artefacts of {idle.bytes / 1e6:,.1f} MB and {idle.leftovers} leftovers in "
                f"{settings.artefacts} are no longer referenced. Run `tailormt artefacts collect`.", settings.artefacts,
                lambda: f"{collect(settings, store).blobs:,} artefacts were removed.",
            )  # fmt: skip


def _away(home: Path, path: Path) -> Callable[[], str]:
    """A repair that moves a file or folder to where a person can inspect it."""

    def move() -> str:
        target = home / LOST / path.relative_to(home)
        number = 2
        while target.exists():
            target = target.with_name(f"{path.name}-{number}")
            number += 1
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)
        return f"It was moved to {target}."

    return move


def leftovers(settings: Settings, store: Store) -> Iterator[Finding]:
    """Unfinished files of a killed program, which nothing reads."""
    home, now = settings.home_dir, time.time()
    for parent, folders, names in os.walk(home):
        if Path(parent) == home:
            folders[:] = [name for name in folders if name not in (LOST, "artefacts")]
        for name in [*folders, *names]:
            path = Path(parent, name)
            if not TEMPORARY.search(name) or path.is_symlink():
                continue
            if name in folders:
                folders.remove(name)
            try:
                young = now - path.stat().st_mtime < OLD
            except FileNotFoundError:
                continue
            if not young and not name.startswith(".deleted-"):
                yield Finding("leftovers", f"{path} is incomplete and can be removed.", str(path), _remove(path))
            elif name.startswith(".deleted-"):
                yield Finding(
                    "leftovers", f"{path} is left from an interrupted deletion. Restart the studio to complete it.", str(path),
                    lambda: _finish(settings, store),
                )  # fmt: skip


def _finish(settings: Settings, store: Store) -> str:
    finish_deletions(settings, store)
    return "The deletion was finished."


def _remove(path: Path) -> Callable[[], str]:
    def remove() -> str:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return f"{path} was removed."

    return remove
