"""Listing and verifying the artefact store, and removing unreferenced blobs."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.store.sharing.blob_store import BlobStore, open_blobs
from engine.store.sharing.workspace_sync import WorkspaceSync

if TYPE_CHECKING:
    from engine.store import Store


def named(store: Store) -> dict[str, tuple[int, list[str]]]:
    """{SHA-256: (bytes, paths)} of all files referenced by rows."""
    result: dict[str, tuple[int, list[str]]] = {}
    for row in store.artefacts.list():
        for path, (sha, size) in row.files.items():
            result.setdefault(sha, (size, []))[1].append(f"{row.workspace}/{path}")
    return result


def listing(settings: Settings, store: Store) -> dict[str, Any]:
    """A summary of the published files of each workspace and of the artefact store."""
    blobs = open_blobs(settings)
    rows = [
        {"workspace": row.workspace, "files": len(row.files), "bytes": row.bytes, "version": row.version,
         "changed": row.changed.isoformat(timespec="seconds")}
        for row in store.artefacts.list()
    ]  # fmt: skip
    result: dict[str, Any] = {"store": blobs.url if blobs else f"{settings.home_dir} (in place)", "workspaces": rows}
    if blobs is not None:
        selected = list(blobs.all())
        referenced = named(store)
        idle = [blob for blob in selected if blob.name not in referenced]
        result |= {"blobs": len(selected), "bytes": sum(blob.bytes for blob in selected)}
        result |= {"unnamed": len(idle), "unnamed_bytes": sum(blob.bytes for blob in idle)}
    return result


def verify(settings: Settings, store: Store, progress: Progress | None = None) -> list[dict[str, str]]:
    """Read every referenced artefact; returns the problems as {"artefact", "where", "problem"}.

    In a separate store, each blob is compared with its name; in the data folder, each file with its recorded hash.
    """
    progress, blobs, wrong = progress or Progress(), open_blobs(settings), []
    if blobs is None:
        rows = store.artefacts.list()
        progress.begin("Reading artefacts")
        for number, row in enumerate(rows):
            tree = WorkspaceSync(settings.home_dir / row.workspace, row.workspace, store, None)
            for path, entry, why in tree.missing(row):
                wrong.append({"artefact": entry.sha256, "where": f"{row.workspace}/{path}", "problem": why})
            progress.advance(number + 1, len(rows))
        return wrong
    referenced = named(store)
    progress.begin("Reading artefacts")
    for number, (name, (_, paths)) in enumerate(sorted(referenced.items())):
        if not blobs.is_intact(name):
            wrong.append({"artefact": name, "where": paths[0], "problem": "gone" if blobs.look(name) is None else "changed"})
        progress.advance(number + 1, len(referenced))
    return wrong


@dataclass(frozen=True)
class Collected:
    """What a garbage collection removed, or would remove in a dry run."""

    blobs: int = 0
    bytes: int = 0
    leftovers: int = 0
    young: int = 0  # unreferenced, but a publication may be in progress
    names: list[str] = field(default_factory=list, repr=False)

    def to_mapping(self) -> dict[str, object]:
        return dict(vars(self))


def collect(settings: Settings, store: Store, *, dry_run: bool = False, hours: float | None = None) -> Collected:
    """Remove unreferenced blobs that are older than `hours` (default: the settings' value). Raises StorageError.

    Younger ones are kept, since a publisher sends its blobs before it references them.
    """
    blobs = open_blobs(settings)
    if blobs is None:
        return Collected()
    limit = 3600 * (settings.artefacts_keep_hours if hours is None else hours)
    selected = list(blobs.all())
    referenced = named(store)  # after the listing, to include new references
    idle = [blob for blob in selected if blob.name not in referenced]
    old = [blob for blob in idle if blob.age >= limit]
    crumbs = [position for position, age in blobs.leftovers() if age >= limit]
    if not dry_run:
        for blob in old:
            blobs.remove(blob.name)
        for position in crumbs:
            blobs.remove(position)
    return Collected(len(old), sum(blob.bytes for blob in old), len(crumbs), len(idle) - len(old), [blob.name for blob in old])


def mend(settings: Settings, store: Store, wrong: Mapping[str, str]) -> bool:
    """Restore an artefact that `verify` reported from the data folder; returns whether it succeeded."""
    blobs, name = open_blobs(settings), wrong["artefact"]
    if blobs is None:
        return False
    for row in store.artefacts.list():
        for path, (sha, size) in row.files.items():
            source = Path(settings.home_dir, row.workspace, path)
            if sha != name or not source.is_file() or source.stat().st_size != size:
                continue
            with contextlib.suppress(Exception), source.open("rb") as file:
                _replace(blobs, source, file, size, name)
                if blobs.is_intact(name):
                    return True
    return False


def _replace(blobs: BlobStore, source: Path, file: Any, size: int, name: str) -> None:
    if hashlib.file_digest(file, "sha256").hexdigest() == name:  # the local file is intact
        blobs.remove(name)
        blobs.put(source, file, size, name)
