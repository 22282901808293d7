"""Kill processes with SIGKILL at random moments while clients translate and plugins are trained, for as long as you say.

    python bench/soak.py --minutes 60
    python bench/soak.py --minutes 5 --clients 4 --trainings 1 --store sqlite

A data folder of its own, the studio and a worker as processes over a PostgreSQL server of its own (Debian's package), small
customizations of a bundled base, several at once and again and again, and clients that ask the studio for translations
without a pause. The worker, a job, the studio and the database are killed; what was killed is started anew at once, as a
service manager does. In the last third of the time the studio is left alone, so that its memory can be compared.

At the end: how often each was killed, how many customizations ended, whether all their plugins have the weights of the
first, undisturbed one bit for bit, what the clients were answered, and what was left behind. The exit code is 1 where
anything was lost, differed or grew.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from engine.core.settings import Settings  # noqa: E402
from engine.core.text_table import table  # noqa: E402
from engine.jobs import enqueue  # noqa: E402
from engine.jobs.processes import end_tree, running  # noqa: E402
from engine.store import JobRow, Store  # noqa: E402
from tests.bundles import weights  # noqa: E402
from tests.databases import Postgres, end_server, start_server  # noqa: E402

BASE = ROOT / "assets" / "models" / "en-zh"
SAMPLE = ROOT / "assets" / "samples" / "literary-zh" / "literary-zh.txt"
LINES = ROOT / "assets" / "samples" / "general-en" / "general-en.txt"
COMMANDS = {"worker": ["engine.jobs.worker"], "studio": ["engine.cli", "serve"]}
TARGETS = ("worker", "job", "worker and job", "studio", "all", "database")
AWAY = 60.0  # seconds that a client tries again while the studio or its database is being started
FLAT = 5.0  # percent that the studio's memory may grow by
LONGEST = 1800.0  # seconds that the last customizations may take when nothing is killed any more


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Machine:
    """The studio, a worker and the database over one data folder; what dies is started again."""

    def __init__(self, home: Path, database: Postgres | None, trainings: int) -> None:
        self.home, self.database, self.port = home, database, free_port()
        url = database.database() if database else ""
        self.settings = Settings(home=str(home), device="cpu", threads=1, database_url=url)
        self.environment = os.environ | {
            "TAILORMT_HOME": str(home), "TAILORMT_DEVICE": "cpu", "TAILORMT_THREADS": "1", "OMP_NUM_THREADS": "1",
            "TAILORMT_JOB_RETRIES": "1000", "TAILORMT_RETRY_SECONDS": "0.1", "TAILORMT_PORT": str(self.port),
            "TAILORMT_CPU_JOBS": str(trainings), "TAILORMT_DATABASE_URL": url, "TAILORMT_API_RATE": "0", "HF_HUB_OFFLINE": "1",
        }  # fmt: skip
        self.store = Store(self.settings.store_url)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def keep_up(self, names: Sequence[str] = tuple(COMMANDS)) -> None:
        for name in names:
            if name not in self.processes or self.processes[name].poll() is not None:
                with open(self.home / f"{name}.out", "ab") as log:
                    self.processes[name] = subprocess.Popen(
                        [sys.executable, "-m", *COMMANDS[name]], cwd=ROOT, env=self.environment, stdout=log, stderr=log
                    )

    def kill(self, target: str, draw: random.Random) -> bool:
        """Kill it; False where there is nothing to kill, such as a job that is not running."""
        if target == "database":
            if self.database is None:
                return False
            self.database.stop("immediate")
            self.database.start()
            return True
        at_work = [row for row in self.store.jobs.list(states=["running"]) if row.pid and running(row.pid)]
        pids = [self.processes["studio"].pid] if target in ("studio", "all") else []
        if "worker" in target or target == "all":  # all there are: the studio starts one where it finds none
            pids += [row.pid for row in self.store.workers.list(within=None) if running(row.pid)]
        if "job" in target or target == "all":
            if not at_work:
                return False
            pids += [row.pid for row in (at_work if target == "all" else [draw.choice(at_work)]) if row.pid]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.processes.values():
            if process.pid in pids:
                process.wait()
        return True

    def memory(self) -> float:
        """MB that the studio's process has in memory, without the processes it started."""
        import psutil

        with contextlib.suppress(psutil.Error, KeyError):
            return psutil.Process(self.processes["studio"].pid).memory_info().rss / 1e6
        return 0.0

    def close(self) -> None:
        self.kill("worker", random.Random(0))
        for process in self.processes.values():
            end_tree(process.pid)
            process.wait()


class Clients:
    """Threads that translate one sentence after another until they are told to stop, and what they were answered."""

    def __init__(self, machine: Machine, count: int) -> None:
        self.url = f"http://127.0.0.1:{machine.port}/cat/1/base/translate"
        self.lines = [line for line in LINES.read_text(encoding="utf-8").splitlines() if 20 <= len(line) <= 120][:40]
        self.tokens = [machine.store.tokens.create(f"client {number}")[1] for number in range(count)]
        self.known: dict[str, str] = {}
        self.answers, self.again = 0, 0
        self.faults: Counter[str] = Counter()
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(number,), daemon=True) for number in range(count)]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(timeout=2 * AWAY)

    def _work(self, number: int) -> None:
        draw = random.Random(number)
        while not self.stop.is_set():
            line = draw.choice(self.lines)
            text = self._translate(line, self.tokens[number])
            with self.lock:
                if text is None:
                    continue
                self.answers += 1
                if self.known.setdefault(line, text) != text:
                    self.faults["another translation than before"] += 1

    def _translate(self, line: str, token: str) -> str | None:
        """The translation; asked for again, as CAT tools do, while the studio is away. None where it never came."""
        body = json.dumps({"q": line, "source": "en", "target": "zh", "format": "text"}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        until, fault = time.monotonic() + AWAY, ""
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(urllib.request.Request(self.url, body, headers), timeout=AWAY) as answer:
                    return str(json.load(answer)["translatedText"])
            except urllib.error.HTTPError as error:
                fault = f"HTTP {error.code}: {error.read(200).decode(errors='replace')}"
                if error.code < 500:
                    break
            except (OSError, ValueError) as error:  # refused, reset, or an answer that was cut off
                fault = type(error).__name__
            with self.lock:
                self.again += 1
            if self.stop.wait(1):
                return None
        with self.lock:
            self.faults[fault] += 1
        return None


@dataclass
class Course:
    """What came of the customizations and kills."""

    expected: str
    kills: Counter[str] = field(default_factory=Counter)
    done: int = 0
    same: int = 0
    memory: list[float] = field(default_factory=list)

    def take(self, row: JobRow) -> None:
        ours = digest(Path(row.result["plugin"]))
        self.done, self.same = self.done + 1, self.same + (ours == self.expected)
        print(f"job {row.id}: {row.attempt} attempts, weights {ours}, {sum(self.kills.values())} kills", flush=True)


def digest(bundle: Path) -> str:
    """Of the bundle's tensors."""
    result = hashlib.sha256()
    for name, tensor in sorted(weights(bundle).items()):
        result.update(name.encode() + tensor)
    return result.hexdigest()[:16]


def ask(machine: Machine, updates: int) -> JobRow:
    """Queue a small customization with a workspace of its own."""
    sample = machine.home / "style.txt"
    if not sample.exists():
        sample.write_text("\n".join(SAMPLE.read_text(encoding="utf-8").splitlines()[:120]) + "\n", encoding="utf-8")
    return enqueue(machine.store, "customize", {
        "base": str(BASE), "source": "en", "target": "zh", "samples": [str(sample)],
        "budget": "quick", "name": "soak", "phrase_options": {"parser": "statistical"},
        "method_options": {"phrases_per_layer": 100},
        "training_options": {
            "max_updates": updates, "checkpoint_every": 5, "validate_every": 10, "tokens_per_batch": 512
        },
    })  # fmt: skip


def wait(machine: Machine, jobs: list[int], seconds: float) -> list[JobRow]:
    """The rows of the jobs once all have succeeded, or the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        machine.keep_up()
        rows = [machine.store.jobs.get(job) for job in jobs]
        if all(row.state == "succeeded" for row in rows):
            return rows
        time.sleep(0.5)
    return [machine.store.jobs.get(job) for job in jobs]


def disturb(machine: Machine, course: Course, args: argparse.Namespace) -> list[int]:
    """Kill for the time, with a new customization for each that ends; the jobs that are still running then."""
    draw = random.Random(args.seed)
    jobs = [ask(machine, args.updates).id for _ in range(args.trainings)]
    begin, seconds = time.monotonic(), 60 * args.minutes
    while (at := time.monotonic() - begin) < seconds:
        calm = at > 2 * seconds / 3
        moment = time.monotonic() + draw.uniform(0, 2 * args.every)
        while time.monotonic() < moment:
            machine.keep_up()
            for job in list(jobs):
                row = machine.store.jobs.get(job)
                if row.state == "succeeded":
                    course.take(row)
                    jobs[jobs.index(job)] = ask(machine, args.updates).id
            if calm:
                course.memory.append(machine.memory())
            time.sleep(0.5)
        target = draw.choice([name for name in TARGETS if not (calm and name in ("studio", "all"))])
        if machine.kill(target, draw):
            course.kills[target] += 1
    return jobs


def soak(args: argparse.Namespace) -> tuple[list[list[object]], bool]:
    """Rows of the table, and whether all is well."""
    database = start_server() if args.store == "postgresql" else None
    with tempfile.TemporaryDirectory(prefix="tailormt-soak-") as folder:
        machine = Machine(Path(folder), database, args.trainings)
        try:
            begin = time.monotonic()
            (first,) = wait(machine, [ask(machine, args.updates).id], LONGEST)
            assert first.state == "succeeded", (first.state, first.error, machine.home)
            quiet, course = time.monotonic() - begin, Course(digest(Path(first.result["plugin"])))
            print(f"undisturbed: {quiet:.0f} s, weights {course.expected}", flush=True)
            machine.store.projects.create("Soak", "en", "zh", str(BASE))
            clients = Clients(machine, args.clients)
            clients.start()
            left = disturb(machine, course, args)
            clients.end()
            begin = time.monotonic()
            for row in wait(machine, left, LONGEST):
                if row.state == "succeeded":
                    course.take(row)
            late = time.monotonic() - begin
            attempts = [row.attempt for row in machine.store.jobs.list() if row.id != first.id]
            halves = [path for path in Path(folder).rglob("*") if path.name.endswith((".tmp", ".old")) and path.is_file()]
        finally:
            machine.close()
            if database:
                end_server(database)
    early, end, growth = growth_of(course.memory)
    rows: list[list[object]] = [[f"killed: {name}", course.kills[name]] for name in TARGETS]
    rows += [
        ["kills in all", sum(course.kills.values())],
        ["customizations begun and ended", f"{course.done} of {len(attempts)}"],
        ["with the very same weights", course.same], ["attempts of one, at most", max(attempts, default=0)],
        ["seconds undisturbed, alone", f"{quiet:.0f}"], ["seconds from the last kill to the end", f"{late:.0f}"],
        ["files left half-written", len(halves)], ["translations", clients.answers],
        ["asked again, the studio being away", clients.again],
        ["translations that differed or never came", sum(clients.faults.values())],
        ["the studio's memory in the last third", f"{early:.0f} → {end:.0f} MB, {growth:+.1f} %"],
    ]  # fmt: skip
    for fault, count in clients.faults.most_common(5):
        print(f"{count} times: {fault}")
    well = course.done == course.same == len(attempts) and not halves and not clients.faults and growth <= FLAT
    return rows, well


def growth_of(memory: list[float]) -> tuple[float, float, float]:
    """MB in the second and in the last fifth of the measurements, and the growth in percent."""
    fifth = len(memory) // 5
    if not fifth:
        return 0.0, 0.0, 0.0
    early, end = statistics.mean(memory[fifth : 2 * fifth]), statistics.mean(memory[-fifth:])
    return early, end, 100 * (end / early - 1) if early else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long [60]")
    parser.add_argument("--every", type=float, default=12.0, help="seconds between two kills, on average [12]")
    parser.add_argument("--updates", type=int, default=60, help="updates of each training [60]")
    parser.add_argument("--trainings", type=int, default=3, help="customizations at once [3]")
    parser.add_argument("--clients", type=int, default=20, help="clients that translate [20]")
    parser.add_argument("--store", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rows, well = soak(args)
    print(table(["", f"{args.minutes:g} minutes"], rows))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
