"""The operations of the page Bases: installed bases, well-known ones by pair, adding a base as a job, removing a base.

Independent of Gradio. The hub is queried only when the user presses a button that says so.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.base import download as fetch
from engine.base.download import Offer
from engine.base.metadata import directions, knows, read_card
from engine.base.quality import Score, direction_scores
from engine.base.recommend import RecommendedBase, recommended
from engine.base.registry import HUB_ID, BaseEntry, BaseRegistry
from engine.core.actor import Forbidden
from engine.core.model_card import ModelCard, read_card_file
from engine.errors import InputError, ModelError
from engine.jobs import enqueue
from engine.jobs.handlers.bases import KIND
from engine.messages import Given
from engine.store import JobRow, ProjectRow
from studio.services.catalog import terms_not_accepted
from studio.services.uploads import in_named_folders, outside, paths_offered

if TYPE_CHECKING:
    from studio.services.service import Service

MOST_OFFERS = 50  # looked up and not yet added


@dataclass(frozen=True)
class ShelfBase:
    """An installed base as the page shows it. `sources` and `targets` are empty if the model does not state them."""

    name: str
    path: str
    shipped: bool
    family: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    weights: int
    bytes: int
    origin: str
    card: ModelCard
    scores: tuple[Score, ...]
    users: tuple[str, ...]  # `the project Novels`
    current: bool  # the base of the project on the page
    usable: bool  # could become the project's base

    @property
    def one_way(self) -> bool:
        """Whether the base translates in one direction only."""
        return len(self.sources) == 1 and len(self.targets) == 1 and self.sources != self.targets


class BaseModels:
    """The bases of a studio, as the caller may use them."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.shelf = BaseRegistry(service.settings)
        self._offers: OrderedDict[str, Offer] = OrderedDict()

    @property
    def may_change(self) -> bool:
        """Whether the caller may add and remove bases. They belong to the whole installation: with accounts, only admins may."""
        return self.service.store.access().everything

    def installed(self, project: ProjectRow | None) -> list[ShelfBase]:
        """All readable bases: the project's base first, then those it could use, then the rest; added ones before shipped ones."""
        bases = []
        for entry in self.shelf.entries():
            try:
                bases.append(self._described(entry, project))
            except ModelError:
                continue  # `tailormt doctor` reports the fault
        return sorted(bases, key=lambda base: (not base.current, not base.usable, base.shipped))

    def _described(self, entry: BaseEntry, project: ProjectRow | None) -> ShelfBase:
        description = read_card(entry.folder)
        sources, targets = directions(entry.folder)
        current = project is not None and base_of(self.shelf, project.base) == entry
        free = project is not None and not current and not self.service.store.plugins.list(project.id)
        return ShelfBase(
            name=entry.name,
            path=str(entry.folder),
            shipped=entry.shipped,
            family=description["family"],
            sources=tuple(sources),
            targets=tuple(targets),
            weights=description["parameters"],
            bytes=description["bytes"],
            origin=str(entry.origin.get("origin", "")),
            card=read_card_file(entry.folder),
            scores=tuple((project and direction_scores(entry.scores, project.source, project.target)) or entry.scores),
            users=tuple(self.shelf.users(entry, self.service.store)) if not entry.shipped else (),
            current=current,
            usable=bool(free and project and knows(entry.folder, project.source, project.target)),
        )

    def well_known(self, source: str, target: str) -> list[tuple[RecommendedBase, str]]:
        """Well-known models of a language pair, each with its name on the shelf, empty if it is not installed."""
        names = {entry.origin.get("origin"): entry.name for entry in self.shelf.entries()}
        return [(model, names.get(model.hub_id, "")) for model in recommended(source, target)]

    # -- adding

    def look_up(self, origin: str) -> tuple[str, Offer]:
        """Query the hub for a model, or inspect a folder on this machine; returns the key of the offer and the offer.

        Raises Forbidden, InputError, ModelError, MissingError.
        """
        self._check_admin()
        text = origin.strip().strip("\"'").removeprefix("https://huggingface.co/").rstrip("/")
        if not text:
            raise InputError("Enter the hub id of a model or the path of a folder.")
        if HUB_ID.fullmatch(text) and not text.startswith("."):
            offer = fetch.look_up(text)
        else:
            offer = fetch.look_at_folder(self._folder(text))
        name = Path(offer.origin).name
        if any(entry.name == name for entry in self.shelf.entries()):
            raise InputError("There is a base {name} here already. Remove it first, or rename the folder.", name=name)
        token = secrets.token_hex(8)
        self._offers[token] = offer
        while len(self._offers) > MOST_OFFERS:
            self._offers.popitem(last=False)
        return token, offer

    def _folder(self, text: str) -> Path:
        settings = self.service.settings
        if not paths_offered(settings):
            raise InputError("Paths on the server are switched off (setting server_paths). Enter a hub id.")
        path = Path(text).expanduser()
        if not path.is_absolute():
            raise InputError(
                "{path} is neither a hub id such as Helsinki-NLP/opus-mt-en-de nor an absolute path.", path=Given(text)
            )
        real = Path(os.path.realpath(path))
        if not in_named_folders(real, settings):
            raise outside(text)
        return real

    def free_bytes(self) -> int:
        """Free bytes on the disk that holds added bases."""
        folder = self.shelf.folder
        while not folder.exists():
            folder = folder.parent
        return shutil.disk_usage(folder).free

    def add(self, token: str, agreed: bool) -> JobRow:
        """Queue a job that adds the base looked up. Raises InputError if its licence must be accepted and is not."""
        self._check_admin()
        offer = self._offers.get(token)
        if offer is None:
            raise InputError("This lookup has expired. Look it up again.")
        name = Path(offer.origin).name
        if offer.card.restricted and not agreed:
            raise terms_not_accepted(offer.card, name)
        arguments = {"origin": offer.origin, "revision": offer.revision, "name": name, "convert": offer.pickled}
        job = enqueue(self.service.store, KIND, arguments)
        del self._offers[token]
        if offer.card.restricted:
            self.service.catalog.accept(offer.card, self.shelf.folder / name)
        return job

    def jobs(self) -> list[JobRow]:
        """Jobs that are adding bases or have failed to, the oldest first."""
        if not self.may_change:
            return []
        states = ("queued", "running", "failed", "interrupted")
        return self.service.store.jobs.list(states=states, kinds=(KIND,))[::-1]

    def act(self, act: str, number: int) -> None:
        """Cancel, resume or delete a job that adds a base. Raises InputError if the job no longer exists."""
        self._check_admin()
        jobs = self.service.store.jobs
        if jobs.get(number).kind != KIND:
            raise InputError("This job no longer exists. Reload the page.")
        {"cancel": jobs.cancel, "resume": jobs.resume, "forget": jobs.delete}[act](number)

    # -- using, removing

    def use(self, project: ProjectRow, name: str, agreed: bool) -> None:
        """Make a base the base of a project without plugins. Raises InputError."""
        base = next((candidate for candidate in self.installed(project) if candidate.name == name), None)
        if base is None or not base.usable:
            raise InputError("The base {name} cannot be used for this project. Reload the page.", name=name)
        self.service.catalog.agree(base.card, base.path, name, agreed)
        self.service.store.projects.update(project.id, base=base.path)

    def remove(self, name: str) -> int:
        """Remove an added base that is not in use; returns the number of bytes freed. Raises Forbidden, InputError."""
        self._check_admin()
        entry = next((candidate for candidate in self.shelf.entries() if candidate.name == name), None)
        if entry is not None and not entry.shipped and self.shelf.users(entry):
            raise InputError("The base {name} is in use and cannot be removed. Delete what uses it first.", name=name)
        return self.shelf.remove(name)

    def _check_admin(self) -> None:
        if not self.may_change:
            raise Forbidden("Only an admin can add or remove bases.")


def base_of(registry: BaseRegistry, base: str) -> BaseEntry | None:
    """The shelf entry of a project's base; None if the base is not on the shelf."""
    folder = Path(base).expanduser()
    return next(
        (entry for entry in registry.entries() if base in (entry.name, entry.origin.get("origin")) or folder == entry.folder), None
    )
