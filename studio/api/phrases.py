"""/projects/{number}/phrases: the phrases found in the samples, and exclusions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field, StringConstraints

from engine.memory import assign_layers
from engine.phrases.exclusions import Exclusions
from studio.api import serializers as rows
from studio.api.deps import Deps, DepsDep, Limit, Offset, ProjectDep
from studio.api.errors import conflicts
from studio.api.permissions import may
from studio.api.schemas import models
from studio.services.files import read_rows
from studio.services.phrases import modified_times, pairs_of

router = APIRouter(tags=["phrases"])
Order = Literal["count", "longest", "shortest"]
Length = Annotated[int, Query(ge=0, le=1000)]


@dataclass
class PhraseQuery:
    """The filters, order and page of a list of phrases."""

    offset: Offset = 0
    limit: Limit = 100
    search: Annotated[str, Query(max_length=200, description="Words in the phrase or its back-translation.")] = ""
    min_length: Length = 0
    max_length: Length = 1000
    label: Annotated[str, Query(max_length=40, description="Kind, as NP.")] = ""
    layer: Annotated[int, Query(ge=-1, le=1000, description="Decoder layer from 0; -1: any.")] = -1
    order: Order = "count"


@router.get("/projects/{number}/phrases", dependencies=[may("read")])
def list_phrases(
    deps: DepsDep, project: ProjectDep, query: Annotated[PhraseQuery, Depends(PhraseQuery)]
) -> models.Page[models.Phrase]:
    """The phrases of the samples, most frequent first unless another order is requested."""
    words = query.search.strip().casefold()
    phrases = [
        row
        for row in collected(deps, project.id)
        if query.min_length <= row.length <= query.max_length
        and (not query.label or row.label == query.label)
        and (query.layer < 0 or row.layer == query.layer)
        and (not words or words in row.text.casefold() or words in row.source.casefold())
    ]
    if query.order != "count":
        phrases.sort(key=lambda row: row.length, reverse=query.order == "longest")  # stable: by count within
    return rows.page(models.Page[models.Phrase], phrases, query.offset, query.limit, lambda row: row)


class ExclusionRequest(models.Given):
    action: Literal["exclude", "restore"]
    phrases: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=2000)]], Field(min_length=1, max_length=10_000)
    ]
    sentences: bool = Field(False, description="With the sentences that hold them: these are not trained on either.")


class Excluded(BaseModel):
    """The phrases that are excluded, which takes effect with the next training."""

    phrases: list[str]
    with_sentences: list[str] = Field(description="Those whose sentences are left out as well.")
    steps: int = Field(description="How many steps can be undone.")


def excluded(deps: Deps, number: int) -> Excluded:
    exclusions = Exclusions.load(deps.service.workspace(number))
    return Excluded(
        phrases=list(exclusions.phrases.values()),
        with_sentences=[text for key, text in exclusions.phrases.items() if key in exclusions.with_sentences],
        steps=len(exclusions.steps),
    )


@router.get("/projects/{number}/phrases/exclusions", dependencies=[may("read")])
def list_exclusions(deps: DepsDep, project: ProjectDep) -> Excluded:
    """The phrases that are excluded from the memory."""
    return excluded(deps, project.id)


@router.post("/projects/{number}/phrases/exclusions", dependencies=[may("write")])
def change_exclusions(deps: DepsDep, project: ProjectDep, body: ExclusionRequest) -> Excluded:
    """Exclude or restore phrases in one step that can be undone."""
    folder = deps.service.workspace(project.id)
    if body.action == "exclude":
        Exclusions.exclude(folder, body.phrases, sentences=body.sentences)
    else:
        Exclusions.restore(folder, body.phrases)
    return excluded(deps, project.id)


@router.post("/projects/{number}/phrases/exclusions/undo", dependencies=[may("write")])
def undo_exclusion(deps: DepsDep, project: ProjectDep) -> Excluded:
    """Undo the last exclusion step."""
    with conflicts():
        Exclusions.undo(deps.service.workspace(project.id))
    return excluded(deps, project.id)


def collected(deps: Deps, number: int) -> Sequence[models.Phrase]:
    """All phrases with layer and back-translation, by count; cached until a file changes."""
    folder = deps.service.workspace(number)
    layers = deps.service.decoder_layers(deps.store.projects.get(number))
    return _collected(folder / "phrases.jsonl", modified_times(folder, "phrases.jsonl"), pairs_of(folder), layers)


@lru_cache(maxsize=4)
def _collected(phrase_file: Path, modified: tuple[int, ...], pairs: tuple[Path, int], layer_count: int) -> Sequence[models.Phrase]:
    extracted = [row for row in read_rows(phrase_file) if "text" in row and "length" in row]
    layers = assign_layers([int(row["length"]) for row in extracted], layer_count) if extracted else []
    sources = {row.get("target"): str(row.get("source", "")) for row in read_rows(pairs[0])}
    phrases = [
        models.Phrase(
            text=str(row["text"]),
            length=int(row["length"]),
            count=int(row.get("count", 1)),
            label=str(row.get("label", "")),
            layer=layer,
            source=sources.get(row["text"], ""),
        )
        for row, layer in zip(extracted, layers, strict=True)
    ]
    return sorted(phrases, key=lambda row: (-row.count, -row.length, row.text))
