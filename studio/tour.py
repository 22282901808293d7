"""The first-run tour: a project of a bundled sample, and a line on each page that says what to look at there.

Where it stands is kept in `tour.json` of the home folder: {"project", "state": "open" or "ended", "seen": [pages]}. So it
goes on after a restart and in another browser, and once it was dismissed it does not come again by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from engine.errors import InputError, TailorError
from engine.files import read_object, write_json
from engine.store import ProjectRow
from studio.html import esc, view
from studio.i18n import mark, tr
from studio.service import Service
from studio.starting import start_from_samples

__all__ = ["SAMPLE", "Tour", "add_tour", "tour_line"]

FILE = "tour.json"
SAMPLE = "literary-zh"
STEPS: dict[str, tuple[str, str]] = {
    "samples": (
        mark("These sentences are the style to learn."),
        mark(
            "The file above says what was kept and what was skipped; below are ten at random. With your own samples, look "
            "here first: a plugin learns what stands here."
        ),
    ),
    "phrases": (
        mark("These are the phrases that it is made of."),
        mark(
            "A parser found them. The longer ones are read by higher layers of the base. Click one to see its sentence."
        ),
    ),
    "proportions": (
        mark("This is how much of each domain every word carries."),
        mark("It is there before any training. With several domains you see here what they share."),
    ),
    "train": (
        mark("Now make a plugin."),
        mark(
            "Choose the budget Quick and press Start training. It takes some minutes; you can close this page meanwhile."
        ),
    ),
    "compare": (
        mark("See what it changed."),
        mark(
            "Translate the sentences with and without the plugin. New wording is marked, and the dial sets how strong it "
            "is."
        ),
    ),
    "rate": (
        mark("Let people judge without knowing which is which."),
        mark("Two translations, three questions. You can pass over this until you have a plugin worth asking about."),
    ),
    "plugins": (
        mark("Take it with you."),
        mark(
            "A plugin is one file: download it, or import one of a colleague. That is the whole way; now try your own "
            "samples."
        ),
    ),
    "translate": (
        mark("Translate a document."),
        mark("It comes back in its own format. That is the whole way; now try your own samples."),
    ),
}
ACT = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-tour]');
  if (button) trigger('tour', {act: button.dataset.tour});
});
"""


class Tour:
    """Where the tour stands, on disk."""

    def __init__(self, service: Service) -> None:
        self.service = service

    @property
    def path(self) -> Path:
        return self.service.settings.home_dir / FILE

    def state(self) -> dict[str, Any]:
        """What is kept; empty before the first look at it."""
        return read_object(self.path)

    def project(self) -> ProjectRow | None:
        """The project of an open tour; None when there is none, or the project was deleted."""
        state = self.state()
        if state.get("state") != "open" or not isinstance(state.get("project"), int):
            return None
        try:
            return self.service.store.projects.get(state["project"])
        except TailorError:
            return None

    @property
    def fresh(self) -> bool:
        """Was it never begun nor dismissed here?"""
        return not self.state()

    def start(self, agreed: bool) -> ProjectRow:
        """Begin, or go on where it was left. Raises InputError where a licence must be accepted first."""
        project = self.project()
        if project is not None:
            return project
        corpus = self.service.catalog.sample(SAMPLE)
        bases = self.service.catalog.bases()
        if not bases:
            raise InputError("There is no base model, so there is nothing to show. Add one with `tailormt base add`.")
        base = self.service.catalog.base_for(bases[0]["path"], "en", corpus.target)
        project = start_from_samples(
            self.service, [corpus], "en", corpus.target, base, agreed, tr("Tour: {name}", name=corpus.title)
        )
        self._write(project.id, "open", [])
        return project

    def seen(self, page: str) -> list[str]:
        """Note that a page was looked at; returns all that were."""
        state = self.state()
        pages = [str(one) for one in state.get("seen", []) if one in STEPS]
        if page not in pages:
            pages.append(page)
            self._write(state.get("project"), "open", pages)
        return pages

    def end(self) -> None:
        """Dismiss it: it does not come again by itself."""
        state = self.state()
        self._write(state.get("project"), "ended", state.get("seen", []))

    def _write(self, project: Any, state: str, seen: Sequence[str]) -> None:
        write_json(self.path, {"project": project, "state": state, "seen": list(seen)}, "where the tour stands")


def add_tour(
    demo: gr.Blocks, service: Service, page: str, pages: Sequence[str], guard: Callable[..., Callable[..., Any]]
) -> None:
    """Lay out the tour's line on a page; empty but for the project of an open tour. `pages` are those there are, in order."""
    tour = Tour(service)
    line = view(script=ACT, classes="tm-tour-block")
    order = [one for one in pages if one in STEPS]
    if page not in order:
        return

    def fill(request: gr.Request) -> str:
        project = tour.project()
        here = service.project(str(request.query_params.get("project", "")))
        if project is None or here is None or here.id != project.id:
            return ""
        return tour_line(page, order, tour.seen(page), project.id)

    def act(event: gr.EventData) -> str:
        if event.act == "end":
            tour.end()
        return ""

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    demo.load(guard(fill, polled=True), None, line, **quiet)
    line.tour(guard(act), None, line, **quiet)


def tour_line(page: str, order: Sequence[str], seen: Sequence[str], project: int) -> str:
    """What to look at on this page, how far the tour is, the next page, and the way out."""
    place = order.index(page)
    where = tr("Step {place} of {all}", place=place + 1, all=len(order))
    title, text = STEPS[page]
    dots = "".join(
        f'<i class="{"now" if one == page else "seen" if one in seen else ""}" title="{esc(tr(one.capitalize()))}"></i>'
        for one in order
    )
    if place + 1 < len(order):
        following = order[place + 1]
        onward = tr("Next: {page}", page=tr(following.capitalize()))
        onward = f'<a class="tm-link-button" href="/{esc(following)}?project={project}">{esc(onward)}</a>'
        leave = tr("End the tour")
    else:
        onward = tr("Start with your own samples")
        onward = f'<a class="tm-link-button" href="/samples?project=new">{esc(onward)}</a>'
        leave = tr("Done")
    return (
        f'<aside class="tm-tour" aria-label="{esc(tr("Tour"))}"><div><b>{esc(tr(title))}</b> {esc(tr(text))}</div>'
        f'<div class="tm-tour-way"><span class="tm-dots" role="img" aria-label="{esc(where)}">{dots}</span>'
        f'{onward}<button type="button" class="tm-text-button" data-tour="end">{esc(leave)}</button></div></aside>'
    )
