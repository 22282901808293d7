"""/projects/{number}/phrases: what was found in the samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, StringConstraints

from engine.errors import InputError
from engine.workspace import latest_file
from studio.api import models, rows
from studio.api.auth import may
from studio.api.desk import Desk, DeskDep, Id, Limit, Offset
from studio.api.errors import Problem
from studio.files import read_rows

__all__ = ["router"]

router = APIRouter(tags=["phrases"])
Order = Literal["count", "longest", "shortest"]
Length = Annotated[int, Query(ge=0, le=1000)]


@router.get("/projects/{number}/phrases", dependencies=[may("read")])
def list_phrases(
    desk: DeskDep,
    number: Id,
    offset: Offset = 0,
    limit: Limit = 100,
    search: Annotated[str, Query(max_length=200, description="Words in the phrase or its back-translation.")] = "",
    min_length: Length = 0,
    max_length: Length = 1000,
    label: Annotated[str, Query(max_length=40, description="Kind, as NP.")] = "",
    layer: Annotated[int, Query(ge=-1, le=1000, description="Decoder layer from 0; -1: any.")] = -1,
    order: Order = "count",
) -> models.Page[models.Phrase]:
    """The phrases, the most frequent first unless asked otherwise."""
    desk.project(number)
    words = search.strip().casefold()
    found = [
        row
        for row in collected(desk, number)
        if min_length <= row["length"] <= max_length
        and (not label or row["label"] == label)
        and (layer < 0 or row["layer"] == layer)
        and (not words or words in row["text"].casefold() or words in row["source"].casefold())
    ]
    if order != "count":
        found.sort(key=lambda row: row["length"], reverse=order == "longest")  # stable: by count within
    part = rows.page(found, offset, limit)
    part["items"] = [models.Phrase(**row) for row in part["items"]]
    return models.Page[models.Phrase](**part)


class ExclusionWish(models.Given):
    action: Literal["exclude", "restore"]
    phrases: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=2000)]], Field(min_length=1, max_length=10_000)
    ]
    sentences: bool = Field(False, description="With the sentences that hold them: these are not trained on either.")


class Excluded(BaseModel):
    """What is left out now; it counts from the next training."""

    phrases: list[str]
    with_sentences: list[str] = Field(description="Those whose sentences are left out as well.")
    steps: int = Field(description="How many steps can be undone.")


def excluded(desk: Desk, number: int) -> Excluded:
    from engine.phrases.exclusions import Exclusions

    found = Exclusions.load(desk.service.workspace(number))
    return Excluded(
        phrases=list(found.phrases.values()),
        with_sentences=[text for key, text in found.phrases.items() if key in found.with_sentences],
        steps=len(found.steps),
    )


@router.get("/projects/{number}/phrases/exclusions", dependencies=[may("read")])
def list_exclusions(desk: DeskDep, number: Id) -> Excluded:
    """Phrases that are left out of the memory."""
    desk.project(number)
    return excluded(desk, number)


@router.post("/projects/{number}/phrases/exclusions", dependencies=[may("write")])
def change_exclusions(desk: DeskDep, number: Id, wish: ExclusionWish) -> Excluded:
    """Leave phrases out, or take them back in, in one step."""
    from engine.phrases.exclusions import Exclusions

    desk.project(number)
    folder = desk.service.workspace(number)
    if wish.action == "exclude":
        Exclusions.exclude(folder, wish.phrases, sentences=wish.sentences)
    else:
        Exclusions.restore(folder, wish.phrases)
    return excluded(desk, number)


@router.post("/projects/{number}/phrases/exclusions/undo", dependencies=[may("write")])
def undo_exclusion(desk: DeskDep, number: Id) -> Excluded:
    """Take the last step back."""
    from engine.phrases.exclusions import Exclusions

    desk.project(number)
    try:
        Exclusions.undo(desk.service.workspace(number))
    except InputError as error:
        raise Problem(409, str(error)) from None
    return excluded(desk, number)


def collected(desk: Desk, number: int) -> Sequence[dict[str, Any]]:
    """All phrases with layer and back-translation, by count; kept until a file changes."""
    folder = desk.service.workspace(number)
    files = (folder / "phrases.jsonl", latest_file(folder, "method/phrase_pairs.jsonl"))
    stamps = (path.stat().st_mtime_ns if path.exists() else 0 for path in files)
    return _collected(*files, *stamps, desk.service.decoder_layers(desk.project(number)))


@lru_cache(maxsize=4)
def _collected(phrases: Path, pairs: Path, *stamps_and_layers: int) -> Sequence[dict[str, Any]]:
    from engine.memory import assign_layers

    found = [row for row in read_rows(phrases) if "text" in row and "length" in row]
    layers = assign_layers([int(row["length"]) for row in found], stamps_and_layers[-1]) if found else []
    sources = {row.get("target"): str(row.get("source", "")) for row in read_rows(pairs)}
    made = [
        {
            "text": str(row["text"]),
            "length": int(row["length"]),
            "count": int(row.get("count", 1)),
            "label": str(row.get("label", "")),
            "layer": layer,
            "source": sources.get(row["text"], ""),
        }
        for row, layer in zip(found, layers, strict=True)
    ]
    return sorted(made, key=lambda row: (-row["count"], -row["length"], row["text"]))
