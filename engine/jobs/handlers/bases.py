"""Adding a base as a job: downloaded from the hub or copied from a folder, checked, and registered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.json_object import Json
from engine.errors import InputError

if TYPE_CHECKING:
    from engine.jobs.registry import JobContext

KIND = "add_base"
TEXTS = ("origin", "revision", "name")


def check(arguments: Mapping[str, Any]) -> Json:
    """`origin` (hub id or folder), `revision`, `name` and `convert`. Raises InputError where there is no origin."""
    if not str(arguments.get("origin", "")).strip():
        raise InputError("A job that adds a base needs origin, a hub id or a folder.")
    return {key: str(arguments.get(key, "")).strip() for key in TEXTS} | {"convert": bool(arguments.get("convert"))}


def run(context: JobContext) -> Json:
    """Add it; returns its name and folder. Where an earlier attempt came to the end, it is taken as it is."""
    from engine.base.registry import BaseRegistry

    request, shelf = check(context.job.arguments), BaseRegistry(context.settings)
    name = request["name"] or Path(request["origin"]).name
    entry = next((one for one in shelf.entries() if one.name == name and not one.shipped), None)
    if entry is None or context.job.attempt < 2 or entry.origin.get("origin") != request["origin"]:
        entry = shelf.add(
            request["origin"],
            name=name,
            revision=request["revision"],
            convert=request["convert"],
            progress=context.progress,
        )
    return {"name": entry.name, "folder": str(entry.folder)}
