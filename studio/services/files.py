"""Reading JSONL files that the engine may still be writing, file names from titles, and the device and free resources."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from engine.core.cores import usable_cores

JsonRow = Mapping[str, Any]  # an object of a JSONL file; rows are shared, so they must not be changed


def read_rows(path: Path) -> list[JsonRow]:
    """The objects of a JSONL file, without invalid lines such as a half-written last one; empty if there is no file."""
    try:
        stat = path.stat()
    except OSError:
        return []
    return _read_rows(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=16)
def _read_rows(path: Path, modified: int, size: int) -> list[JsonRow]:
    rows: list[JsonRow] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(row, dict):
                rows.append(row)
    return rows


def slug(name: str) -> str:
    """A file name made from a title: letters of any script and digits are kept, other characters become hyphens."""
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-")[:60] or "plugin"


def device_line() -> str:
    """The device and its used and total memory: `CPU, 2 cores · 3.1 of 24 GiB`."""
    memory = psutil.virtual_memory()
    used = f"{(memory.total - memory.available) / 2**30:.1f}\u00a0of\u00a0{memory.total / 2**30:.0f}\u00a0GiB"
    torch = sys.modules.get("torch")  # not imported for this only; has no `cuda` yet while it loads
    if hasattr(torch, "cuda") and torch is not None and torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        return f"{torch.cuda.get_device_name()} · {(total - free) / 2**30:.1f} of {total / 2**30:.0f} GiB"
    count = usable_cores()
    return f"CPU, {count} {'core' if count == 1 else 'cores'} · {used}"


def machine(folder: Path) -> dict[str, int]:
    """Total and free memory of the machine, and free space on the disk of `folder`, in bytes."""
    memory, free = psutil.virtual_memory(), shutil.disk_usage(folder).free
    return {"memory": int(memory.total), "free_memory": int(memory.available), "free_disk": int(free)}
