"""Further data of the Phrases page: parse trees, sentences that contain a phrase, back-translations, the map, a table."""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, StringConstraints

from engine.decoding.greedy_search import back_translate as translate
from engine.serving.turns import Ticket
from engine.store import ProjectRow
from engine.workflows.explore.phrase_map import MAP_FILE
from studio.api import serializers as rows
from studio.api.deps import Deps, DepsDep, Id, Limit, Offset, ProjectDep
from studio.api.downloads import lines
from studio.api.errors import Problem
from studio.api.permissions import Caller, may
from studio.api.schemas import models
from studio.api.translate import counted
from studio.services.phrase_sentences import holding, parsed_tree, tree_of
from studio.services.phrases import Phrases, PhraseView, own_sources
from studio.services.project_phrases import ProjectPhrases

router = APIRouter(tags=["phrases"])
PhraseText = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
AT_ONCE = 32  # phrases translated in one turn
NOT_YET = "This project has no phrases yet. Add samples and wait until they are read."


class KeyPhrase(BaseModel):
    """A phrase with the figures that show how typical it is of the samples."""

    text: str
    source: str = Field(description="Its back-translation; empty while there is none.")
    label: str
    length: int = Field(description="Tokens of the parser.")
    count: int = Field(description="How often the parser found it.")
    layer: int = Field(description="The decoder layer that reads it, from 0; -1 where it is left out.")
    excluded: bool
    in_samples: int = Field(description="How often it stands in the samples, found or not.")
    in_general_text: int
    log_ratio: float | None = Field(description="Binary logarithm of the ratio of frequencies; null without general text.")
    low: float | None = Field(description="The lower end of its 95 % interval.")
    high: float | None
    log_likelihood: float | None
    domains: dict[str, int] = Field(description="How often by domain.")


class Tree(BaseModel):
    sentence: str
    parser: str = Field(description="Which parser made the phrases, in a sentence.")
    tree: models.JsonObject = Field(description="Nested: label, text, children.")


class Holding(BaseModel):
    place: int = Field(description="The sentence's place in the samples, from 0.")
    text: str
    source: str | None
    file: str
    line: int


class BackRequest(models.Given):
    phrases: Annotated[list[PhraseText], Field(min_length=1, max_length=500)]


class Map(BaseModel):
    """The phrases as points on a plane, arranged by the similarity of their vectors."""

    data: models.JsonObject


def phrases(deps: Deps, project: ProjectRow) -> Phrases:
    """The project's phrases as columns. Raises Problem 409 if there are none yet."""
    columns = ProjectPhrases(deps.service, project).table()
    if columns is None:
        raise Problem(409, NOT_YET)
    return columns


@router.get("/projects/{number}/phrases/typical", dependencies=[may("read")])
def list_typical(
    deps: DepsDep,
    project: ProjectDep,
    offset: Offset = 0,
    limit: Limit = 100,
    search: Annotated[str, Query(max_length=200, description="Words in the phrase or its back-translation.")] = "",
) -> models.Page[KeyPhrase]:
    """The phrases that distinguish the samples from general text, most typical first."""
    columns = phrases(deps, project)
    indices = columns.select(PhraseView(words=search, show="all"))
    items = [key_phrase(columns, int(index)) for index in indices[offset : offset + limit]]
    return models.Page[KeyPhrase](items=items, total=len(indices), offset=offset)


def key_phrase(columns: Phrases, index: int) -> KeyPhrase:
    row = columns.row(index)
    measured = row.ratio is not None
    return KeyPhrase(
        **{name: getattr(row, name) for name in ("text", "source", "label", "length", "count", "layer", "excluded")},
        in_samples=row.own,
        in_general_text=row.general,
        log_ratio=rows.finite(row.ratio),
        low=rows.finite(row.low) if measured else None,
        high=rows.finite(row.high) if measured else None,
        log_likelihood=rows.finite(row.log_likelihood) if measured else None,
        domains={name: times for name, times, _ in row.per_domain},
    )


@router.get("/projects/{number}/phrases/sentences", dependencies=[may("read")])
def list_holding(
    deps: DepsDep,
    project: ProjectDep,
    phrase: Annotated[str, Query(min_length=1, max_length=2000)],
    offset: Offset = 0,
    limit: Limit = 100,
) -> models.Page[Holding]:
    """The sentences of the samples that contain a phrase."""
    sentences = deps.service.sentences(project.id)
    indices = holding(sentences, phrase, project.target) if phrase.strip() else []

    def to_response(index: int) -> Holding:
        row = sentences[index]
        fields = {key: row[key] for key in ("text", "file", "line") if key in row}
        return Holding(**{"file": "", "line": 0, **fields}, place=index, source=row.get("source"))

    return rows.page(models.Page[Holding], indices, offset, limit, to_response)


@router.get("/projects/{number}/phrases/tree", dependencies=[may("read")])
def get_tree(deps: DepsDep, project: ProjectDep, sentence: Annotated[str, Query(min_length=1, max_length=2000)]) -> Tree:
    """The parse tree of a sentence in the project's target language, by the parser that extracts its phrases."""
    folder = deps.service.workspace(project.id)
    text = " ".join(sentence.split())
    if not text:
        raise Problem(422, "sentence: it must say something.", code="invalid")
    parsed = tree_of(folder, text) or parsed_tree(folder, text, project.target, deps.service.settings)
    return Tree(sentence=text, parser=deps.service.parser(project.id), tree=parsed.to_mapping())


@router.post("/projects/{number}/phrases/back-translations")
async def back_translate(
    request: Request, deps: DepsDep, number: Id, body: BackRequest, caller: Annotated[Caller, may("translate")]
) -> dict[str, str]:
    """Translate phrases back into the source language, if the base translates both ways. The results are kept with the phrases."""
    requested = [text for text in dict.fromkeys(" ".join(phrase.split()) for phrase in body.phrases) if text]
    if not requested:
        raise Problem(422, "phrases: at least one of them must say something.", code="invalid")

    def run(ticket: Ticket) -> dict[str, str]:
        project, service = deps.store.projects.get(number), deps.service
        base = service.models.base(project.base, project.target, project.source)
        with counted(deps, caller, sum(map(len, requested))):
            translations: dict[str, str] = {}
            for begin in range(0, len(requested), AT_ONCE):
                batch = requested[begin : begin + AT_ONCE]
                translations |= zip(batch, service.in_turn(partial(translate, base, batch), " ".join(batch), ticket), strict=True)
        own_sources(service.workspace(number), translations)
        return translations

    return await deps.run_in_thread(request, run)


@router.get(
    "/projects/{number}/phrases/export",
    dependencies=[may("read")],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "The table."}},
)
def export_phrases(deps: DepsDep, project: ProjectDep) -> StreamingResponse:
    """Export all phrases with their figures as CSV, most typical first."""
    columns = phrases(deps, project)
    headers = {"Content-Disposition": f'attachment; filename="phrases-{project.id}.csv"'}
    return StreamingResponse(lines(columns, PhraseView(show="all")), media_type="text/csv", headers=headers)


@router.get("/projects/{number}/phrases/map", dependencies=[may("read")])
def get_map(deps: DepsDep, project: ProjectDep) -> Map:
    """The phrase map as last drawn."""
    file = deps.service.workspace(project.id) / MAP_FILE
    try:
        data = json.loads(gzip.decompress(file.read_bytes()))
    except (OSError, ValueError):
        raise Problem(409, "There is no map of this project yet. Draw it by a POST to this address.") from None
    return Map(data=rows.finite(data))


@router.post("/projects/{number}/phrases/map", status_code=202, dependencies=[may("write")])
def draw_map(deps: DepsDep, project: ProjectDep) -> models.Job:
    """Queue a job that draws the phrase map, unless one is already queued or running."""
    if not (deps.service.workspace(project.id) / "phrases.jsonl").is_file():
        raise Problem(409, NOT_YET)
    return rows.job(ProjectPhrases(deps.service, project).draw_map())
