"""Shared by the handlers: the studio's service, the translation queue, and the rules for choosing a request's plugin."""

from __future__ import annotations

import asyncio
import inspect
import pathlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from typing import Annotated, Any, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from fastapi import Depends, Path, Query, Request

from engine.base.metadata import directions, knows
from engine.base.registry import BaseRegistry
from engine.core.languages import canonical, read_tag, same_language
from engine.core.numerals import LARGEST as LARGEST_ID
from engine.core.numerals import whole_number
from engine.corpora.formats.documents.model import Result, Unit
from engine.corpora.language import confidences
from engine.errors import InputError, TailorError
from engine.serving.batcher import TranslationSpec
from engine.serving.turns import OverloadedError, Ticket
from engine.store import PluginRow, Store
from engine.store.records import ProjectRow
from studio.api.errors import Problem
from studio.api.schemas import models
from studio.auth.identity import KEY, client_of
from studio.services.service import Service
from studio.services.terminology import project_terms

ALONE = ("base", "none", "vanilla", "0")  # names that mean the base without a plugin
THREADS = 256  # threads for requests that wait for translations or read files
OWN_THREADS = 8  # at most for one client
OWN_REQUESTS = 200  # requests of one client that may wait for a thread, and
MOST_REQUESTS = 1000  # of all clients; further ones are refused
Got = TypeVar("Got")

Id = Annotated[int, Path(ge=1, le=LARGEST_ID, description="Its number.")]
Offset = Annotated[int, Query(ge=0, le=10**9, description="How many to pass over.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to give at most.")]


@dataclass(frozen=True)
class Route:
    """The base, direction, project and plugin that a request is translated with."""

    base: str
    source: str
    target: str
    project: ProjectRow | None = None
    plugin: PluginRow | None = None

    def work(self, strength: float = 1.0, decoding: Mapping[str, Any] | None = None, terms: str = "") -> TranslationSpec:
        path = self.plugin.path if self.plugin else ""
        return TranslationSpec.of(self.base, self.source, self.target, path, strength, decoding, terms)


class Deps:
    """The shared state and helpers of the handlers; one instance per API, thread-safe."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.batcher = service.batcher
        self.last_used: dict[int, float] = {}  # token ids, and when their use was last recorded
        self._threads: anyio.CapacityLimiter | None = None
        self._own_threads: WeakValueDictionary[str, anyio.CapacityLimiter] = WeakValueDictionary()
        self.characters = 0  # translated since the start, for callers without a token

    @property
    def store(self) -> Store:
        """The studio's store; it raises NotFoundError for a missing row, which becomes 404."""
        return self.service.store

    # -- which plugin

    def find_project(self, reference: str) -> ProjectRow:
        """A project by its number or its name, regardless of case. Raises Problem 404, NotFoundError."""
        number = whole_number(reference, high=LARGEST_ID)
        if number is not None:
            return self.store.projects.get(number)
        rows = self.store.projects.list()
        project = next((row for row in rows if row.name.casefold() == reference.strip().casefold()), None)
        if project is None:
            raise Problem(404, f"There is no project {reference[:80]}. Name one by its number or its whole name.")
        return project

    def find_plugin(self, reference: str, project: ProjectRow | None = None) -> PluginRow | None:
        """A plugin by its number or its name, in the project if given; None for the base without a plugin."""
        reference = reference.strip()
        if reference.casefold() in ALONE:
            return None
        number, plugin_id = project.id if project else None, whole_number(reference, high=LARGEST_ID)
        if plugin_id is not None:
            return self.own_plugin(plugin_id, number)
        rows = self.store.plugins.list(number)
        row = next((plugin for plugin in rows if plugin.name.casefold() == reference.casefold()), None)
        if row is None:
            raise Problem(404, f"There is no plugin {reference[:80]}. Name one by its number or its whole name, or `base`.")
        return row

    def own_plugin(self, number: int, project: int | None) -> PluginRow:
        """The plugin with this number, which must belong to the project if given. Raises NotFoundError, Problem 404."""
        row = self.store.plugins.get(number)
        if project is not None and row.project_id != project:
            raise Problem(404, f"Plugin {row.id} belongs to another project than {project}. Name one of this project.")
        return row

    def route(self, source: str = "", target: str = "", project: str = "", plugin: str | None = None, text: str = "") -> Route:
        """Choose what to translate with, from the values in a request.

        A named plugin takes precedence; else a named project with its default plugin; else the most recently changed project
        with these languages and its default plugin; else an installed base for these languages, without a plugin. Without a
        source language, it is detected in the text. Raises Problem or a TailorError if nothing fits.
        """
        row = self.find_project(project) if project else None
        chosen = self.find_plugin(plugin, row) if plugin else None
        if chosen is not None and row is None:
            row = self.store.projects.get(chosen.project_id)
        source, target = (canonical(code) if code else "" for code in (source, target))
        if row is not None:
            self._check(row, source, target, reverse_allowed=chosen is None and not plugin)
            if (source and not same_language(source, row.source)) or (target and not same_language(target, row.target)):
                return Route(row.base, row.target, row.source, row)  # the other direction has no plugin
            return Route(row.base, row.source, row.target, row, self._default(row, plugin, chosen))
        if not target:
            raise InputError("Name the language to translate to, or a project.")
        if not source:
            source = self.guess(text, [code for code, other in self.directions() if same_language(other, target)])
        if same_language(source, target):
            raise InputError(f"Source and target are both {target}. Name two different languages.")
        candidates = [
            candidate
            for candidate in self.store.projects.list()
            if same_language(candidate.source, source) and same_language(candidate.target, target)
        ]
        row = max(candidates, key=lambda candidate: candidate.updated, default=None)
        if row is not None:
            return Route(row.base, row.source, row.target, row, self._default(row, plugin, chosen))
        try:
            return Route(str(BaseRegistry(self.service.settings).default(source, target)), source, target)
        except TailorError:
            raise InputError(
                f"Nothing here translates from {source} to {target}. Add a base with `tailormt base add`, or make a project."
            ) from None

    def _default(self, row: ProjectRow, plugin: str | None, chosen: PluginRow | None) -> PluginRow | None:
        return chosen if plugin else self.store.defaults.get(row.id)

    def _check(self, row: ProjectRow, source: str, target: str, *, reverse_allowed: bool) -> None:
        """Raises InputError if the project cannot translate between these languages."""
        requested = source or row.source, target or row.target
        fits = same_language(requested[0], row.source) and same_language(requested[1], row.target)
        reverse = same_language(requested[0], row.target) and same_language(requested[1], row.source)
        if fits or (reverse and reverse_allowed and knows(row.base, row.target, row.source)):
            return
        raise InputError(
            f"The project {row.name} translates from {row.source} to {row.target}, not from {requested[0]} to {requested[1]}."
        )

    def directions(self) -> list[tuple[str, str]]:
        """The available directions: those of the projects, then those of the installed bases."""
        directions = {(row.source, row.target): None for row in self.store.projects.list()}
        for entry in BaseRegistry(self.service.settings).entries():
            sources, targets = _languages(str(entry.folder), _modified(entry.folder))
            directions |= {(a, b): None for a in sources for b in targets if a != b}
        return list(directions)

    def guess(self, text: str, candidates: Sequence[str]) -> str:
        """Detect the language of a text among the candidate source languages. Raises InputError without candidates."""
        if not candidates:
            raise InputError("Nothing here translates into that language. Name another, or add a base.")
        short = {tag.language: str(tag) for candidate in candidates if (tag := read_tag(candidate))}
        likely = [(code, value) for code, value in confidences(text, *short) if code in short]
        return short[likely[0][0]] if likely else candidates[0]

    # -- translating

    def terms(self, route: Route) -> str:
        """The terms of the route's project; empty in its other direction. Raises InputError without a project."""
        if route.project is None:
            raise InputError("terminology: terms belong to a project. Name one.")
        return project_terms(self.service, route.project) if route.source == route.project.source else ""

    def through(self, route: Route, work: TranslationSpec, units: Sequence[Unit], ticket: Ticket) -> list[Result]:
        """Translate units of text, keeping tags and placeholders. Blocks: call it through `run_in_thread`."""
        from engine.serving.batched_translator import translate_through

        self._present(route)
        return translate_through(self.batcher, work, units, ticket)

    def plain(self, route: Route, texts: Sequence[str], ticket: Ticket, strength: float = 1.0, terms: str = "") -> list[str]:
        """Translate sentences as plain text; an empty one stays empty. Blocks like `through`."""
        self._present(route)
        return self.batcher.submit(route.work(strength, terms=terms), texts, ticket).result()

    async def run_in_thread(self, request: Request, run: Callable[[Ticket], Got]) -> Got:
        """Run a function that waits for translations or reads files in a dedicated thread, so that other requests are not blocked.

        A client can use only a few of these threads at once. The ticket ends when the request's time is up or its client has
        disconnected. Raises OverloadedError, DeadlineError and the errors of `run`.
        """
        client = client_of(request.scope[KEY])
        ticket = Ticket(client, self.service.settings.translation_seconds)
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(THREADS)
        client_limiter = self._own_threads.setdefault(client, anyio.CapacityLimiter(OWN_THREADS))
        if self._threads.statistics().tasks_waiting >= MOST_REQUESTS:
            raise OverloadedError("Too many requests are waiting. Try again in a minute.")
        if client_limiter.statistics().tasks_waiting >= OWN_REQUESTS:
            raise OverloadedError("Too many of your requests are waiting. Try again in a minute, with fewer at once.")
        watch = asyncio.create_task(_leaves(request, ticket))
        try:
            async with client_limiter:
                ticket.check()
                return await anyio.to_thread.run_sync(run, ticket, limiter=self._threads)
        finally:
            watch.cancel()

    def _present(self, route: Route) -> None:
        if route.plugin is not None and not route.plugin.exists:
            raise InputError(f"The bundle of {route.plugin.name} is no longer at its place. Train or import it again.")

    def attributions(
        self, route: Route, pairs: Sequence[tuple[str, str]], top: int, ticket: Ticket
    ) -> list[list[models.JsonObject]]:
        """The memory entries that each token of each translation read; empty without a plugin. Blocks like `through`."""
        if route.plugin is None:
            return [[] for _ in pairs]
        base = self.service.models.base(route.base, route.source, route.target)
        plugin = self.service.models.plugin(route.plugin.path, base)
        result = []
        for source, target in pairs:
            read = partial(plugin.attributions, base, source, target, top)
            result.append(self.service.in_turn(read, source + target, ticket) if source.strip() and target else [])
        return result


def reads_files(handler: Callable[..., Got]) -> Callable[..., Awaitable[Got]]:
    """Decorates a handler (with `deps`) that reads uploads to run in `Deps.apart`, leaving the other threads to the pages."""
    signature = inspect.signature(handler)
    request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)

    @wraps(handler)
    async def run(*, request: Request, deps: Deps, **kwargs: Any) -> Got:
        return await deps.run_in_thread(request, lambda ticket: handler(deps=deps, **kwargs))

    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), request])  # type: ignore[attr-defined]
    return run


async def _leaves(request: Request, ticket: Ticket) -> None:
    """End the ticket when the client disconnects; the request's body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    ticket.leave()


def _modified(folder: pathlib.Path) -> float:
    try:
        return (folder / "config.json").stat().st_mtime
    except OSError:
        return 0.0


@lru_cache(maxsize=64)
def _languages(folder: str, modified: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`engine.base.metadata.directions`, cached; empty for a folder that is not a base."""
    try:
        sources, targets = directions(folder)
    except TailorError:
        return (), ()
    return tuple(sources), tuple(targets)


def _deps(request: Request) -> Deps:
    return request.app.state.deps


DepsDep = Annotated[Deps, Depends(_deps)]


def _project(deps: DepsDep, number: Id) -> ProjectRow:
    return deps.store.projects.get(number)


ProjectDep = Annotated[ProjectRow, Depends(_project)]  # the project in the address; 404 if missing
