"""The studio's background worker: started if none is running, it continues after the studio has ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from engine.core.atomic_files import read_json, write_json
from engine.core.settings import Settings
from engine.errors import StorageError, storage_errors
from engine.jobs.processes import end_tree, running, spawn

STARTING_SECONDS = 30.0  # for a new worker to register in the store
STOPPING_SECONDS = 15.0


def start_background_worker(settings: Settings, *, kinds: Sequence[str] = ()) -> int | None:
    """Start a worker for the store of `settings` unless one is running; returns its process id, or None if one was running.

    It runs in a separate session, writes to `<home>/worker.log`, and continues when this process ends. If two start at the
    same time, the second to register in the store ends. Raises StorageError if the home folder or the store cannot be
    written or the process cannot be started; InputError if the store cannot be opened.
    """
    from engine.jobs.worker import worker_alive
    from engine.store import Store

    store = Store(settings.store_url)
    alive = any(worker_alive(row) for row in store.workers.list())
    address = store.address
    store.close()
    if alive or _starting(settings, address):
        return None
    log = settings.home_dir / "worker.log"
    arguments = ["--background", *(word for name in kinds for word in ("--kinds", name))]
    with storage_errors("the worker's log", log):
        try:
            process = spawn("engine.jobs.worker", arguments, {"settings": settings.to_mapping()}, log)
        except BlockingIOError as error:
            raise StorageError("The worker could not be started: {strerror}.", strerror=error.strerror) from error
        assert process.stdin is not None
        process.stdin.close()
    write_json(_file(settings), {"pid": process.pid, "store": address, "started": time.time()}, "the worker's number")
    process.returncode = 0  # it outlives this process: suppresses the warning about a running child
    return process.pid


def stop_background_worker(settings: Settings) -> bool:
    """Stop the worker that `start_background_worker` started; its jobs are interrupted. Returns False if there is none."""
    import psutil

    pid = read_json(_file(settings)).get("pid")
    _file(settings).unlink(missing_ok=True)
    if not pid or not _is_worker(pid):
        return False
    psutil.Process(pid).terminate()
    deadline = time.monotonic() + STOPPING_SECONDS
    while running(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    if running(pid):
        end_tree(pid)
    return True


def _starting(settings: Settings, address: str) -> bool:
    """Whether a worker for this store was started recently and may not have registered yet."""
    note = read_json(_file(settings))
    young = 0 <= time.time() - float(note.get("started", 0)) < STARTING_SECONDS
    return note.get("store") == address and young and _is_worker(int(note.get("pid", 0)))


def _is_worker(pid: int) -> bool:
    import psutil

    try:
        return running(pid) and "engine.jobs.worker" in psutil.Process(pid).cmdline()
    except psutil.Error:
        return False


def _file(settings: Settings) -> Path:
    return settings.home_dir / "worker.json"
