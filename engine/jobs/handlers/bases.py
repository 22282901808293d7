"""The job that adds a base: downloads or copies it, checks it, and registers it."""

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
    """The arguments: `origin` (hub id or folder), `revision`, `name`, `convert`. Raises InputError without an origin."""
    if not str(arguments.get("origin", "")).strip():
        raise InputError("A job that adds a base needs origin, a hub id or a folder.")
    return {key: str(arguments.get(key, "")).strip() for key in TEXTS} | {"convert": bool(arguments.get("convert"))}


def run(context: JobContext) -> Json:
    """Add the base, unless an earlier attempt already did; returns its name and folder."""
    from engine.base.registry import BaseRegistry

    request, registry = check(context.job.arguments), BaseRegistry(context.settings)
    name = request["name"] or Path(request["origin"]).name
    entry = next((candidate for candidate in registry.entries() if candidate.name == name and not candidate.shipped), None)
    if entry is None or context.job.attempt < 2 or entry.origin.get("origin") != request["origin"]:
        entry = registry.add(
            request["origin"], name=name, revision=request["revision"], convert=request["convert"], progress=context.progress
        )
    return {"name": entry.name, "folder": str(entry.folder)}
