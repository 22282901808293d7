"""/methods, /bases, /languages, /budgets: the available choices; /status: the state of the studio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path

import engine
from engine.core.json_object import Json
from engine.core.options import describe
from engine.errors import OptionError
from engine.methods import get_method as find
from engine.methods import method_names
from engine.store.tokens import SCOPES
from engine.training import BUDGETS, budget_options
from studio.api import serializers as rows
from studio.api.deps import Deps, DepsDep
from studio.api.errors import Problem
from studio.api.permissions import Caller, may
from studio.api.schemas import models
from studio.services.catalog import language_name
from studio.services.files import device_line

router = APIRouter(tags=["catalog"])
OFFERS = ("strength", "likelihood", "reads", "proportions", "swap")
Word = Annotated[str, Path(max_length=120)]


@router.get("/status", tags=["status"])
def get_status(deps: DepsDep, caller: Annotated[Caller, may("read")]) -> models.Status:
    """The version, device, number of workers and queued jobs, and the scopes of the caller."""
    active = deps.store.jobs.list(states=("queued", "running"))
    running = sum(row.state == "running" for row in active)
    return models.Status(
        version=engine.__version__,
        device=device_line().replace("\u00a0", " "),
        workers=len(deps.store.workers.list()),
        jobs_waiting=len(active) - running,
        jobs_running=running,
        token=caller.token.name if caller.token else "",
        scopes=caller.token.scopes.split(",") if caller.token else list(SCOPES[:3]),
    )


@router.get("/methods", dependencies=[may("read")], tags=["methods"])
def list_methods() -> list[models.Method]:
    """All customization methods, with the requirements, features and settings of each."""
    return [method(name) for name in method_names()]


@router.get("/methods/{name}", dependencies=[may("read")], tags=["methods"])
def get_method(name: Word) -> models.Method:
    """A method with its settings, also as JSON Schema."""
    try:
        return method(name)
    except OptionError as error:
        raise Problem(404, error.message) from None


def method(name: str) -> models.Method:
    method_class = find(name)
    capabilities, items = method_class.capabilities, describe(method_class.config_class)
    offers = [feature for feature in OFFERS if getattr(capabilities, f"offers_{feature}")]
    options, schema = [rows.option(item) for item in items], rows.json_schema(items)
    return rows.from_row(
        models.Method, capabilities, name=name, paper=capabilities.source, offers=offers, options=options, json_schema=schema
    )


@router.get("/budgets/{method}", dependencies=[may("read")], tags=["methods"])
def list_budgets(method: Annotated[str, Path(max_length=120, description="A method.")]) -> list[models.Budget]:
    """The settings of the budgets `quick`, `balanced` and `best` for a method; settings given with a run override them."""
    try:
        return [budget(name, method) for name in BUDGETS]
    except OptionError as error:
        raise Problem(404, error.message) from None


def budget(name: str, method: str) -> models.Budget:
    find(method)
    options = budget_options(name, method)
    return models.Budget(name=name, method=dict(options["method"]), training=dict(options["training"]))


@router.get("/bases", dependencies=[may("read")], tags=["bases"])
def list_bases(deps: DepsDep) -> list[models.Base]:
    """The base models on this machine, the preferred one first."""
    return [base(card) for card in deps.service.catalog.bases()]


@router.get("/bases/{name}", dependencies=[may("read")], tags=["bases"])
def get_base(deps: DepsDep, name: Word) -> models.Base:
    """A base model."""
    return base(base_card(deps, name))


def base_card(deps: Deps, name: str) -> Json:
    """The catalog entry of a base. Raises Problem 404."""
    card = next((card for card in deps.service.catalog.bases() if card["name"] == name), None)
    if card is None:
        raise Problem(404, f"There is no base {name}. Add one with `tailormt base add`.")
    return card


def base(card: Mapping[str, Any]) -> models.Base:
    return models.Base(**{key: card[key] for key in models.Base.model_fields})


@router.get("/languages", dependencies=[may("read")], tags=["bases"])
def list_languages(deps: DepsDep) -> list[models.Language]:
    """The source languages, each with its target languages."""
    return [
        models.Language(code=code, name=language_name(code), targets=sorted(targets)) for code, targets in languages(deps).items()
    ]


def languages(deps: DepsDep) -> dict[str, set[str]]:
    """{source: targets} of all available directions, sorted by source."""
    targets: dict[str, set[str]] = {}
    for source, target in deps.directions():
        targets.setdefault(source, set()).add(target)
    return dict(sorted(targets.items()))
