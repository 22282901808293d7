"""Kill the worker, its job, the studio, or all of them with SIGKILL at random moments, for as long as you say.

    python bench/soak.py --minutes 60

A data folder of its own, the studio and a worker as processes, and a small customization of a bundled base again and again. The
killed are started anew at once, as a service manager does. At the end: how often each was killed, how many customizations came
to their end, whether all their plugins have the weights of the first, undisturbed one bit for bit, and what was left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from engine.core.settings import Settings  # noqa: E402
from engine.core.text_table import table  # noqa: E402
from engine.jobs import enqueue  # noqa: E402
from engine.jobs.processes import end_tree, running  # noqa: E402
from engine.store import JobRow, Store  # noqa: E402
from tests.bundles import weights  # noqa: E402

SAMPLE = ROOT / "assets" / "samples" / "literary-zh" / "literary-zh.txt"
TARGETS = ("worker", "job", "worker and job", "studio", "all")


class Machine:
    """The studio and a worker over one data folder; what dies is started again."""

    def __init__(self, home: Path, port: int) -> None:
        self.settings = Settings(home=str(home), device="cpu", threads=1)
        self.port = port
        self.home = home
        self.environment = os.environ | {
            "TAILORMT_HOME": str(home), "TAILORMT_DEVICE": "cpu", "TAILORMT_THREADS": "1", "OMP_NUM_THREADS": "1",
            "TAILORMT_JOB_RETRIES": "1000", "TAILORMT_RETRY_SECONDS": "0.1", "TAILORMT_PORT": str(port), "HF_HUB_OFFLINE": "1",
        }  # fmt: skip
        self.store = Store(self.settings.store_url)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def keep_up(self) -> None:
        commands = {"worker": ["engine.jobs.worker"], "studio": ["engine.cli.main", "serve"]}
        for name, words in commands.items():
            if name not in self.processes or self.processes[name].poll() is not None:
                with open(self.home / f"{name}.out", "ab") as log:
                    self.processes[name] = subprocess.Popen(
                        [sys.executable, "-m", *words], cwd=ROOT, env=self.environment, stdout=log, stderr=log
                    )

    def kill(self, target: str) -> bool:
        """Kill it; False where there is nothing to kill, such as a job that is not at work."""
        job = next(iter(self.store.jobs.list(states=["running"])), None)
        pids = [self.processes["studio"].pid] if target in ("studio", "all") else []
        if "worker" in target or target == "all":  # all there are: the studio starts one where it finds none
            pids += [row.pid for row in self.store.workers.list(within=None) if running(row.pid)]
        if "job" in target or target == "all":
            if job is None or job.pid is None or not running(job.pid):
                return False
            pids.append(job.pid)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.processes.values():
            if process.pid in pids:
                process.wait()
        return True

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=5) as result:
                return int(result.status) == 200
        except OSError:
            return False

    def close(self) -> None:
        self.kill("worker")
        for process in self.processes.values():
            end_tree(process.pid)
            process.wait()


def digest_of(bundle: Path) -> str:
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
        "base": str(ROOT / "assets" / "models" / "en-zh"), "source": "en", "target": "zh", "samples": [str(sample)],
        "budget": "quick", "name": "soak", "phrase_options": {"parser": "statistical"},
        "method_options": {"phrases_per_layer": 100},
        "training_options": {
            "max_updates": updates, "checkpoint_every": 5, "validate_every": 10, "tokens_per_batch": 512
        },
    })  # fmt: skip


def wait(machine: Machine, job: JobRow, seconds: float) -> JobRow:
    deadline = time.monotonic() + seconds
    while machine.store.jobs.get(job.id).state != "succeeded" and time.monotonic() < deadline:
        machine.keep_up()
        time.sleep(0.2)
    return machine.store.jobs.get(job.id)


def bundle(job: JobRow) -> Path:
    return Path(job.result["plugin"])


def soak(minutes: float, every: float, updates: int, seed: int) -> tuple[list[list[object]], bool]:
    """Rows of the table, and whether all is well."""
    draw, kills, skipped = random.Random(seed), Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="tailormt-soak-") as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        machine = Machine(Path(folder), port)
        try:
            begin = time.monotonic()
            first = wait(machine, ask(machine, updates), 1200)
            assert first.state == "succeeded", (first.state, first.error, machine.home)
            quiet, expected = time.monotonic() - begin, digest_of(bundle(first))
            print(f"undisturbed: {quiet:.0f} s, weights {expected}", flush=True)
            job, done, same, late = ask(machine, updates), 0, 0, 0.0
            end = time.monotonic() + 60 * minutes
            while time.monotonic() < end:
                moment = time.monotonic() + draw.uniform(0, 2 * every)
                while time.monotonic() < moment and machine.store.jobs.get(job.id).state != "succeeded":
                    machine.keep_up()
                    time.sleep(0.05)
                row = machine.store.jobs.get(job.id)
                if row.state == "succeeded":
                    ours = digest_of(bundle(row))
                    done, same = done + 1, same + (ours == expected)
                    print(
                        f"job {row.id} done after {row.attempt} attempts, weights {ours}, {sum(kills.values())} kills so far",
                        flush=True,
                    )
                    job = ask(machine, updates)
                    continue
                target = draw.choice(TARGETS)
                if machine.kill(target):
                    kills[target] += 1
                else:
                    skipped += 1
            begin = time.monotonic()
            last = wait(machine, job, 1200)
            late = time.monotonic() - begin
            done, same = (
                done + (last.state == "succeeded"),
                same + (last.state == "succeeded" and digest_of(bundle(last)) == expected),
            )
            deadline = time.monotonic() + 120
            while not machine.answers() and time.monotonic() < deadline:
                machine.keep_up()
                time.sleep(0.5)
            answers = machine.answers()
            rows = machine.store.jobs.list()
            left = [path for path in Path(folder).rglob("*") if path.name.endswith((".tmp", ".old")) and path.is_file()]
            attempts = [row.attempt for row in rows if row.id != first.id]
        finally:
            machine.close()
    table_rows: list[list[object]] = [[f"killed: {name}", kills[name]] for name in TARGETS]
    table_rows += [
        ["kills in all", sum(kills.values())], ["moments without a job to kill", skipped],
        ["customizations begun and ended", f"{done} of {len(attempts)}"], ["with the very same weights", same],
        ["attempts of one, at most", max(attempts, default=0)], ["seconds undisturbed", f"{quiet:.0f}"],
        ["seconds from the last kill to the end", f"{late:.0f}"], ["files left half-written", len(left)],
        ["the studio answers at the end", "yes" if answers else "no"],
    ]  # fmt: skip
    return table_rows, done == same == len(attempts) and not left and answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long [60]")
    parser.add_argument("--every", type=float, default=12.0, help="seconds between two kills, on average [12]")
    parser.add_argument("--updates", type=int, default=60, help="updates of each training [60]")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows, well = soak(given.minutes, given.every, given.updates, given.seed)
    print(table(["", f"{given.minutes:g} minutes"], rows))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
