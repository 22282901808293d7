"""A sentence after the other through the studio's queue, alone and beside a job, as jobs wait and as the studio shares cores.

    python bench/beside_job.py --texts ../shared/data/heldout/ntrex.en-zh.tsv

The job is `tailormt translate` over the same texts, again and again, on all cores. Its threads spin while they wait
(`OMP_WAIT_POLICY=ACTIVE`) or sleep (as those of every process of ours do); the studio's thread takes all cores or half of them.
Seconds by the clock for all sentences, medians of the rounds.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WAITING = {"spin": {"OMP_WAIT_POLICY": "ACTIVE"}, "sleep": {"OMP_WAIT_POLICY": "PASSIVE"}}


class Job:
    """A process that translates the texts over and over."""

    def __init__(self, args: argparse.Namespace, texts: Path, waiting: str) -> None:
        self.command = [
            *(
                sys.executable,
                "-c",
                "from engine.cli.main import main; main()",
                "translate",
                "--quiet",
                "--base",
                args.base,
                "--source",
                args.source,
            ),
            *("--target", args.target, "-o", os.devnull, str(texts)),
        ]
        self.environment = os.environ | {"PYTHONPATH": str(ROOT)} | WAITING[waiting]
        self.stop = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        while not self.stop.is_set():
            self.process = subprocess.Popen(self.command, env=self.environment, stderr=subprocess.DEVNULL)
            self.process.wait()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield
        finally:
            self.stop.set()
            if self.process:
                self.process.kill()
            thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default=str(ROOT / "assets/models/en-zh"))
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="zh")
    parser.add_argument("--texts", type=Path, default=ROOT / "assets/samples/demo.en.txt")
    parser.add_argument("--lines", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    read = [line.split("\t")[0] for line in args.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    lines = read[: args.lines]
    print(f"{platform.machine()}, {os.cpu_count()} cores, {len(lines)} sentences, medians of {args.rounds}\n")
    print("| job's threads | studio's cores | s for the sentences | slowest round |\n|---|---|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.txt"
        texts.write_text("\n".join(read * 20) + "\n", encoding="utf-8")
        for waiting in ("", "spin", "sleep"):
            for sharing in (False, True):
                # A process of its own for each: one that has more threads than cores, even idle ones, spins less.
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    times = pool.submit(_timed, args, lines, texts, waiting, sharing).result()
                cores = "half" if sharing else "all"
                print(f"| {waiting or 'no job'} | {cores} | {statistics.median(times):.2f} | {max(times):.2f} |", flush=True)


def _timed(args: argparse.Namespace, lines: list[str], texts: Path, waiting: str, sharing: bool) -> list[float]:
    sys.path.insert(0, str(ROOT))
    from engine.core.settings import Settings
    from engine.serving.batcher import Batcher, TranslationSpec
    from engine.serving.model_cache import ModelCache

    batcher: Any = Batcher(ModelCache(Settings(device="cpu"), lambda: sharing))
    work = TranslationSpec.of(args.base, args.source, args.target)
    batcher.submit(work, lines[:2]).result()
    times = []

    def rounds() -> None:
        for _ in range(args.rounds):
            start = time.perf_counter()
            for line in lines:
                batcher.submit(work, [line]).result()
            times.append(time.perf_counter() - start)

    if not waiting:
        rounds()
        return times
    job = Job(args, texts, waiting)
    with job.at_work():
        time.sleep(8)  # until it has loaded its base
        rounds()
    return times


if __name__ == "__main__":
    main()
