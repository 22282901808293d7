"""When workspaces are synchronised: at the start, during and at the end of a job, and continuously in the studio."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.errors import StorageError, TailorError
from engine.store.records import JobRow
from engine.store.sharing.blob_store import Changed, open_blobs
from engine.store.sharing.workspace_sync import WorkspaceSync

if TYPE_CHECKING:
    from engine.store import Store
    from engine.store.sharing.blob_store import BlobStore

LOOK_SECONDS = 1.0  # between two checks by the studio
SETTLING_SECONDS = 30.0  # for which files may keep changing at the end of a job

log = logging.getLogger(__name__)

_shares: weakref.WeakKeyDictionary[Store, Sharing] = weakref.WeakKeyDictionary()


def tree_of(settings: Settings, store: Store, blobs: BlobStore | None, project_id: int | None, job_id: int = 0) -> WorkspaceSync:
    """The workspace of a project, or of a job without a project."""
    name = f"projects/{project_id}" if project_id is not None else f"jobs/{job_id}"
    return WorkspaceSync(settings.home_dir / name, name, store, blobs, project_id)


@contextlib.contextmanager
def working(settings: Settings, store: Store, job: JobRow, progress: Progress | None = None) -> Iterator[None]:
    """Fetch a job's workspace at the start of the block and publish it regularly during the block and at the end.

    A job that fails or is stopped also publishes its files, so that another machine can continue. Raises StorageError if the
    artefact store cannot be reached at the start or the end.
    """
    blobs = open_blobs(settings)
    tree = tree_of(settings, store, blobs, job.project_id, job.id)
    if blobs is not None:
        if progress is not None:
            progress.begin("Fetching the project's files")
        tree.pull()
    done = threading.Event()
    beside = threading.Thread(
        target=_publish_now_and_then, args=(tree, done, settings.artefacts_seconds), name="artefacts", daemon=True
    )
    if blobs is not None:
        beside.start()
    try:
        yield
    except BaseException:
        done.set()
        if blobs is not None:
            with contextlib.suppress(TailorError, OSError, Changed):
                beside.join()
                tree.push()
        raise
    done.set()
    if blobs is not None:
        beside.join()
    publish(tree)


def publish(tree: WorkspaceSync) -> None:
    """Publish the files of a finished job. Raises StorageError, but only logs a warning if there is no artefact store."""
    if tree.blobs is None:
        try:
            tree.push()
        except (TailorError, OSError, Changed) as error:
            log.warning("The files of %s could not be noted: %s", tree.name, error or "they keep changing")
        return
    deadline = time.monotonic() + SETTLING_SECONDS
    while True:
        try:
            tree.push()
            return
        except Changed:
            if time.monotonic() > deadline:
                raise StorageError(
                    "The files in {folder} kept changing, so they could not be published. Resume the job.", folder=tree.folder
                ) from None
            time.sleep(0.2)


def _publish_now_and_then(tree: WorkspaceSync, done: threading.Event, seconds: float) -> None:
    while not done.wait(seconds):
        try:
            if tree.changed():
                tree.push()
        except Changed:
            continue
        except (TailorError, OSError) as error:  # retried at the next check, and reported at the end
            log.warning("%s", error)


class Sharing:
    """The studio's synchronisation: publishes changes in its data folder and fetches files that workers publish."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.blobs = open_blobs(settings)
        self._own: Store | None = None
        self._stop = threading.Event()
        self._turn = threading.Lock()

    def start(self) -> None:
        """Synchronise all projects in a background thread, if there is an artefact store."""
        if self.blobs is not None:
            threading.Thread(target=self._run, name="artefacts", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def publish(self, project_id: int) -> None:
        """Publish a project's files, so that a job queued next finds them. Raises StorageError."""
        if self.blobs is not None:
            with self._turn:
                tree = tree_of(self.settings, self.store, self.blobs, project_id)
                if tree.folder.is_dir() and tree.changed():
                    publish(tree)

    def look(self) -> int:
        """Synchronise all projects once; returns the number of files fetched, published or removed."""
        from engine.store import Store

        assert self.blobs is not None
        if self._own is None:  # a connection that can read all projects, regardless of the current user
            self._own = Store(self.settings.store_url)
        store, count = self._own, 0
        versions = store.artefacts.versions()
        for row in store.projects.list():
            with self._turn:
                tree = tree_of(self.settings, store, self.blobs, row.id)
                if versions.get(tree.name, 0) != tree.version:
                    count += tree.pull()
                if tree.folder.is_dir() and tree.changed():
                    with contextlib.suppress(Changed):
                        count += tree.push()
        return count

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self.look()
            except (TailorError, OSError, Changed) as error:
                log.warning("%s", error)
                self._stop.wait(5 * LOOK_SECONDS)


def share_of(settings: Settings, store: Store) -> Sharing:
    """The `Sharing` of an open store; projects are then published before their jobs are queued."""
    result = _shares.get(store)
    if result is None:
        result = _shares[store] = Sharing(settings, store)
    return result


def before_queueing(store: Store, project_id: int | None) -> None:
    """Publish a project's files before one of its jobs is queued, if the store has a `Sharing`."""
    result = _shares.get(store)
    if result is not None and project_id is not None:
        result.publish(project_id)
