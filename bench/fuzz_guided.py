"""The same inputs as fuzz.py's, changed where coverage says that something new was reached: atheris, libFuzzer's for Python.

    pip install atheris
    python bench/fuzz_guided.py --seconds 60 --folder fuzz-out                 every target a minute, one after the other
    python bench/fuzz_guided.py --seconds 600 --targets corpus.tmx card        only some of them

What reached something new is kept in `FOLDER/guided/TARGET`, where the next run goes on; inputs count with those of fuzz.py in
the same folder, and a guilty one is kept and replayed like its. The exit code is 1 when one was found.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SAVED = 1.0  # seconds between two writes of the count
LONGEST = 1 << 16  # bytes of an input
BODY = "TAILORMT_FUZZ_FOLDER"  # set for the process that fuzzes one target


def fuzz(name: str, out: Path, seconds: int, scratch: Path) -> None:
    """The body of one process: libFuzzer on one target, which ends the process itself."""
    import atheris

    (scratch / "canary").write_text("nobody reads this", encoding="utf-8")
    (scratch / "tmp").mkdir()
    os.environ |= {"TAILORMT_HOME": str(scratch / "home"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    os.environ["TMPDIR"] = str(scratch / "tmp")
    tempfile.tempdir = None
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with atheris.instrument_imports(include=["engine", "studio"]):
        from fuzz import guilty, keep_crash

        from tests.fuzzing.guard import Guard
        from tests.fuzzing.targets import TARGETS, emptied, outcome, warm

        warm()
        target = TARGETS[name]
        for seed in target.seeds:  # readers load what they need when they need it: here, where it is watched
            with contextlib.suppress(Exception):
                outcome(target, seed, emptied(scratch / "work"))
    guard = Guard(scratch / "canary", (scratch,))
    selected, seeds = out / "guided" / name, scratch / "seeds"
    selected.mkdir(parents=True, exist_ok=True)
    seeds.mkdir()
    inputs = out / "inputs" / name  # what fuzz.py kept
    for data in [*target.seeds, *(file.read_bytes() for file in inputs.glob("*.bin"))]:
        if len(data) <= LONGEST:
            (seeds / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    state = out / f"state-guided-{name}.json"
    count, runs = 0, 0
    with contextlib.suppress(OSError, ValueError, KeyError):
        values = json.loads(state.read_text(encoding="utf-8"))
        count, runs = values["counts"][name], values["runs"] + 1
    written = time.monotonic()

    def once(data: bytes) -> None:
        nonlocal count, written
        _, crime, words = guilty(target, data, scratch, guard)
        count += 1
        if crime:  # kept, and the run goes on: one crash must not hide the next
            keep_crash(out, crime, data, words)
        if crime or time.monotonic() - written > SAVED:
            written = time.monotonic()
            temporary = state.with_suffix(".tmp")
            temporary.write_text(json.dumps({"counts": {name: count}, "runs": runs, "pid": os.getpid()}))
            temporary.replace(state)

    limits = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-rss_limit_mb=6144", "-timeout=60", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={scratch}/", str(selected), str(seeds)], once)
    atheris.Fuzz()


def main() -> int:
    if os.environ.get(BODY):  # before anything of ours is imported, so that all of it is watched
        fuzz(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), Path(os.environ[BODY]))
        return 0
    from fuzz import counted, keep_crash

    from tests.fuzzing.targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="how long on each target [60]")
    parser.add_argument("--folder", default="fuzz-out", help="where inputs, crashes and counts are kept")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=list(TARGETS), metavar="NAME")
    args = parser.parse_args()
    out = Path(args.folder).resolve()
    out.mkdir(parents=True, exist_ok=True)
    try:
        import atheris  # noqa: F401
    except ImportError:
        parser.error("atheris is not installed: pip install atheris")
    failed = []
    for name in args.targets:
        before = counted(out)[name]
        with tempfile.TemporaryDirectory(prefix="tailormt-fuzz-") as scratch:
            ended = subprocess.run(
                [sys.executable, __file__, name, str(out), str(args.seconds)],
                capture_output=True, text=True, check=False, env={**os.environ, BODY: scratch},
            )  # fmt: skip
            for file in Path(scratch).iterdir():  # what libFuzzer writes of an input that ended the process
                if file.name.startswith(("crash-", "timeout-", "oom-")):
                    keep_crash(out, f"{name}-Died", file.read_bytes(), ended.stderr)
        if ended.returncode:
            failed.append(name)
            print(ended.stderr[-2000:])
        print(f"{name:20} {counted(out)[name] - before:>10,} inputs, {len(list((out / 'guided' / name).glob('*')))} kept")
    crashes = sorted(folder.name for folder in (out / "crashes").glob("*"))
    print(f"{sum(counted(out).values()):,} inputs in all; {len(crashes)} kinds of crashes")
    for name in crashes:
        print(f"  {name}")
    return int(bool(crashes or failed))


if __name__ == "__main__":
    sys.exit(main())
