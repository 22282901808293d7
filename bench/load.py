"""How long it takes from starting `tailormt` to the first translation, with the files cold and warm.

    python bench/load.py                        five warm runs of the shipped base
    python bench/load.py --cold                 and one with the system's file cache dropped before it (root, Linux)
    python bench/load.py --base nllb-200 --source en --target de
    python bench/load.py --home FOLDER          the command through the studio that runs over this data folder

Each run is a process of its own that loads the base and translates one sentence. Wall-clock seconds count the process from
its start to its end; CPU seconds do not depend on what else the machine does. The parts are measured inside the process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SENTENCE = "The rain stopped."

INSIDE = """
import json, sys, time
begin = time.perf_counter()
from engine.base import BaseModel
from engine.base.load import quick_imports
from engine.decoding.translate import translate
with quick_imports():
    import torch
    from transformers import AutoTokenizer
    from transformers.models.marian.modeling_marian import MarianMTModel
imported = time.perf_counter()
base = BaseModel.load(sys.argv[1], sys.argv[2], sys.argv[3])
loaded = time.perf_counter()
translate(base, [sys.argv[4]])
print(json.dumps({"imports": imported - begin, "base": loaded - imported, "sentence": time.perf_counter() - loaded}))
"""


def run(command: list[str]) -> dict[str, Any]:
    """Wall-clock and CPU seconds of a process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, "out": done.stdout}


def drop_caches() -> bool:
    """Forget all files that the system holds in memory; False where that is not allowed."""
    try:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        return False
    return True


def machine() -> str:
    """The processor, its cores, and how busy the machine is."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        models = [x for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    return f"{name}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", default="en-zh")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="zh")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--home", default="", help="a data folder whose studio is running [a new one, without]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "one.txt"
        file.write_text(SENTENCE + "\n", encoding="utf-8")
        command = ["-m", "engine.cli", "translate", "--quiet", "--base", args.base]
        command += ["--source", args.source, "--target", args.target, "--home", args.home or folder, str(file)]
        print(f"{machine()}; Python {platform.python_version()}; base {args.base}\n")
        print("| run | wall s | CPU s |\n|---|---|---|")
        if args.cold:
            if drop_caches():
                cold = run(command)
                print(f"| cold: no file in memory | {cold['wall']:.2f} | {cold['cpu']:.2f} |")
            else:
                print("| cold: not allowed here | | |")
        run(command)  # warms the files
        runs = [run(command) for _ in range(args.runs)]
        best, walls = min(r["wall"] for r in runs), [r["wall"] for r in runs]
        print(f"| warm, best of {args.runs} | {best:.2f} | {min(r['cpu'] for r in runs):.2f} |")
        print(f"| warm, median | {statistics.median(walls):.2f} | {statistics.median([r['cpu'] for r in runs]):.2f} |")
        parts = [json.loads(run(["-c", INSIDE, args.base, args.source, args.target, SENTENCE])["out"]) for _ in range(3)]
        print("\n| part, best of 3 | wall s |\n|---|---|")
        for key, name in (("imports", "torch and transformers"), ("base", "the base"), ("sentence", "first sentence")):
            print(f"| {name} | {min(part[key] for part in parts):.2f} |")
        print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
