"""Addresses for CAT tools, which can be given an address but no project: a route of DeepL's or LibreTranslate's interface also
stands behind /cat/{project}, and behind /cat/{project}/{plugin}, where `base` is the project's base alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from fastapi.concurrency import run_in_threadpool

from engine.core.languages import canonical, primary_language, read_tag, same_language
from engine.corpora.language import confidences
from engine.store import ProjectRow
from studio.api.deps import Deps
from studio.api.form_or_json import Model, Values, validated_body, values_of
from studio.api.permissions import Caller, check

SURE = 0.8  # confidence, of 1, from which a text is taken to be in the target language already
Named = Annotated[str, Path(max_length=120, description="Its number or name.")]


@dataclass(frozen=True)
class Selection:
    """The project and plugin that an address names; empty where it names none."""

    project: str = ""
    plugin: str = ""


def selection_of(request: Request) -> Selection:
    """The project and plugin that the request's address names."""
    return Selection(request.path_params.get("project", ""), request.path_params.get("plugin", ""))


@dataclass(frozen=True)
class Sent:
    """What a client of another service sent, and who it is; `typed` where it came as JSON."""

    values: Values
    typed: bool
    caller: Caller

    def read(self, model: type[Model]) -> Model:
        """The values as the model; null means that a value is not given. Raises RequestValidationError."""
        return validated_body(
            model, {name: value for name, value in self.values.items() if value is not None}, self.typed
        )


async def admit(request: Request, key: str, many: tuple[str, ...] = (), scope: str = "translate") -> Sent:
    """The values of a request and who asks, whose token may be the value named `key` and has the scope.

    Clients put values into the body of a GET too. Raises Problem, and as `project_at` where the address names a project or a plugin
    that they do not see.
    """
    values, typed = await values_of(request, many)
    token = values.get(key)
    caller = await run_in_threadpool(check, request, scope, token if isinstance(token, str) else "")
    await run_in_threadpool(project_at, request.app.state.deps, selection_of(request))
    return Sent(values, typed, caller)


def project_at(deps: Deps, selection: Selection) -> ProjectRow | None:
    """The project that an address names, whose plugin is there too where it names one. Raises Problem 404, NotFoundError."""
    project = deps.find_project(selection.project) if selection.project else None
    if selection.plugin:
        deps.find_plugin(selection.plugin, project)
    return project


def already_in(deps: Deps, selection: Selection, source: str, target: str, text: str) -> str:
    """The language of a text that is in the target language already; empty where it has to be translated.

    A named source decides. Without one the text has to be of that language next to certainly, and the target without a script
    of its own, which the text does not tell. Raises as `Deps.route` where the project or plugin that is named is not there.
    """
    project_at(deps, selection)
    if read_tag(target) is None:
        return ""
    if source:
        return canonical(source) if same_language(source, target) else ""
    language = primary_language(target)
    sure = same_language(language, target) and dict(confidences(text, language)).get(language, 0.0) >= SURE
    return language if sure else ""


SelectionDep = Annotated[Selection, Depends(selection_of)]


def _project(project: Named) -> None:
    """Declares and checks the part of the address."""


def _plugin(project: Named, plugin: Named) -> None:
    """Declares and checks both parts of the address."""


def mount(routes: APIRouter, router: APIRouter) -> None:
    """Put the routes into a router: as they are, and behind both prefixes."""
    router.include_router(routes)
    router.include_router(routes, prefix="/cat/{project}", dependencies=[Depends(_project)])
    router.include_router(routes, prefix="/cat/{project}/{plugin}", dependencies=[Depends(_plugin)])
