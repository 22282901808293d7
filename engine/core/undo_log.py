"""A user's decisions as a file of steps: one JSON object per line, appended to and never changed, so each can be undone."""

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
    """What was done to sentences, by their keys, or to phrases, with the sentences that hold them or without."""

    at: str  # ISO 8601, UTC
    action: Required[str]
    keys: dict[str, str]
    phrases: list[str]
    sentences: bool


_writing = threading.Lock()


def read_steps(path: Path, actions: Collection[str], field: str, kind: type) -> list[Step]:
    """The steps that hold, first to last: each has one of the actions and, as `field`, a `kind`.

    A line that is half written, or unknown, is passed over; a file that is not there holds none.
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
    """Write a step down, with the time. Raises StorageError when it cannot be written."""
    row = {"at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), **step}
    line = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    with _writing, storage_errors("the decision", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            if file.tell():  # a line that a crash cut off must not swallow this one
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def append_undo(path: Path, steps: Collection[Step]) -> None:
    """Take the last of the steps that hold back. Raises InputError where there is none."""
    if not steps:
        raise InputError("There is nothing to undo.")
    append_step(path, {"action": UNDO})
