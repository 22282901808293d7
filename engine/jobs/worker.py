"""The worker: a process that claims jobs from the queue, up to its number of slots, and monitors the process of each.

    run(load_settings())                  # until SIGTERM or Ctrl-C
    python -m engine.jobs.worker          # the same, from a shell; `--once` ends when the queue is empty

Several workers may serve one store, on one machine or on many: claiming a job is atomic. The jobs of a dead worker are
detected by any other worker, at its start and regularly while it runs.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engine.core.logging_setup import set_up_logs
from engine.core.settings import Settings, load_settings
from engine.errors import InputError, StorageError
from engine.jobs.backends import JobProcess, open_backend
from engine.jobs.heartbeat import HeartbeatMonitor, recent
from engine.jobs.paths import log_file
from engine.jobs.processes import HOST, end_tree, is_child, receive, running
from engine.jobs.slots import Slot
from engine.messages import Message, mark
from engine.store.records import JobRow, JobState, WorkerRow

if TYPE_CHECKING:
    from engine.store import Store

BEAT_SECONDS = 2.0
RECONCILE_SECONDS = 5.0
OPENING_SECONDS = 60.0  # to wait for a database that is starting
LOOK_SECONDS = 0.1
CANCEL_SECONDS = (0.8, 0.4)  # as the next two, if the user is waiting
GRACE_SECONDS = 5.0  # for a job to stop before it is signalled
FORCE_SECONDS = 2.0  # for it to stop after the signal
NEVER = 1e9  # seconds ago

LOST = mark("The job's worker ended while it was running. Resume it: finished steps and the last checkpoint are kept.")

log = logging.getLogger("engine.jobs.worker")


def run(
    settings: Settings,
    once: bool = False,
    *,
    poll: float = 0.5,
    kinds: Sequence[str] = (),
    alone: bool = False,
    stop: threading.Event | None = None,
) -> None:
    """Run jobs until asked to stop (SIGTERM, Ctrl-C, or the event `stop`).

    `once`: return when the queue is empty. `poll`: seconds between checks of an empty queue. `kinds`: dotted names
    of modules with further kinds of jobs in their KINDS. `alone`: return at once if another worker serves the store.
    Also ends when the file of the store is removed, which happens when the home folder is deleted.
    When stopped, running jobs are interrupted and can be resumed. Raises InputError or StorageError if the store
    cannot be opened.
    """
    stop = stop or threading.Event()
    with _signals(stop):
        _Worker(settings, list(kinds), stop, poll, lasting=not once).serve(once, alone)


def worker_alive(row: WorkerRow) -> bool:
    """Whether a worker appears to be alive: its heartbeat is recent and, on this machine, its process exists."""
    return recent(row.heartbeat) and (row.host != HOST or running(row.pid))


class _Worker:
    def __init__(self, settings: Settings, kinds: list[str], stop: threading.Event, poll: float, lasting: bool) -> None:
        from engine.store import Store

        self.settings, self.kinds, self.stop, self.poll = settings, kinds, stop, poll
        self.store: Store = Store(settings.store_url, wait=OPENING_SECONDS)
        self.pulses = HeartbeatMonitor()
        self.backend = open_backend(settings, lasting)
        self.name = f"{HOST}:{os.getpid()}:{secrets.token_hex(4)}"
        self.slots = self.backend.slots(settings)
        self.at_work: dict[int, Slot] = {}  # by job id
        self.threads: list[threading.Thread] = []
        self.change = threading.Event()  # set when a slot becomes free
        self.beat_at = self.reconciled_at = -NEVER

    def serve(self, once: bool, alone: bool) -> None:
        if not alone:
            self.store.workers.beat(self.name, HOST, os.getpid())
        elif not self.store.workers.register_alone(self.name, HOST, os.getpid(), worker_alive):
            log.info("another worker serves %s", self.store.address)
            return
        log.info("worker %s serves %s: %s", self.name, self.store.address, ", ".join(slot.name for slot in self.slots))
        try:
            while not self.stop.is_set() and not self.store.lost():
                self.change.clear()
                self.threads = [thread for thread in self.threads if thread.is_alive()]
                busy = bool(self.at_work)  # a job that ends now may unblock another in the queue
                with _patience():
                    self.beat()
                    self.reconcile()
                    busy = self.begin() or busy or (once and self.store.jobs.pausing())
                if once and not busy:
                    break
                self._rest(self.poll)
        finally:
            for thread in self.threads:
                thread.join()
            if self.store.lost():  # a write would create a new, empty file
                log.warning("%s was removed or replaced", self.store.address)
            else:
                with _patience():
                    self.store.workers.remove(self.name)
            self.backend.close()
            log.info("worker %s ends", self.name)

    def begin(self) -> bool:
        """Claim and start a job for each free slot, each monitored by a thread; returns whether there was any."""
        result, empty = False, set[tuple[str, ...]]()
        busy_slots = list(self.at_work.values())
        for slot in self.slots:
            if slot in busy_slots:
                busy_slots.remove(slot)
                continue
            job = None if slot.takes in empty else self.store.jobs.claim(self.name, devices=slot.takes)
            if job is None:
                empty.add(slot.takes)
                continue
            self.at_work[job.id] = slot
            thread = threading.Thread(target=self.run_job, args=(job, slot), name=f"job-{job.id}")
            thread.start()
            self.threads.append(thread)
            self.beat_at, result = -NEVER, True
        self.beat()
        return result

    def _rest(self, seconds: float) -> None:
        """Wait for this time, or until a slot is free or the worker should stop."""
        end = time.monotonic() + seconds
        while not self.stop.is_set() and not self.change.wait(min(LOOK_SECONDS, max(0.0, end - time.monotonic()))):
            if time.monotonic() >= end:
                return

    def beat(self) -> None:
        """Write this worker's heartbeat every BEAT_SECONDS."""
        if time.monotonic() - self.beat_at >= BEAT_SECONDS:
            self.beat_at = time.monotonic()
            self.store.workers.beat(self.name, HOST, os.getpid(), next(iter(self.at_work), None))

    def reconcile(self) -> None:
        """Mark jobs of dead workers as interrupted, queue interrupted jobs again, and remove dead workers."""
        if time.monotonic() - self.reconciled_at < RECONCILE_SECONDS:
            return
        self.reconciled_at = time.monotonic()
        workers = {row.name: row for row in self.store.workers.list(within=None)}
        living = {
            name
            for name, row in workers.items()
            if self.pulses.beating(name, row.heartbeat) and (row.host != HOST or running(row.pid))
        } - {self.name}
        watched: set[Hashable] = set(workers)

        def alive(job: JobRow) -> bool:
            # This worker's other jobs have ended, but their end could not be stored.
            if job.worker == self.name:
                return job.id in self.at_work
            watched.add((job.id, job.attempt))
            beating = self.pulses.beating((job.id, job.attempt), job.heartbeat)
            return job.worker in living or _job_alive(job, beating)

        for row in self.store.jobs.interrupt_stale(alive, LOST):
            log.warning("job %d was left behind by %s: %s", row.id, row.worker, row.state)
        max_retries, seconds = self.settings.job_retries, self.settings.retry_seconds
        for row in self.store.jobs.requeue(max_retries=max_retries, seconds=seconds):
            log.info("job %d goes on by itself: %s, attempt %d", row.id, row.state, row.attempt)
        for name in workers.keys() - living - {self.name}:
            self.store.workers.remove(name)
        self.pulses.forget(exclude=watched)

    def run_job(self, job: JobRow, slot: Slot) -> None:
        """Run one job in a separate process and make sure that its end is stored."""
        log.info("job %d (%s), attempt %d, begins on %s", job.id, job.kind, job.attempt, slot.name)
        path = log_file(self.settings, job.id)
        payload = {**slot.payload(self.settings), "kinds": self.kinds, "attempt": job.attempt}
        process = None
        try:
            try:
                process = self.backend.start(job, payload, path)
            except OSError as error:
                with _patience():
                    words = Message("The job's process could not be started: {error}.", error=error.strerror)
                    self.store.jobs.fail(job.id, job.attempt, words)
                return
            with _patience():
                self.store.jobs.started(job.id, job.attempt, pid=process.pid, log_path=str(path))
            self.watch(job, process)
        except Exception:
            log.exception("job %d cannot be watched", job.id)
        finally:
            if process is not None:
                process.end()
                self.finalize(job, process)
            self.at_work.pop(job.id, None)
            self.change.set()

    def watch(self, job: JobRow, process: JobProcess) -> None:
        """Wait for the process to end; end it if the job is cancelled or over, or the worker is stopped."""
        since: float | None = None
        patience = GRACE_SECONDS, FORCE_SECONDS
        text = False
        looked = -NEVER
        while process.poll() is None:
            now = time.monotonic()
            if self.stop.is_set():
                process.ask()
                since = since or now
            if since is None and now - looked >= 2 * LOOK_SECONDS:
                looked = now
                with _patience():
                    if (result := self.stop_deadline(job)) is not None:
                        since, patience = now, result
            if since is not None and now - since > patience[0] and not text:
                text = True
                process.terminate()
            if since is not None and now - since > sum(patience):
                process.end()
            process.wait(LOOK_SECONDS)

    def stop_deadline(self, job: JobRow) -> tuple[float, float] | None:
        """The seconds for the process to stop before and after a signal, if it should stop, else None."""
        try:
            row = self.store.jobs.get(job.id)
        except InputError:
            return CANCEL_SECONDS
        if row.cancel_requested and row.state == JobState.RUNNING:
            return CANCEL_SECONDS
        over = row.state != JobState.RUNNING or row.attempt != job.attempt
        return (GRACE_SECONDS, FORCE_SECONDS) if over else None

    def finalize(self, job: JobRow, process: JobProcess) -> None:
        """If the process did not store its end, mark the job as interrupted; failing that, `reconcile` does so later."""
        with _patience(), contextlib.suppress(InputError):  # the row may have been deleted
            row = self.store.jobs.get(job.id)
            if row.state == JobState.RUNNING and row.attempt == job.attempt:
                words = LOST if self.stop.is_set() else _last_words(process.poll() or 0, job.id)
                # A lost machine does not count as an attempt of the job.
                self.store.jobs.interrupt(job.id, job.attempt, words, lost=not self.stop.is_set() and not process.lost)
                row = self.store.jobs.get(job.id)
            if process.lost and row.state == JobState.INTERRUPTED and not self.stop.is_set():
                row = self.store.jobs.resume(job.id)  # on another machine
            self.reconciled_at = -NEVER
            log.info("job %d: %s", job.id, row.state)


def _last_words(code: int, number: int) -> str:
    after = Message(
        "Resume it: finished steps and the last checkpoint are kept. The log of job {number} has the details.", number=number
    )
    if code == -9:
        return Message(
            "The job's process was ended from outside, often because the machine ran out of memory. {after}", after=after
        )
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return Message("The job's process crashed or was ended from outside ({name}). {after}", name=name, after=after)
    return Message("The job's process ended without an error message (exit code {code}). {after}", code=code, after=after)


def _job_alive(job: JobRow, beating: bool) -> bool:
    """Whether a job without a worker is still running; kills its process if it has no heartbeat."""
    if job.worker.split(":")[0] != HOST:
        return beating
    if job.pid is None or not is_child(job.pid, job.id):
        return False
    if not beating:
        end_tree(job.pid)
    return beating  # a process that has lost its worker stops and stores its end itself


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    """Log StorageErrors, so that a busy database does not end the worker."""
    try:
        yield
    except StorageError as error:
        log.warning("%s", error)
        time.sleep(1)


@contextlib.contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and Ctrl-C set `stop`. Only the main thread may handle signals; in other threads, only the event works."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(number: int, frame: Any) -> None:
        stop.set()

    before = {number: signal.signal(number, heard) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: list[str] | None = None) -> int:
    """`python -m engine.jobs.worker`."""
    parser = argparse.ArgumentParser(prog="python -m engine.jobs.worker", description="Do the jobs that wait in the store.")
    parser.add_argument("--once", action="store_true", help="end when the queue is empty")
    parser.add_argument("--kinds", action="append", default=[], help="module with further kinds of jobs in its KINDS")
    parser.add_argument("--background", action="store_true", help="settings come on stdin; end when another worker is there")
    args = parser.parse_args(arguments)
    settings = Settings.from_mapping(receive()["settings"]) if args.background else load_settings()
    set_up_logs(settings.log_format)
    run(settings, args.once, kinds=args.kinds, alone=args.background)
    return 0


if __name__ == "__main__":
    sys.exit(main())
