"""The resource usage of a job's process, measured in the process every two seconds."""

from __future__ import annotations

import sys
import time
from typing import Any

EVERY_SECONDS = 2.0


class UsageMeter:
    """Measures CPU in percent of one core, memory in bytes, and GPU memory in bytes if a GPU is used."""

    def __init__(self) -> None:
        import psutil

        self._process = psutil.Process()
        self._process.cpu_percent()  # the first call only starts counting
        self._last = time.monotonic()
        self._peak = 0

    def measure(self) -> dict[str, Any] | None:
        """`cpu`, `memory`, `peak`, `gpu`, `gpu_total`; None if measured less than EVERY_SECONDS ago or on failure."""
        import psutil

        if time.monotonic() - self._last < EVERY_SECONDS:
            return None
        self._last = time.monotonic()
        try:
            cpu, memory = self._process.cpu_percent(), int(self._process.memory_info().rss)
        except psutil.Error:
            return None
        self._peak = max(self._peak, memory)
        gpu, total = _gpu()
        return {"cpu": round(cpu, 1), "memory": memory, "peak": self._peak, "gpu": gpu, "gpu_total": total}


def _gpu() -> tuple[int, int]:
    """GPU memory reserved by this process and total, in bytes; neither loads torch nor initialises a GPU."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not getattr(cuda, "is_initialized", bool)():
        return 0, 0
    return int(cuda.memory_reserved()), int(cuda.mem_get_info()[1])
