"""Files that the engine wrote, read while it may still be writing them; names for new ones; the machine in one line."""

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

JsonRow = Mapping[
    str, Any
]  # an object of a JSONL file, as the engine wrote it; rows are shared, so nobody changes them


def read_rows(path: Path) -> list[JsonRow]:
    """The objects of a JSONL file; none when it is not there. A half-written last line is passed over."""
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
    """A file name from a title: letters (of any script) and digits, the rest as hyphens."""
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-")[:60] or "plugin"


def device_line() -> str:
    """The device and its memory: `CPU, 2 cores · 3.1 of 24 GiB`."""
    memory = psutil.virtual_memory()
    used = f"{(memory.total - memory.available) / 2**30:.1f}\u00a0of\u00a0{memory.total / 2**30:.0f}\u00a0GiB"
    torch = sys.modules.get("torch")  # never loaded for this line's sake; while it loads, it has no `cuda` yet
    if hasattr(torch, "cuda") and torch is not None and torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        return f"{torch.cuda.get_device_name()} · {(total - free) / 2**30:.1f} of {total / 2**30:.0f} GiB"
    count = usable_cores()
    return f"CPU, {count} {'core' if count == 1 else 'cores'} · {used}"


def machine(folder: Path) -> dict[str, int]:
    """Memory of the machine, and what of memory and of the disk of a folder is free, in bytes."""
    memory, free = psutil.virtual_memory(), shutil.disk_usage(folder).free
    return {"memory": int(memory.total), "free_memory": int(memory.available), "free_disk": int(free)}
