"""/projects/{number}/proportions: the domain proportions of words, in the samples, by a plugin, and in any sentence."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from engine.decoding.greedy_search import back_translate
from engine.errors import OptionError
from engine.jobs import enqueue
from engine.methods.domain_mixing.model import ProportionModel
from engine.methods.domain_mixing.proportions import proportions_of, reversed_base
from engine.serving.turns import Ticket
from engine.store import PluginRow, ProjectRow
from engine.workflows.explore.domain_proportions import folder_of, model_of, read_shown
from studio.api import serializers as rows
from studio.api.deps import Deps, DepsDep, Id, ProjectDep
from studio.api.errors import Problem
from studio.api.permissions import Caller, may
from studio.api.schemas import models
from studio.api.schemas import translate as bodies
from studio.api.translate import counted
from studio.services.proportions import offers_proportions

router = APIRouter(tags=["proportions"])
NOT_YET = "The proportions of this project are not fitted yet. Wait until its samples are read, or post to …/proportions/fit."


class Shown(BaseModel):
    """The fitted domain proportions: quality on held-out words, histograms and examples."""

    domains: list[str]
    held_out: models.JsonObject = Field(description="How well words that were not fitted on lean to their own domain.")
    corpus: models.JsonObject = Field(description="Histograms and words of the samples, a side each.")
    examples: list[models.JsonObject]


class FitRequest(models.Given):
    plugin: models.Number | None = Field(None, description="A domain_mixing plugin of this project: its own proportions.")


def mixing_plugin(deps: Deps, project: ProjectRow, number: int) -> PluginRow:
    """A plugin of the project, which must have domain proportions. Raises Problem, OptionError."""
    row = deps.own_plugin(number, project.id)
    if not offers_proportions(row.method):
        raise OptionError(f"{row.name} is of the method {row.method}, which has no domain proportions.")
    return row


@router.get("/projects/{number}/proportions", dependencies=[may("read")])
def get_proportions(deps: DepsDep, project: ProjectDep, plugin: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None) -> Shown:
    """The domain proportions of the samples, which are fitted when the samples are read, or those of a plugin."""
    row = mixing_plugin(deps, project, plugin) if plugin else None
    result = read_shown(folder_of(deps.service.workspace(project.id), row.id if row else None))
    if "corpus" not in result:
        raise Problem(409, str(result.get("error") or NOT_YET))
    return Shown(**rows.finite({key: result.get(key) or kind() for key, kind in KINDS.items()}))


KINDS: dict[str, type[Any]] = {"domains": list, "held_out": dict, "corpus": dict, "examples": list}


@router.post("/projects/{number}/proportions/fit", status_code=202, dependencies=[may("write")])
def fit(deps: DepsDep, project: ProjectDep, body: FitRequest) -> models.Job:
    """Queue a job that fits the proportions of the samples or reads those of a plugin."""
    if not (deps.service.workspace(project.id) / "corpus.jsonl").is_file():
        raise Problem(409, "This project has no samples that were read yet. Add some and wait for their job.")
    row = mixing_plugin(deps, project, body.plugin) if body.plugin else None
    arguments = {"plugin_id": row.id} if row else {}
    return rows.job(enqueue(deps.store, "proportions", arguments, project_id=project.id))


@router.post("/projects/{number}/proportions")
async def share(
    request: Request, deps: DepsDep, number: Id, body: bodies.ProportionsRequest, caller: Annotated[Caller, may("translate")]
) -> bodies.Proportions:
    """The domain proportions of each word of the given sentences, by the proportions of the samples or of a plugin."""
    project = await run_in_threadpool(deps.store.projects.get, number)

    def run(ticket: Ticket) -> bodies.Proportions:
        with counted(deps, caller, sum(map(len, body.sentences))):
            return shares_of(deps, project, body, ticket)

    return await deps.run_in_thread(request, run)


def shares_of(deps: Deps, project: ProjectRow, body: bodies.ProportionsRequest, ticket: Ticket) -> bodies.Proportions:
    """The proportions of the sentences, computed one at a time in turn with other requests."""
    row = mixing_plugin(deps, project, body.plugin) if body.plugin else None
    folder = folder_of(deps.service.workspace(project.id))
    if row is None and not (folder / "proportions.json").is_file():
        raise Problem(409, NOT_YET)
    base = deps.service.base_model(project)
    plugin = deps.service.plugin(row, base) if row else None
    model = model_of(plugin, row.name) if plugin and row else ProportionModel.load(folder, base)
    # A model fitted with source sentences needs some for these sentences too.
    other = reversed_base(base) if model.sources and body.side == "decoder" else None

    def shares(sentence: str) -> Any:
        sources = back_translate(other, [sentence]) if other is not None else None
        return proportions_of(base, model, [sentence], body.side, plugin=plugin, sources=sources)[0]

    result = [deps.service.in_turn(partial(shares, sentence), sentence, ticket) for sentence in body.sentences]
    return bodies.Proportions(domains=list(model.domains), sentences=rows.finite(result))
