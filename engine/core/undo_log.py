"""A user's decisions as a file of steps: one JSON object per line, append-only, so each can be undone."""

from __future__ import annotations

import datetime
import json
import os
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Required, TypedDict, cast

from engine.errors import InputError, storage_errors

UNDO = "undo"


class Step(TypedDict, total=False):
    """A decision about sentences, by their keys, or about phrases, with or without the sentences that contain them."""

    at: str  # ISO 8601, UTC
    action: Required[str]
    keys: dict[str, str]
    phrases: list[str]
    sentences: bool


_writing = threading.Lock()


def read_steps(path: Path, actions: Collection[str], field: str, kind: type) -> list[Step]:
    """The steps not undone, first to last: each has one of the actions and a `kind` in `field`.

    Incomplete and unknown lines are skipped; a missing file has no steps.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    steps: list[Step] = []
    for line in lines:
        try:
            step = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(step, dict):
            continue
        if step.get("action") == UNDO and steps:
            steps.pop()
        elif step.get("action") in actions and isinstance(step.get(field), kind):
            steps.append(cast("Step", step))
    return steps


def append_step(path: Path, step: Step) -> None:
    """Append a step, with the time. Raises StorageError if it cannot be written."""
    row = {"at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), **step}
    line = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    with _writing, storage_errors("the decision", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            if file.tell():  # a line cut off by a crash must not swallow this one
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def append_undo(path: Path, steps: Collection[Step]) -> None:
    """Undo the last of the current steps. Raises InputError if there is none."""
    if not steps:
        raise InputError("There is nothing to undo.")
    append_step(path, {"action": UNDO})
