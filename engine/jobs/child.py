"""The process of one job: `python -m engine.jobs.child JOB_ID` or an equivalent fork, started only by a worker.

It ends with its job and so frees all memory. It also ends with its worker: the pipe on stdin closes, the work stops at its
next check, or after ORPHAN_SECONDS by force, and the job is interrupted and can be resumed. A worker that shuts down normally
writes STOP to the pipe first. Otherwise the worker was lost, and that counts as an attempt.
"""

from __future__ import annotations

import datetime
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.core.cores import share_cores
from engine.core.logging_setup import set_up_logs
from engine.core.oom import out_of_memory
from engine.core.remote_map import use_remote_mapper
from engine.core.settings import Settings
from engine.errors import Cancelled, InputError, StorageError, TailorError
from engine.jobs.backends import remote_mapper_for
from engine.jobs.paths import job_workspace
from engine.jobs.processes import STOP, end_tree, receive
from engine.jobs.progress import RowProgress, StopReason, plain
from engine.jobs.registry import JobContext, known_kinds
from engine.jobs.transient_errors import may_pass
from engine.messages import Message, mark, without_paths
from engine.store.records import JobRow, JobState

if TYPE_CHECKING:
    from engine.store import Store

ORPHAN_SECONDS = 10.0
WRITE_SECONDS = 600.0  # of retries to store the end of a job
OPENING_SECONDS = 60.0  # to wait for a database that is starting

STOPPED = mark(
    "The job was stopped before its end: the worker was stopped or the computer shut down. Resume it: finished steps "
    "and the last checkpoint are kept."
)
ORPHANED = mark("The worker ended while the job was running. Resume it: finished steps and the last checkpoint are kept.")


def main(arguments: list[str]) -> int:
    """Run the job with this id; returns 0 if its end, of any kind, was handled; 1 if it was not stored or not this attempt's."""
    faulthandler.enable()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    try:
        payload = receive()
    except EOFError as error:  # the worker was killed before it sent the job; another worker will claim it
        print(f"nothing was begun: {error}", file=sys.stderr, flush=True)
        return 1
    os.environ.update(payload.get("environment") or {})  # before any library detects GPUs
    share_cores(spin=False)  # it runs alongside the studio
    from engine.store import Store

    settings = Settings.from_mapping(payload["settings"])
    set_up_logs(settings.log_format, job=int(arguments[0]))
    store = Store(settings.store_url, wait=OPENING_SECONDS)
    job = store.jobs.get(int(arguments[0]))
    if job.state != JobState.RUNNING or job.attempt != payload["attempt"]:
        return 1
    moment = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    print(f"== job {job.id} ({job.kind}), attempt {job.attempt}, {moment}", flush=True)
    with RowProgress(store, job) as progress:
        _watch_worker(store, job, progress)
        _stop_on_signals(progress)
        end = _work(store, job, settings, progress, payload["kinds"])
        _ignore_signals()
    return 0 if _write(store, end) else 1


def _work(store: Store, job: JobRow, settings: Settings, progress: RowProgress, modules: list[str]) -> Callable[[], bool] | None:
    """Run the job; returns a function that stores its end, or None if the row belongs to another attempt."""
    jobs, key = store.jobs, (job.id, job.attempt)
    error: BaseException
    try:
        kinds = known_kinds(modules)
        if job.kind not in kinds:
            raise InputError("This version of Tailor MT has no kind of job called {kind}.", kind=job.kind)
        progress.gives_way_to = kinds[job.kind].gives_way_to
        with use_remote_mapper(remote_mapper_for(settings)):
            result = kinds[job.kind].do(JobContext(job, store, settings, job_workspace(settings, job), progress))
        _ignore_signals()
        return lambda: jobs.finish(*key, plain(result))
    except BaseException as caught:
        # A library may convert the signal's Cancelled to another error (lazy imports do), so the stop reason decides.
        if isinstance(caught, Cancelled) or progress.stop_reason is not None:
            print(f"stopped: {progress.stop_reason or caught}", flush=True)
            return _stopped(jobs, key, progress.stop_reason)
        error = caught
        sentence = (
            without_paths(caught.message)  # users see file names, not paths on the server
            if isinstance(caught, TailorError)
            else _sentence(caught, progress, job.id)
        )
    traceback.print_exception(error)
    if settings.job_retries and may_pass(error):
        return lambda: jobs.retry(*key, sentence, max_retries=settings.job_retries, seconds=settings.retry_seconds)
    return lambda: jobs.fail(*key, sentence)


def _stopped(jobs: Any, key: tuple[int, int], reason: StopReason | None) -> Callable[[], bool] | None:
    if reason == StopReason.LOST:
        return None
    if reason == StopReason.WORKER:
        return lambda: jobs.interrupt(*key, STOPPED)
    if reason == StopReason.TURN:
        return lambda: jobs.give_way(*key)
    if reason == StopReason.ORPHAN:
        return lambda: jobs.interrupt(*key, ORPHANED, lost=True)
    return lambda: jobs.cancelled(*key)


def _sentence(error: BaseException, progress: RowProgress, number: int) -> str:
    where = Message("before the first step")
    if progress.step:
        where = Message("in the step “{step}”", step=Message(progress.step))
    if out_of_memory(error):
        return Message(
            "There was not enough memory {where}. Halve tokens_per_batch and start again with the same "
            "samples; finished steps are not repeated. The log of job {number} has the details.",
            where=where,
            number=number,
        )
    return Message(
        "Something went wrong inside Tailor MT {where}: {kind}. The log of job {number} has the details.",
        where=where,
        kind=type(error).__name__,
        number=number,
    )


def _write(store: Store, end: Callable[[], bool] | None) -> bool:
    """Store the end of the job, retrying so that no work is lost to a busy database; returns whether it was stored."""
    if end is None:
        return True
    deadline = time.monotonic() + WRITE_SECONDS
    while True:
        try:
            end()
            return True
        except StorageError as error:
            logging.getLogger(__name__).warning("%s", error)
            if time.monotonic() > deadline:
                return False
            time.sleep(2)


def _watch_worker(store: Store, job: JobRow, progress: RowProgress) -> None:
    def watch() -> None:
        text = False
        while words := os.read(0, 1024):
            text = text or STOP in words
        progress.stop(StopReason.WORKER if text else StopReason.ORPHAN)
        time.sleep(ORPHAN_SECONDS)
        # The work has not checked for the stop, so only this thread can end it.
        try:
            store.jobs.interrupt(job.id, job.attempt, STOPPED if text else ORPHANED, lost=not text)
        finally:
            end_tree(os.getpid())

    threading.Thread(target=watch, name="worker-watch", daemon=True).start()


def _stop_on_signals(progress: RowProgress) -> None:
    def stop(number: int, frame: Any) -> None:
        progress.stop(StopReason.WORKER)
        raise Cancelled("The job's process was asked to stop.")

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _ignore_signals() -> None:
    """Ignore signals while the end of a job is stored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
