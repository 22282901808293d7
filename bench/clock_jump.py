"""Set the clock forward and back by hours while a plugin is made, and compare the plugin with an undisturbed one.

    python bench/clock_jump.py                                  needs a C compiler

A data folder of its own and a worker as a process, whose wall clock is moved by clock_jump.c. A small customization of a
bundled base is made undisturbed, and again while the clock jumps three hours ahead, a day back, and to the right time
again. Neither may the job be taken for dead, nor be interrupted, nor wait for hours, and both plugins must have the same
weights bit for bit. Printed is what the store and the job's log say; the exit code is 1 where something differs.
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from soak import LONGEST, Machine, ask, digest  # noqa: E402

from engine.store import JobRow  # noqa: E402

HOUR = 3600
JUMPS = (3 * HOUR, -24 * HOUR, 0)  # seconds ahead of the right time
BETWEEN = 6.0  # seconds between two jumps


class Clock:
    """The wall clock of the processes that get `environment`, so many seconds ahead as `set` says."""

    def __init__(self, folder: Path) -> None:
        self.file, library = folder / "clock", folder / "clock_jump.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"], check=True)
        self.set(0)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_AHEAD": str(self.file)}

    def set(self, ahead: int) -> None:
        """In the file as it is, since the processes have it mapped."""
        with self.file.open("r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("=q", ahead))

    def reads(self) -> str:
        """The time as a process with this clock sees it."""
        done = subprocess.run(["date", "-u", "+%F %T"], env=os.environ | self.environment, capture_output=True, check=True)
        return done.stdout.decode().strip()


def customize(machine: Machine, updates: int, clock: Clock | None) -> tuple[JobRow, float]:
    """A customization from its place in the queue to its end, and its seconds; the clock jumps in it where there is one."""
    job, begin, jumps = ask(machine, updates).id, time.monotonic(), list(JUMPS)
    moment = begin + BETWEEN
    while (row := machine.store.jobs.get(job)).state != "succeeded" and time.monotonic() < begin + LONGEST:
        machine.keep_up(["worker"])
        if clock and jumps and time.monotonic() > moment:
            clock.set(jumps.pop(0))
            print(f"{row.state} {row.step!r} {row.done:g} of {row.total}: the clock now reads {clock.reads()}", flush=True)
            moment = time.monotonic() + BETWEEN
        time.sleep(0.2)
    return row, time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=60, help="updates of each training [60]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailormt-clock-") as folder:
        clock = Clock(Path(folder))
        machine = Machine(Path(folder), None, 1)
        machine.environment |= clock.environment
        try:
            quiet, alone = customize(machine, args.updates, None)
            jumped, seconds = customize(machine, args.updates, clock)
            log = Path(jumped.log_path).read_text(encoding="utf-8", errors="replace") if jumped.log_path else ""
            weights = [digest(Path(row.result["plugin"])) if row.state == "succeeded" else row.error for row in (quiet, jumped)]
        finally:
            clock.set(0)
            machine.close()
    print(f"undisturbed: {quiet.state} in {alone:.0f} s, attempt {quiet.attempt}, weights {weights[0]}")
    jumps = ", ".join(f"{jump / HOUR:+g} h" for jump in JUMPS)
    print(f"the clock set {jumps}: {jumped.state} in {seconds:.0f} s, attempt {jumped.attempt}, weights {weights[1]}")
    wrong = [line for line in log.splitlines() if "Traceback" in line]
    return 0 if jumped.state == "succeeded" and jumped.attempt == 1 and weights[0] == weights[1] and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
