"""Addresses for CAT tools, in which users can set an address but no project.

The routes of the DeepL and LibreTranslate APIs are also available under /cat/{project} and /cat/{project}/{plugin}; the plugin
`base` is the project's base without a plugin.
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

SURE = 0.8  # confidence (0 to 1) from which a text counts as already being in the target language
Named = Annotated[str, Path(max_length=120, description="Its number or name.")]


@dataclass(frozen=True)
class Selection:
    """The project and plugin in an address; empty if it names none."""

    project: str = ""
    plugin: str = ""


def selection_of(request: Request) -> Selection:
    """The project and plugin in the request's address."""
    return Selection(request.path_params.get("project", ""), request.path_params.get("plugin", ""))


@dataclass(frozen=True)
class Sent:
    """The values that a client of another service sent, and the caller; `typed` is whether they came as JSON."""

    values: Values
    typed: bool
    caller: Caller

    def read(self, model: type[Model]) -> Model:
        """The values validated as the model, ignoring nulls. Raises RequestValidationError."""
        return validated_body(model, {name: value for name, value in self.values.items() if value is not None}, self.typed)


async def admit(request: Request, key: str, many: tuple[str, ...] = (), scope: str = "translate") -> Sent:
    """The values and caller of a request that has the scope; its token may be the value named `key`.

    Values are also read from the body of a GET, since some clients send one. Raises Problem, and the errors of `project_at` if
    the caller cannot see the project or plugin in the address.
    """
    values, typed = await values_of(request, many)
    token = values.get(key)
    caller = await run_in_threadpool(check, request, scope, token if isinstance(token, str) else "")
    await run_in_threadpool(project_at, request.app.state.deps, selection_of(request))
    return Sent(values, typed, caller)


def project_at(deps: Deps, selection: Selection) -> ProjectRow | None:
    """The project in an address, if any, after checking that its plugin exists. Raises Problem 404, NotFoundError."""
    project = deps.find_project(selection.project) if selection.project else None
    if selection.plugin:
        deps.find_plugin(selection.plugin, project)
    return project


def already_in(deps: Deps, selection: Selection, source: str, target: str, text: str) -> str:
    """The language of a text that is already in the target language; empty if it has to be translated.

    A given source language decides. Without one, the text must be detected with at least the confidence SURE, and the target
    must not specify a script, which detection cannot tell. Raises the errors of `project_at`.
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
    """Declare and validate the project in the address."""


def _plugin(project: Named, plugin: Named) -> None:
    """Declare and validate the project and plugin in the address."""


def mount(routes: APIRouter, router: APIRouter) -> None:
    """Add the routes to a router, without a prefix and under both prefixes."""
    router.include_router(routes)
    router.include_router(routes, prefix="/cat/{project}", dependencies=[Depends(_project)])
    router.include_router(routes, prefix="/cat/{project}/{plugin}", dependencies=[Depends(_plugin)])
