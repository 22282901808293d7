"""A process that opens the store, loads the base and translates, then plugins that are new to it (`serving.thousand_plugins`).

    python cold_start.py BEGIN HOME LOADED_PLUGINS DIFFERENT BASE SOURCE TARGET

Prints one JSON object: seconds since BEGIN and of processor time, MiB after each part.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.core.settings import load_settings
from engine.decoding.translate import translate
from engine.serving.model_cache import ModelCache
from engine.store import Store

TEXTS = ["The rain stopped."]


def resident() -> float:
    """MiB of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(begin: float, home: Path, loaded: int, different: int, base_path: str, source: str, target: str) -> None:
    store = Store("sqlite:///" + str(home / "speed.db"))
    rows = store.plugins.list(1)
    models = ModelCache(load_settings().replace(home=str(home), loaded_plugins=loaded))
    base = models.base(base_path, source, target)
    translate(base, TEXTS)
    values = {"start": time.time() - begin, "start cpu": time.process_time(), "plugins": len(rows), "after base": resident()}
    cold, cpu = [], []
    for number, path in enumerate(sorted({row.path for row in rows})[:different]):
        clock, used = time.perf_counter(), time.process_time()
        translate(base, TEXTS, models.plugin(path, base))
        cold.append(time.perf_counter() - clock)
        cpu.append(time.process_time() - used)
        if number + 1 == 2 * loaded:
            values["after twice as many as are kept"] = resident()
    values |= {
        "cold": statistics.median(cold), "cold cpu": statistics.median(cpu), "slowest": max(cold), "loaded": len(cold),
        "at the end": resident(), "held": len(models._plugins),
    }  # fmt: skip
    print(json.dumps(values))


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:8])
