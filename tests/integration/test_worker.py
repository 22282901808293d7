"""The worker as a user meets it: jobs run, stop, die and go on, and their rows always tell the truth."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine.core.settings import Settings
from engine.errors import InputError
from engine.jobs import child, enqueue, heartbeat, log_tail, start_background_worker, stop_background_worker, worker
from engine.jobs.backends import forking
from engine.jobs.processes import end_tree, is_child, running
from engine.store import JobRow, Store
from engine.store.queue import ASKED
from tests.databases import TEMPLATE, Postgres
from tests.integration.worker_kinds import PAUSE, counted
from tests.waiting import until

KINDS = ("worker_kinds",)


BOTH = pytest.mark.parametrize("settings", ["sqlite", "postgresql"], indirect=True)  # tests that run on either database


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    if getattr(request, "param", "sqlite") == "sqlite":
        yield Settings(home=str(tmp_path), job_retries=0)  # what stops stays so until a test says otherwise
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.database(TEMPLATE)
    yield Settings(home=str(tmp_path), database_url=url, job_retries=0)
    server.drop(url)


@contextlib.contextmanager
def _thread(settings: Settings) -> Iterator[threading.Event]:
    """A worker in a thread of this process."""
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(settings,), kwargs={"poll": 0.05, "kinds": KINDS, "stop": stop})
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(120)
        assert not thread.is_alive()


@contextlib.contextmanager
def _process(settings: Settings, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in a process of its own."""
    command = [sys.executable, "-m", "engine.jobs.worker", "--kinds", KINDS[0], *flags]
    process = subprocess.Popen(command, env=_environment(settings), stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _environment(settings: Settings) -> dict[str, str]:
    variables = {
        "HOME": settings.home,
        "DATABASE_URL": settings.database_url,
        "JOB_RETRIES": str(settings.job_retries),
        "RETRY_SECONDS": str(settings.retry_seconds),
    }
    return os.environ | {f"TAILORMT_{name}": value for name, value in variables.items()}


def _retrying(settings: Settings, most: int = 2) -> Settings:
    return settings.replace(job_retries=most, retry_seconds=0.0)


def _ended(store: Store, job: JobRow, seconds: float = 300) -> JobRow:
    until(lambda: not store.jobs.get(job.id).active, seconds)
    return store.jobs.get(job.id)


def _counting(store: Store, job: JobRow) -> JobRow:
    until(lambda: store.jobs.get(job.id).done > 0)
    return store.jobs.get(job.id)


def _workspace(settings: Settings, job: JobRow) -> Path:
    return Path(settings.home) / "jobs" / str(job.id)


@BOTH
@pytest.mark.smoke
def test_a_job_runs_to_its_end_and_is_seen_on_its_way(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("count", {"until": 20})
    with _process(settings, "--once") as process:
        seen = _counting(store, job)
        assert (seen.state, seen.step, seen.step_index, seen.steps, seen.total) == ("running", "counting", 1, 3, 20), (
            "what was skipped counts as done"
        )
        assert seen.note == f"at {seen.done:.0f}"
        assert seen.pid is not None
        assert is_child(seen.pid, job.id)
        # The settings, with a database password perhaps, are not there for all to read.
        assert psutil.Process(seen.pid).cmdline()[1:] == ["-m", "engine.jobs.child", str(job.id)]
        assert 1 / 3 < seen.fraction < 2 / 3
        assert [row.job_id for row in store.workers.list()] == [job.id]
        done = _ended(store, job)
        assert process.wait(120) == 0  # the queue is empty
    assert (done.state, done.result, done.error) == ("succeeded", {"began": 0, "counted": 20}, "")
    assert done.metrics == {"step": 20, "loss": 1 / 20, "bad": None}
    assert store.workers.list(within=None) == []
    assert f"== job {job.id} (count), attempt 1" in log_tail(done)


@BOTH
def test_a_cancelled_job_stops_within_two_seconds_of_its_work_and_the_worker_goes_on(store: Store, settings: Settings) -> None:
    job, after = store.jobs.enqueue("count", {"until": 9999}), store.jobs.enqueue("count", {"until": 1})
    with _thread(settings):
        _counting(store, job)
        store.jobs.cancel(job.id)
        before = counted(settings, job)
        assert _ended(store, job).state == "cancelled"
        assert (counted(settings, job) - before) * PAUSE < 2
        assert _ended(store, after).state == "succeeded"
    assert store.jobs.get(job.id).error == ""


def test_errors_become_one_sentence_and_the_log_holds_the_rest(store: Store, settings: Settings) -> None:
    jobs = [store.jobs.enqueue(kind, {}) for kind in ("unreadable", "broken", "hungry", "dreaming", "misplaced")]
    worker.run(settings, once=True, kinds=KINDS)
    unreadable, broken, hungry, unknown, misplaced = (store.jobs.get(job.id) for job in jobs)
    assert {row.state for row in (unreadable, broken, hungry, unknown, misplaced)} == {"failed"}
    assert unreadable.error == "luxun.txt, line 3: this is no text. Save it as UTF-8."
    assert broken.error == (
        "Something went wrong inside Tailor MT in the step “training”: ZeroDivisionError. "
        f"The log of job {broken.id} has the details."
    )
    assert "a secret of the inside" in log_tail(broken)
    assert "worker_kinds.py" in log_tail(broken)
    assert "not enough memory" in hungry.error
    assert "tokens_per_batch" in hungry.error
    assert "no kind of job called dreaming" in unknown.error
    assert misplaced.error == "my letters.tmx is empty; the folder is samples."
    assert settings.home in log_tail(misplaced), "the place is in the log"


@pytest.mark.smoke
def test_an_unknown_kind_is_refused_before_it_is_queued(store: Store) -> None:
    with pytest.raises(InputError, match=r"no kind of job called custommize\. Known: .*customize, .*prepare"):
        enqueue(store, "custommize", {})
    assert store.jobs.list() == []


@BOTH
def test_a_killed_job_is_interrupted_and_goes_on_where_it_was(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("count", {"until": 20})
    with _thread(settings):
        pid = _counting(store, job).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        dead = _ended(store, job)
        assert dead.state == "interrupted"
        assert "ran out of memory. Resume it" in dead.error
        assert dead.resumable
        store.jobs.resume(job.id)
        done = _ended(store, job)
    assert (done.state, done.attempt, done.result["counted"], done.error) == ("succeeded", 2, 20, "")
    assert done.result["began"] > 0
    assert "attempt 1" in log_tail(done)
    assert "attempt 2" in log_tail(done)


@BOTH
def test_a_killed_worker_takes_its_job_along_and_the_next_worker_can_resume_it(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("count", {"until": 30})
    with _process(settings) as process:
        pid = _counting(store, job).pid
        assert pid is not None
        process.kill()
        process.wait()
        until(lambda: not running(pid))
    stopped = store.jobs.get(job.id)
    assert stopped.state == "interrupted"
    assert "Resume it" in stopped.error
    store.jobs.resume(job.id)
    with _thread(settings):
        done = _ended(store, job)
        assert [row.pid for row in store.workers.list(within=None)] == [os.getpid()]  # the dead one is forgotten
    assert (done.state, done.attempt) == ("succeeded", 2)
    assert done.result["began"] > 0


@BOTH
def test_worker_and_job_killed_at_once_are_found_at_the_next_start(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("count", {"until": 30})
    with _process(settings) as process:
        pid = _counting(store, job).pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)  # or it might notice the worker's end before its own
        process.kill()
        os.kill(pid, signal.SIGKILL)
    assert store.jobs.get(job.id).state == "running"  # as after a power cut
    with _thread(settings):
        result = _ended(store, job)
        assert result.state == "interrupted"
        assert result.error.startswith("The job's worker ended while it was running.")
        store.jobs.resume(job.id)
        assert _ended(store, job).state == "succeeded"


def test_a_number_given_to_another_process_is_not_taken_for_the_job(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("count", {"until": 3})
    claimed = store.jobs.claim(f"{worker.HOST}:999999:gone", pid=os.getpid())
    assert claimed is not None
    worker.run(settings, once=True, kinds=KINDS)
    assert store.jobs.get(job.id).state == "interrupted"


def test_a_job_of_another_machine_is_judged_by_its_heartbeat(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("count", {"until": 3})
    assert store.jobs.claim("elsewhere:1:x", pid=1) is not None
    worker.run(settings, once=True, kinds=KINDS)
    assert store.jobs.get(job.id).state == "running"


def test_sigterm_stops_the_worker_and_its_job_cleanly(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("count", {"until": 9999})
    with _process(settings) as process:
        pid = _counting(store, job).pid
        assert pid is not None
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    assert not running(pid)
    stopped = store.jobs.get(job.id)
    assert (stopped.state, stopped.resumable) == ("interrupted", True)
    assert store.workers.list(within=None) == []


def test_work_that_does_not_look_is_woken_by_a_signal(store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "GRACE_SECONDS", 0.3)
    job = store.jobs.enqueue("sleepy", {})
    part = _workspace(settings, job) / "part.txt"
    with _thread(settings):
        until(part.exists)
        store.jobs.cancel(job.id)
        assert _ended(store, job).state == "cancelled"
    assert not part.exists()  # it could clean up


def test_work_that_ignores_signals_is_ended_with_all_that_it_started(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(worker, "FORCE_SECONDS", 0.2)
    job = store.jobs.enqueue("deaf", {})
    helper = _workspace(settings, job) / "helper.txt"
    with _thread(settings) as stop:
        until(lambda: helper.exists() and helper.read_text(encoding="utf-8"))
        stop.set()
        assert _ended(store, job).state == "interrupted"
    assert not running(int(helper.read_text(encoding="utf-8")))


def test_work_that_does_not_look_ends_all_the_same_when_its_worker_is_killed(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("deaf", {})
    helper = _workspace(settings, job) / "helper.txt"
    with _process(settings) as process:
        until(lambda: helper.exists() and helper.read_text(encoding="utf-8"))
        pid = store.jobs.get(job.id).pid
        assert pid is not None
        process.kill()
        assert _ended(store, job).state == "interrupted"
        until(lambda: not running(pid))
    until(lambda: not running(int(helper.read_text(encoding="utf-8"))))


def test_a_worker_ends_when_its_home_folder_is_deleted(settings: Settings, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with _process(settings.replace(home=str(home))) as process:
        until(lambda: (home / "tailor.db").exists() and Store(f"sqlite:///{home / 'tailor.db'}").workers.list())
        shutil.rmtree(home)
        process.wait(300)
    assert not home.exists()


@BOTH
def test_two_workers_never_run_one_job(store: Store, settings: Settings) -> None:
    jobs = [store.jobs.enqueue("count", {"until": 2}) for _ in range(3)]
    with _process(settings, "--once") as first, _process(settings, "--once") as second:
        assert first.wait(300) == 0
        assert second.wait(300) == 0
    for job in jobs:
        assert store.jobs.get(job.id).state == "succeeded"
        runs = (_workspace(settings, job) / "runs.txt").read_text(encoding="utf-8").splitlines()
        assert len(runs) == 1


def test_a_background_worker_is_started_once_and_outlives_its_starter(store: Store, settings: Settings) -> None:
    code = (
        "import json, sys; from engine.jobs import start_background_worker; from engine.core.settings import Settings;"
        "print(json.dumps([start_background_worker(Settings(home=sys.argv[1]), kinds=['worker_kinds']) for _ in '12']))"
    )
    out = subprocess.run([sys.executable, "-c", code, settings.home], capture_output=True, check=True, timeout=300).stdout
    pid, second = json.loads(out)
    try:
        assert second is None
        assert start_background_worker(settings) is None  # a restarted studio finds it at work
        job = store.jobs.enqueue("count", {"until": 2})
        done = _ended(store, job)
        assert done.state == "succeeded"
        assert [row.pid for row in store.workers.list()] == [pid]
        process = psutil.Process(pid)
        assert os.getsid(pid) != os.getsid(0)
        assert start_background_worker(settings) is None
        assert stop_background_worker(settings)
        until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
        assert not stop_background_worker(settings)
        assert store.workers.list(within=None) == []
    finally:
        end_tree(pid)


def test_two_background_workers_started_at_once_settle_it(store: Store, settings: Settings) -> None:
    """What the look before the start cannot see: both started before either was in the store."""
    store.workers.beat("first", worker.HOST, os.getpid())
    worker.run(settings, alone=True)  # returns at once, and would not end otherwise
    assert [row.name for row in store.workers.list()] == ["first"]


@pytest.mark.parametrize("said", [b"", b'{"settings": {'])
def test_a_job_started_by_hand_or_whose_worker_was_killed_at_once_says_that_it_needs_a_worker(said: bytes) -> None:
    command = [sys.executable, "-m", "engine.jobs.child", "1"]
    out = subprocess.run(command, input=said, capture_output=True, check=False, timeout=300)
    assert out.returncode != 0
    assert b"started by a worker" in out.stderr
    assert b"Traceback" not in out.stderr
    assert child.ORPHAN_SECONDS < heartbeat.STALE_SECONDS  # an orphan is gone before its job may be given to another


def test_what_was_interrupted_goes_on_by_itself_at_the_next_start(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("count", {"until": 30})
    with _process(settings) as process:
        _counting(store, job)
        process.send_signal(signal.SIGTERM)
        process.wait(300)
    assert store.jobs.get(job.id).state == "interrupted"
    with _thread(_retrying(settings)):
        until(lambda: store.jobs.get(job.id).state == "succeeded")
    done = store.jobs.get(job.id)
    assert (done.attempt, done.retries, done.result["counted"]) == (2, 0, 30)
    assert done.result["began"] > 0


def test_a_job_whose_process_is_killed_goes_on_by_itself(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("count", {"until": 25})
    with _thread(_retrying(settings)):
        pid = _counting(store, job).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: store.jobs.get(job.id).state == "succeeded")
    done = store.jobs.get(job.id)
    assert (done.attempt, done.result["counted"]) == (2, 25)
    assert done.result["began"] > 0
    (step,) = done.trail
    assert (step["step"], step["index"], step["attempt"]) == ("counting", 1, 2), "the step that it goes on with is seen"


def test_a_job_that_ends_its_worker_each_time_is_given_up(store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("deadly", {})
    for _ in range(3):
        with _process(_retrying(settings)) as process:
            until(lambda: process.poll() is not None)
            assert process.returncode == -signal.SIGKILL
    worker.run(_retrying(settings), once=True, kinds=KINDS)
    dead = store.jobs.get(job.id)
    assert dead.state == "failed"
    assert "This was attempt 3 in a row without progress, so it will not be retried automatically" in dead.error
    assert (_workspace(settings, job) / "runs.txt").read_text(encoding="utf-8") == "xxx"
    assert "attempt 3" in log_tail(dead)  # its log is kept
    assert dead.resumable


@pytest.mark.skipif(sys.platform != "linux", reason="jobs are forked on Linux")
def test_a_worker_that_stays_forks_its_jobs_from_a_process_with_the_libraries_and_starts_that_anew(
    store: Store, settings: Settings
) -> None:
    job, other = store.jobs.enqueue("bereaving", {}), store.jobs.enqueue("count", {"until": 9999})
    with _process(_retrying(settings)) as process:
        until(lambda: store.jobs.get(job.id).state == "succeeded")
        done = store.jobs.get(job.id)
        assert done.result == {"loaded": ["torch", "transformers", "worker_kinds"]}
        seen = _counting(store, other)
        assert seen.pid is not None
        assert is_child(seen.pid, other.id)
        assert not is_child(seen.pid, job.id)
        assert psutil.Process(seen.pid).name() == f"job {other.id}"
        process.kill()
        until(lambda: not running(seen.pid or 0))
    assert done.attempt == 2


def test_jobs_are_started_anew_once_the_program_has_changed(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update while the worker runs: what its fork server has imported would not fit what a job imports itself."""
    times = itertools.count()
    monkeypatch.setattr(forking, "installed", lambda: next(times))
    job = store.jobs.enqueue("count", {"until": 9999})
    with _thread(settings):
        seen = _counting(store, job)
        assert psutil.Process(seen.pid).cmdline()[1:] == ["-m", "engine.jobs.child", str(job.id)]
        store.jobs.cancel(job.id)
        assert _ended(store, job).state == "cancelled"


def test_a_service_that_gives_no_answer_is_asked_again_and_bad_input_is_not(store: Store, settings: Settings) -> None:
    job, bad = store.jobs.enqueue("unanswered", {"times": 2}), store.jobs.enqueue("unreadable", {})
    dead = store.jobs.enqueue("unanswered", {"times": 9})
    worker.run(_retrying(settings), once=True, kinds=KINDS)
    assert (store.jobs.get(job.id).state, store.jobs.get(job.id).result) == ("succeeded", {"tries": 3})
    assert (store.jobs.get(bad.id).state, store.jobs.get(bad.id).attempt) == ("failed", 1)
    assert (store.jobs.get(dead.id).state, store.jobs.get(dead.id).attempt) == ("failed", 3)
    assert store.jobs.get(dead.id).error.startswith("The service at http://127.0.0.1:1 gave no answer.")


def test_a_worker_does_as_many_jobs_at_once_as_it_has_places(store: Store, settings: Settings) -> None:
    jobs = [store.jobs.enqueue("count", {"until": 200}) for _ in range(3)]
    with _thread(settings.replace(cpu_jobs=2)):
        until(lambda: all(store.jobs.get(job.id).done > 0 for job in jobs[:2]))
        assert store.jobs.get(jobs[2].id).state == "queued"
        store.jobs.cancel(jobs[0].id)
        _counting(store, jobs[2])
        assert store.jobs.get(jobs[1].id).state == "running"


@pytest.mark.parametrize(("settings", "kind"), [("sqlite", "loyal"), ("postgresql", "polite")], indirect=["settings"])
def test_what_a_user_asks_for_goes_before_work_that_gives_way_and_that_goes_on_after_it(
    store: Store, settings: Settings, kind: str
) -> None:
    job = store.jobs.enqueue(kind, {"until": 80}, owner="ann")
    with _thread(settings):
        _counting(store, job)
        mild = store.jobs.enqueue("count", {"until": 1}, priority=ASKED - 1)
        urgent = store.jobs.enqueue("count", {"until": 1}, owner="ann", priority=ASKED)
        assert _ended(store, urgent).state == "succeeded"
        assert store.jobs.get(job.id).active, "it stopped for that, and waits or works again"
        until(lambda: store.jobs.get(job.id).state == "running")
        other = store.jobs.enqueue("count", {"until": 1}, owner="bob", priority=ASKED)
        done = _ended(store, job)
        assert _ended(store, other).state == _ended(store, mild).state == "succeeded"
    assert (done.state, done.attempt, done.result["counted"]) == ("succeeded", 2 if kind == "loyal" else 3, 80)
    assert done.result["began"] > 0, "from where it was"


def test_a_job_that_gives_way_says_so_and_one_that_was_cancelled_meanwhile_stays_so(store: Store) -> None:
    first, second = (store.jobs.enqueue("polite", {}) for _ in range(2))
    store.jobs.claim("here")
    assert store.jobs.give_way(first.id, 1)
    waiting = store.jobs.get(first.id)
    assert (waiting.state, waiting.attempt, waiting.retries) == ("queued", 2, 0)
    assert waiting.note == "It was paused for a job requested in the meantime and will continue automatically."
    assert store.jobs.claim("here") == store.jobs.get(first.id)
    assert store.jobs.get(first.id).note == ""
    store.jobs.claim("here")
    store.jobs.cancel(second.id)
    assert store.jobs.give_way(second.id, 1)
    assert store.jobs.get(second.id).state == "cancelled"
    assert not store.jobs.give_way(second.id, 1)
