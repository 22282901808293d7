"""Inputs that nobody meant, a million and more: every reader, the bundle loader, plugin files, settings, REST routes.

    python bench/fuzz.py --minutes 60 --folder fuzz-out         as long as that, two processes
    python bench/fuzz.py --inputs 1000000 --folder fuzz-out     until so many were tried, earlier runs in the folder counted
    python bench/fuzz.py --replay fuzz-out/crashes/…/*.bin      one input again, with its traceback
    python bench/fuzz.py --targets corpus.tmx document.html     only some of them

A run goes on where the last one in its folder ended: inputs that gave something new are kept there and changed further, and
every process counts what it tried. An input is found guilty when it raises anything but a TailorError, takes longer than
five seconds of the processor or more than 1 GiB of memory, or writes, opens or calls where it has no business
(tests/fuzzing/guard.py). The exit code is 1 when one was. The longest and the largest input of each target are told at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import logging
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SLICE = 2.0  # seconds on one target before the next, a quarter of it on a slow one
SLOW = 150  # inputs a second
MOST_KEPT = 400  # inputs a target
STUCK = 90.0  # seconds of the processor without a word after which a process is ended; its input took them
MEMORY = 6 << 30  # bytes of address space a process may have
MOST_MEMORY = 1024.0  # MiB that one input may add at its peak


def guilty(target: Any, data: bytes, folder: Path, guard: Any) -> tuple[str, str, str]:
    """What came out, and of a guilty input a short name and the traceback."""
    from tests.fuzzing.targets import emptied, outcome

    work = emptied(folder / "work")
    try:
        with guard(work):
            return outcome(target, data, work), "", ""
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        ours = [
            frame
            for frame in frames
            if str(ROOT) in frame.filename and ".venv" not in frame.filename and "fuzz" not in frame.filename
        ]
        position = (ours or frames)[-1]
        name = f"{target.name}-{type(error).__name__}-{Path(position.filename).stem}-{position.name}"
        return "", name, "".join(traceback.format_exception(error))


def forget_peak() -> None:
    """From now on `resident("VmHWM")` is the peak since this call; does nothing where there is no /proc."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def resident(which: str) -> float:
    """MiB of this process that are in memory (`VmRSS`) or were at the peak (`VmHWM`); 0 where there is no /proc."""
    with contextlib.suppress(OSError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.split(f"{which}:")[1].split()[0]) / 1024
    return 0.0


class Process:
    """One of the processes: its counts, its inputs, its turn over the targets."""

    def __init__(self, number: int, out: Path, names: list[str], seed: int) -> None:
        from tests.fuzzing.targets import TARGETS

        self.out, self.state = out, out / f"state-{number}.json"
        self.targets = [TARGETS[name] for name in names]
        self.counts: Counter[str] = Counter()
        self.worst: dict[str, list[float]] = {}  # seconds and MiB of the longest and the largest input of a target
        self.runs = 0
        with contextlib.suppress(OSError, ValueError):
            data = json.loads(self.state.read_text(encoding="utf-8"))
            self.counts, self.runs, self.worst = Counter(data["counts"]), data["runs"] + 1, data.get("worst", {})
        self.rng = random.Random(f"{seed} {number} {self.runs}")
        self.pools: dict[str, list[bytes]] = {}
        self.seen: dict[str, set[str]] = {}
        self.paces: dict[str, float] = {}  # inputs a second of the processor

    def save(self) -> None:
        temporary = self.state.with_suffix(".tmp")
        values = {"counts": self.counts, "runs": self.runs, "pid": os.getpid(), "worst": self.worst}
        temporary.write_text(json.dumps(values), encoding="utf-8")
        temporary.replace(self.state)

    def work(self, scratch: Path, guard: Any, until: float, inputs: int) -> None:
        """Turn after turn until the time is over or all processes together have tried so many."""
        parent = os.getppid()
        while time.time() < until and total(self.out) < inputs and os.getppid() == parent:
            for target in self.targets:
                if target.name not in self.pools:
                    self.begin(target, scratch)
                self.turn(target, scratch, guard)
                self.save()
                if time.time() >= until or os.getppid() != parent:
                    break

    def begin(self, target: Any, scratch: Path) -> None:
        """Good inputs and what earlier runs kept; the first call loads what the reader needs, without a clock."""
        from tests.fuzzing.targets import emptied, outcome

        folder = self.out / "inputs" / target.name
        selected = [file.read_bytes() for file in sorted(folder.glob("*.bin"))]
        self.pools[target.name], self.seen[target.name] = [*target.seeds, *selected], set()
        with contextlib.suppress(OSError):
            self.seen[target.name].update((folder / "seen.txt").read_text(encoding="utf-8").splitlines())
        for data in target.seeds:
            with contextlib.suppress(Exception):
                self.seen[target.name].add(outcome(target, data, emptied(scratch / "work")))
        self.save()

    def turn(self, target: Any, scratch: Path, guard: Any) -> None:
        from tests.fuzzing.mutate import mutate

        pool, seen = self.pools[target.name], self.seen[target.name]
        begin, used, before = time.monotonic(), time.process_time(), self.counts[target.name]
        share = 1.0 if self.paces.get(target.name, 0.0) >= SLOW else 0.25
        while time.monotonic() < begin + SLICE * share:
            data = mutate(self.rng.choice(pool), self.rng, target.kind, pool)
            (scratch / "input.bin").write_bytes(data)
            (scratch / "target").write_text(target.name, encoding="utf-8")
            forget_peak()
            begun, held = time.process_time(), resident("VmRSS")
            result, crime, words = guilty(target, data, scratch, guard)
            cost = [time.process_time() - begun, resident("VmHWM") - held]
            self.worst[target.name] = [*map(max, cost, self.worst.get(target.name, cost))]
            self.counts[target.name] += 1
            if not crime and cost[1] > MOST_MEMORY:
                crime, words = f"{target.name}-Memory", f"{cost[1]:.0f} MiB"
            if crime:
                keep_crash(self.out, crime, data, words)
            elif result not in seen and len(pool) < MOST_KEPT:
                seen.add(result)
                pool.append(data)
                folder = self.out / "inputs" / target.name
                folder.mkdir(parents=True, exist_ok=True)
                with (folder / "seen.txt").open("a", encoding="utf-8", errors="replace") as seen_file:
                    seen_file.write(result.replace("\n", " ") + "\n")
                (folder / f"{hashlib.sha256(data).hexdigest()[:16]}.bin").write_bytes(data)
        self.paces[target.name] = (self.counts[target.name] - before) / max(1e-3, time.process_time() - used)


def keep_crash(out: Path, name: str, data: bytes, words: str) -> None:
    """Keep the first three inputs of a kind, the shortest ones of all that came."""
    folder = out / "crashes" / name
    folder.mkdir(parents=True, exist_ok=True)
    inputs = sorted(folder.glob("*.bin"), key=lambda file: file.stat().st_size)
    if len(inputs) >= 3:
        if inputs[-1].stat().st_size <= len(data):
            return
        inputs[-1].unlink()
        inputs[-1].with_suffix(".txt").unlink(missing_ok=True)
    stem = hashlib.sha256(data).hexdigest()[:16]
    (folder / f"{stem}.bin").write_bytes(data)
    (folder / f"{stem}.txt").write_text(words, encoding="utf-8", errors="replace")


def total(out: Path) -> int:
    """Inputs that were tried in this folder, by all processes and runs."""
    return sum(counted(out).values())


def counted(out: Path) -> Counter[str]:
    result: Counter[str] = Counter()
    for file in out.glob("state-*.json"):
        with contextlib.suppress(OSError, ValueError):
            result.update(json.loads(file.read_text(encoding="utf-8"))["counts"])
    return result


def worst(out: Path) -> dict[str, list[float]]:
    """Seconds and MiB of the longest and the largest input of each target, in all processes and runs."""
    result: dict[str, list[float]] = {}
    for file in out.glob("state-*.json"):
        with contextlib.suppress(OSError, ValueError):
            for name, cost in json.loads(file.read_text(encoding="utf-8")).get("worst", {}).items():
                result[name] = [*map(max, cost, result.get(name, cost))]
    return result


def process(number: int, out: Path, names: list[str], seed: int, until: float, inputs: int, scratch: Path) -> None:
    """The body of one process."""
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / "canary").write_text("nobody reads this", encoding="utf-8")
    (scratch / "tmp").mkdir(exist_ok=True)
    os.environ |= {
        "TAILORMT_HOME": str(scratch / "home"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(scratch / "tmp"),
    }
    tempfile.tempdir = None
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if hasattr(os, "nice"):
        os.nice(5)
    from tests.fuzzing.guard import Guard
    from tests.fuzzing.targets import warm

    warm()
    guard = Guard(scratch / "canary", (scratch,))
    Process(number, out, names, seed).work(scratch, guard, until, inputs)


def watch(args: argparse.Namespace, out: Path, names: list[str]) -> None:
    """Start the processes, and anew those that are stuck or died; report now and then."""
    until = time.time() + args.minutes * 60 if args.minutes else float("inf")
    context = multiprocessing.get_context("spawn")
    root = Path(tempfile.mkdtemp(prefix="tailormt-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    before, begin, text = total(out), time.time(), time.time()

    def start(number: int) -> Any:
        child = context.Process(target=process, args=(number, out, names, args.seed, until, args.inputs, root / str(number)))
        child.start()
        return child

    running = {number: start(number) for number in range(args.processes)}
    beats: dict[int, tuple[float, float]] = {}
    try:
        while any(child.is_alive() for child in running.values()):
            time.sleep(1)
            for number, child in list(running.items()):
                state, scratch = out / f"state-{number}.json", root / str(number)
                beat, used = state.stat().st_mtime if state.exists() else 0.0, seconds(child.pid)
                last = beats.get(number)
                if last is None or last[0] != beat or used < last[1]:
                    beats[number] = (beat, used)
                stuck = child.is_alive() and used - beats[number][1] > STUCK
                died = not child.is_alive() and child.exitcode not in (0, None)
                if stuck or died:
                    if stuck:
                        child.kill()
                        child.join()
                    with contextlib.suppress(OSError):
                        name = (scratch / "target").read_text(encoding="utf-8")
                        why = "Stuck" if stuck else f"Died{child.exitcode}"
                        keep_crash(out, f"{name}-{why}", (scratch / "input.bin").read_bytes(), f"{why}: the process was ended")
                    if time.time() < until:
                        running[number] = start(number)
            if time.time() - text > 60:
                text = time.time()
                done = total(out)
                crashes = len(list((out / "crashes").glob("*")))
                print(f"{done:,} inputs, {(done - before) / (text - begin):.0f} a second, {crashes} kinds of crashes", flush=True)
    finally:
        for child in running.values():
            child.kill() if child.is_alive() else None
        shutil.rmtree(root, ignore_errors=True)


def seconds(pid: int) -> float:
    """What a process has used of the processor."""
    import psutil

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def replay(files: list[str]) -> int:
    """Run inputs again, each named by its crash folder (TARGET-…) or --targets."""
    from tests.fuzzing.guard import Guard
    from tests.fuzzing.targets import TARGETS, warm

    warm()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="tailormt-fuzz-") as name:
        scratch = Path(name)
        (scratch / "canary").touch()
        os.environ |= {"TAILORMT_HOME": str(scratch / "home"), "TMPDIR": name}
        tempfile.tempdir = None
        guard = Guard(scratch / "canary", (scratch,))
        for file in map(Path, files):
            target = TARGETS[file.parent.name.split("-")[0]]
            for seed in target.seeds[:3]:  # what is loaded once is not the input's time
                guilty(target, seed, scratch, guard)
            result, crime, words = guilty(target, file.read_bytes(), scratch, guard)
            print(f"{file}: {crime or result}\n{words}")
            bad += bool(crime)
    return int(bad > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=0, help="how long; 0: until --inputs")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many, earlier runs in the folder counted")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--folder", default="fuzz-out", help="where inputs, crashes and counts are kept")
    parser.add_argument("--targets", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", nargs="+", default=[], metavar="FILE")
    args = parser.parse_args()
    if args.replay:
        return replay(args.replay)
    from tests.fuzzing.targets import TARGETS

    names = args.targets or list(TARGETS)
    strange = [name for name in names if name not in TARGETS]
    if strange:
        parser.error(f"There is no target {strange[0]}. Known: {', '.join(TARGETS)}.")
    out = Path(args.folder).resolve()
    out.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    watch(args, out, names)
    counts, crashes = counted(out), sorted(folder.name for folder in (out / "crashes").glob("*"))
    costs = worst(out)
    for name in names:
        longest, mib = costs.get(name, (0.0, 0.0))
        print(f"{name:20} {counts[name]:>10,}  {longest:6.2f} s  {mib:6.0f} MiB at most")
    print(f"{'all':20} {sum(counts.values()):>10,} inputs, {(time.time() - begin) / 60:.0f} minutes now")
    print(f"{len(crashes)} kinds of crashes")
    for name in crashes:
        print(f"  {name}")
    return int(bool(crashes))


if __name__ == "__main__":
    sys.exit(main())
