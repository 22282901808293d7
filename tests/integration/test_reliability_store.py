"""What happens to the store, happens here for real: locks, full disks, read-only folders, a server that restarts, clocks.

The table of docs/reliability.md names these tests.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from engine.core.settings import Settings
from engine.errors import StorageError
from engine.jobs import child, worker
from engine.jobs import heartbeat as pulse
from engine.jobs.progress import RowProgress
from engine.store import JobRow, JobState, Store, database, tables
from tests.databases import Postgres, end_server, start_server
from tests.waiting import until

KINDS = ("worker_kinds",)


@contextlib.contextmanager
def _worker(settings: Settings) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(settings,), kwargs={"poll": 0.05, "kinds": KINDS, "stop": stop})
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(300)
        assert not thread.is_alive()


@contextlib.contextmanager
def _held(file: Path) -> Iterator[None]:
    """Another program that writes, and does not come to an end."""
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tailor.db"


@pytest.fixture
def hasty(file: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that waits for a lock for a moment alone."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.3)
    return Store(f"sqlite:///{file}")


def _running(store: Store, name: str = "here:1:a") -> JobRow:
    store.jobs.enqueue("count", {})
    job = store.jobs.claim(name)
    assert job is not None
    return job


# -- a locked database


def test_a_database_locked_for_longer_than_the_wait_is_said_and_can_be_read_meanwhile(hasty: Store, file: Path) -> None:
    project = hasty.projects.create("kept", "en", "zh", "base")
    with _held(file):
        with pytest.raises(StorageError, match=r"has been busy for more than 0\.3 s: another program is using it"):
            hasty.projects.create("lost", "en", "zh", "base")
        assert hasty.projects.list() == [project]
    hasty.projects.create("later", "en", "zh", "base")
    assert [row.name for row in hasty.projects.list()] == ["later", "kept"]


def test_a_job_works_on_through_a_lock_and_its_end_is_written_after_it(hasty: Store, file: Path) -> None:
    job = _running(hasty)
    with RowProgress(hasty, job) as progress:
        progress.begin("training")
        with _held(file):
            for step in range(30):
                progress.advance(step, 30)  # never waits for the database
                progress.check()
                time.sleep(0.05)
            ending = threading.Thread(
                target=child._write, args=(hasty, lambda: hasty.jobs.finish(job.id, job.attempt, {"plugin": "p.zip"}))
            )
            ending.start()
            time.sleep(1)  # longer than the wait
            assert hasty.jobs.get(job.id).state == JobState.RUNNING
        ending.join(300)
    done = hasty.jobs.get(job.id)
    assert (done.state, done.result) == (JobState.SUCCEEDED, {"plugin": "p.zip"})


# -- a full disk


def _limit(store: Store, pages: int | None) -> None:
    """Let the file grow to so many pages more and no further, as a full disk does; None: as far as it likes."""
    store.close()
    with store.read() as session:
        connection = session.connection()
        count = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {2**31 if pages is None else count + pages}")


def test_a_full_disk_is_said_and_what_was_written_before_is_kept(file: Path) -> None:
    store = Store(f"sqlite:///{file}")
    project = store.projects.create("kept", "en", "zh", "base")
    job = _running(store)
    _limit(store, 4)
    rows = [{"source": "The rain stopped. " * 50}] * 50
    with pytest.raises(StorageError, match=r"The disk is full: .* could not be written\. Free some space\."):
        store.comparisons.create(project.id, "too large", rows)
    assert store.projects.list() == [project]
    assert store.comparisons.list() == [], "half a row is not left behind"
    assert store.jobs.heartbeat(job.id, job.attempt), "what needs no more room goes on"
    _limit(store, None)
    assert len(store.comparisons.create(project.id, "fits now", rows).rows) == 50


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here (that takes root and the right to mount)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


def test_a_disk_that_fills_up_under_a_store_loses_nothing(small_disk: Path) -> None:
    file = small_disk / "tailor.db"
    store = Store(f"sqlite:///{file}")
    ballast = small_disk / "other.bin"
    with contextlib.suppress(OSError), open(ballast, "wb") as other:
        other.write(b"x" * 2**20)
    written: list[int] = []

    def write_on() -> None:
        for _ in range(2000):
            written.append(store.projects.create("A project " * 20, "en", "zh", "base").id)

    with pytest.raises(StorageError, match="The disk is full"):
        write_on()
    assert [row.id for row in store.projects.list()] == written[::-1]
    ballast.unlink()
    written.append(store.projects.create("after", "en", "zh", "base").id)
    store.close()
    again = Store(f"sqlite:///{file}")
    assert [row.id for row in again.projects.list()] == written[::-1]
    with again.read() as session:
        assert session.connection().exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_a_new_store_on_a_full_disk_is_said_and_leaves_none_that_is_half(small_disk: Path) -> None:
    ballast = small_disk / "other.bin"
    with contextlib.suppress(OSError), open(ballast, "wb") as other:
        other.write(b"x" * 2**21)
    with pytest.raises(StorageError, match=r"full|cannot be"):
        Store(f"sqlite:///{small_disk / 'tailor.db'}")
    ballast.unlink()
    assert Store(f"sqlite:///{small_disk / 'tailor.db'}").projects.list() == []


# -- a folder that cannot be written


def test_a_read_only_data_folder_is_said_and_nothing_is_changed(small_disk: Path) -> None:
    url = f"sqlite:///{small_disk / 'tailor.db'}"
    store = Store(url)
    project = store.projects.create("kept", "en", "zh", "base")
    store.close()
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    if subprocess.run(remount, capture_output=True, check=False).returncode:
        pytest.skip("a disk cannot be made read-only here")
    with pytest.raises(StorageError, match=r"cannot be (opened or written|used|made)"):
        Store(url).projects.create("lost", "en", "zh", "base")
    with pytest.raises(StorageError, match=r"cannot be (opened or written|used|made)"):
        Store(f"sqlite:///{small_disk / 'new' / 'tailor.db'}")
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert Store(url).projects.list() == [project]


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_said(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    with pytest.raises(StorageError, match="cannot be"):
        Store(f"sqlite:///{closed / 'tailor.db'}")


# -- a PostgreSQL server that goes away


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A server of the test's own, which it may stop."""
    postgres = start_server()
    try:
        yield postgres
    finally:
        end_server(postgres)


def test_a_job_outlives_restarts_and_a_crash_of_postgresql(
    server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    settings = Settings(home=str(tmp_path), database_url=server.database())
    store = Store(settings.store_url)
    job = store.jobs.enqueue("count", {"until": 150, "pause": 0.1})
    with _worker(settings):
        until(lambda: store.jobs.get(job.id).done > 3)
        for mode, away in (("fast", 0.0), ("immediate", 3.0)):
            before = store.jobs.get(job.id).done
            server.stop(mode)
            time.sleep(away)
            server.start()
            until(lambda before=before: store.jobs.get(job.id).done > before)  # type: ignore[misc]
        until(lambda: not store.jobs.get(job.id).active)
    done = store.jobs.get(job.id)
    assert (done.state, done.attempt, done.error) == (JobState.SUCCEEDED, 1, "")
    assert done.result == {"began": 0, "counted": 150}


def test_who_asks_while_the_server_restarts_waits_and_is_answered(server: Postgres) -> None:
    url = server.database()
    store = Store(url)
    project = store.projects.create("kept", "en", "zh", "base")
    server.stop("fast")
    threading.Timer(1.5, server.start).start()
    begin = time.monotonic()
    assert store.projects.list() == [project]
    assert time.monotonic() - begin > 1
    server.stop("immediate")
    threading.Timer(1.5, server.start).start()
    assert store.projects.create("also", "en", "zh", "base").id == project.id + 1
    server.stop("fast")
    threading.Timer(1.5, server.start).start()
    assert len(Store(url, wait=60).projects.list()) == 2


def test_a_server_that_stays_away_is_said_after_the_wait(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.store import store as door

    monkeypatch.setattr(door, "BUSY_SECONDS", 0.5)
    store = Store(server.database())
    server.stop("fast")
    with pytest.raises(StorageError, match=r"The database at postgresql\+psycopg://tailor@.* cannot be reached: .*refused"):
        store.projects.list()
    with pytest.raises(StorageError, match="cannot be reached"):
        Store(str(store.url))
    server.start()
    assert store.projects.list() == []


def test_the_end_of_a_job_is_written_once_the_server_is_back(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.store import store as door

    monkeypatch.setattr(door, "BUSY_SECONDS", 0.3)
    store = Store(server.database())
    job = _running(store)
    server.stop("immediate")
    ending = threading.Thread(
        target=child._write, args=(store, lambda: store.jobs.finish(job.id, job.attempt, {"plugin": "p.zip"}))
    )
    ending.start()
    time.sleep(1.5)  # longer than the wait
    assert ending.is_alive()
    server.start()
    ending.join(300)
    done = store.jobs.get(job.id)
    assert (done.state, done.result) == (JobState.SUCCEEDED, {"plugin": "p.zip"})


def test_a_full_disk_under_postgresql_is_said() -> None:
    """Its own words for it, as the server says them."""
    from psycopg.errors import DiskFull
    from sqlalchemy.exc import OperationalError

    words = 'could not extend file "base/5/1": No space left on device\nHINT:  Check free disk space.'
    with pytest.raises(StorageError, match="The disk is full"), database.sentences("postgresql://host/tailor"):
        raise OperationalError("INSERT", {}, DiskFull(words))


# -- a clock that jumps


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_jumps_ends_no_job_and_hides_no_dead_one(hours: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr(worker, "RECONCILE_SECONDS", 0.2)
    monkeypatch.setattr(pulse, "CONFIRM_SECONDS", 4.0)
    settings = Settings(home=str(tmp_path), job_retries=0)  # what is interrupted stays so, to be seen
    store = Store(settings.store_url)
    living, dead = (_running(store, f"elsewhere:{n}:x") for n in "12")  # of two other machines
    job = store.jobs.enqueue("count", {"until": 40, "pause": 0.1})

    right = tables.now
    jump = datetime.timedelta(hours=hours)
    monkeypatch.setattr(tables, "now", lambda: right() + jump)  # the clock of the worker, and of nobody else
    monkeypatch.setattr(pulse, "recent", lambda beat: False)  # to it, all heartbeats are of another hour

    def beat() -> None:
        with store.write() as session:
            session.execute(update(tables.Job).where(tables.Job.id == living.id).values(heartbeat=right()))

    with _worker(settings):
        until(lambda: (beat(), store.jobs.get(dead.id).state == JobState.INTERRUPTED)[1])
        until(lambda: (beat(), not store.jobs.get(job.id).active)[1])
        assert store.jobs.get(living.id).state == JobState.RUNNING
    done = store.jobs.get(job.id)
    assert (done.state, done.attempt, done.result["counted"]) == (JobState.SUCCEEDED, 1, 40)
    assert all((row.seconds or 0) >= 0 for row in store.jobs.list())
