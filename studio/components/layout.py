"""The frame of every page: brand, project menu, steps with counts, active job and device; toasts for errors."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradio as gr

from engine.errors import StorageError, TailorError
from engine.serving.turns import Shares
from engine.store import JobRow, ProjectRow
from studio.auth.identity import client_of, guest
from studio.components.html import esc, html_block, number
from studio.components.templating import render, script
from studio.i18n.translate import LANGUAGES, language, mark, percent, span, tr, translate_message, trn
from studio.services.service import Overview, Service

log = logging.getLogger(__name__)

PAGES = {
    "samples": mark("Samples"),
    "phrases": mark("Phrases"),
    "proportions": mark("Proportions"),
    "train": mark("Train"),
    "compare": mark("Compare"),
    "rate": mark("Rate"),
    "plugins": mark("Plugins"),
    "translate": mark("Translate"),
}
POLL_SECONDS = 2.0
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}  # default options of page events
# EACH: for events in which every click counts. Gradio's default, "once", drops events that arrive while one is being handled.
# LAST: for input controls. "always_last" resends the data of the first event, but the controls' values are read when it runs.
EACH: dict[str, Any] = {**QUIET, "trigger_mode": "multiple"}
LAST: dict[str, Any] = {**QUIET, "trigger_mode": "always_last"}
# For events that read or write files: a few at a time across all pages. The others wait without occupying one of the 40 threads,
# so that some are always free for quick events.
HEAVY: dict[str, Any] = {**QUIET, "concurrency_id": "heavy", "concurrency_limit": 8}
OWN = Shares(HEAVY["concurrency_limit"] // 2)  # heavy events allowed per client
MODEL: dict[str, Any] = {**QUIET, "concurrency_id": "model", "concurrency_limit": 6}  # for events that wait for a model
WORDS = {
    "prepare": mark("Reading samples"),
    "leakage": mark("Comparing with test files"),
    "preview": mark("A first look"),
    "customize": mark("Making a plugin"),
    "compare": mark("Comparing translations"),
    "proportions": mark("Fitting proportions"),
    "phrase_map": mark("Drawing the map"),
    "translate": mark("Translating a document"),
    "add_base": mark("Adding a base"),
    "ablate": mark("Replacing a plugin's memory"),
}
SWITCH = script("layout.js")
FOLLOW = script("follow.js")  # opens the address returned by an event
CONNECTION = script("connection.js")
# The page on which each kind of job is shown.
AT_WORK = {
    "preview": "train",
    "customize": "train",
    "compare": "compare",
    "proportions": "proportions",
    "phrase_map": "phrases",
    "translate": "translate",
    "add_base": "bases",
    "ablate": "plugins",
}


@dataclass
class Page:
    """The frame that a page module receives: the heading to update, the row for its buttons, and the polling timer.

    `fills`: components filled together with the frame, each by a function of the request. A separate load event for each would
    delay the page's first events.
    """

    title: Any
    actions: Any
    timer: Any
    fills: dict[Any, Callable[[gr.Request], Any]] = field(default_factory=dict)


class StudioPage(ABC):
    """A page of the studio: `build` lays it out and wires its events."""

    def __init__(self, demo: gr.Blocks, service: Service) -> None:
        self.demo, self.service = demo, service

    @classmethod
    def build(cls, demo: gr.Blocks, service: Service) -> None:
        """Add the page to the application."""
        instance = cls(demo, service)
        instance.layout()
        instance.events()

    @abstractmethod
    def layout(self) -> None:
        """Create the components."""

    @abstractmethod
    def events(self) -> None:
        """Wire the events of the components."""


def requested_project(request: gr.Request) -> str:
    """The project named in the page's address; empty if none is."""
    return str(request.query_params.get("project", ""))


def in_turn(queue: str) -> dict[str, Any]:
    """Options for events in which every click counts and order matters: all events with the same `queue` run one at a time."""
    return {**EACH, "concurrency_id": queue, "concurrency_limit": 1}


def handle_errors(function: Callable[..., Any], *, polled: bool = False, heavy: bool = False) -> Callable[..., Any]:
    """Wrap an event handler so that errors are shown as a toast with one sentence and leave the page unchanged.

    Errors in `polled` handlers are only logged, as the toast would reappear every two seconds. `heavy` handlers (of the group
    `HEAVY`) are refused if their client already occupies half of the group.
    """

    def slot() -> contextlib.AbstractContextManager[None]:
        return OWN.slot(client_of(guest())) if heavy else contextlib.nullcontext()

    # A handler without outputs must return None on an error too, or Gradio warns of a surplus return value.
    fills = inspect.signature(function).return_annotation not in (None, "None")

    def report(error: Exception) -> Any:
        if polled:
            log.warning("polling failed: %s", error)
        else:
            _toast(error)
        return gr.skip() if fills else None

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def stream(*args: Any, **named: Any) -> Any:
            try:
                with slot():
                    yield from function(*args, **named)
            except Exception as error:
                yield report(error)

        return stream

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            with slot():
                return function(*args, **named)
        except Exception as error:
            return report(error)

    return call


def _toast(error: Exception) -> None:
    if isinstance(error, TailorError):
        if isinstance(error, StorageError):
            log.warning("%s", error)  # including paths, which are hidden from the user
        sentence = translate_message(error.message)
    else:
        log.exception("an event of the studio failed", exc_info=error)
        sentence = tr("This is an error in the studio, not something you did. The details are in its log; please report them.")
    gr.Warning(esc(sentence), duration=12, title=tr("Something went wrong"))


@contextlib.contextmanager
def page(demo: gr.Blocks, service: Service, name: str, title: str, text: str) -> Iterator[Page]:
    """Lay out the frame; the page's content goes into the main column within the context."""
    gr.Navbar(visible=False)
    with gr.Row(elem_classes="tm-shell"):
        with gr.Column(elem_classes="tm-side"):
            top = html_block(brand(), classes="tm-top", script=SWITCH)
            steps = html_block(script=script("navigation.js"))
            foot = html_block(classes="tm-foot", script=CONNECTION)
        with gr.Column(elem_classes="tm-main"):
            with gr.Row(elem_classes="tm-head"):
                head = html_block(heading(title, text), classes="tm-title")
                actions = gr.Row(elem_classes="tm-actions")
            timer = gr.Timer(POLL_SECONDS)
            frame = Page(head, actions, timer)
            yield frame

    def fill(request: gr.Request) -> dict[Any, Any]:
        overview = service.overview(requested_project(request))
        menu, more = project_menu(service.store.projects.list(), overview.project, name), frame.fills.items()
        return dict(zip((top, steps, foot), (menu, *changing(overview)), strict=True)) | {
            component: of(request) for component, of in more
        }

    def poll(request: gr.Request) -> tuple[str, str]:
        return changing(service.overview(requested_project(request)))

    def changing(overview: Overview) -> tuple[str, str]:
        return step_list(overview, name), sidebar_status(overview) + signed_in()

    demo.load(handle_errors(fill), None, [top, steps, foot, *frame.fills], **QUIET)
    timer.tick(handle_errors(poll, polled=True), None, [steps, foot], **QUIET)


def heading(title: str, text: str) -> str:
    """The page's title and the sentence below it."""
    return render("heading.html", title=title, text=text)


def brand() -> str:
    """The name, linked to the home page, and the language switch."""
    return render("brand.html", languages=LANGUAGES.items(), current=language())


def address(page: str, project: int | str | None) -> str:
    """The address of a page, for a project if given."""
    return f"/{page}" + (f"?project={project}" if project else "")


def project_menu(projects: Sequence[ProjectRow], current: ProjectRow | None, name: str) -> str:
    """The brand and the menu of projects, which consists of links so that each project has an address."""
    return render("project_menu.html", brand=brand(), current=current, projects=projects, page=name or "samples")


def step_list(overview: Overview, name: str) -> str:
    """The steps in working order, each with its count or state."""
    project = overview.project.id if overview.project else None
    busy = overview.active if overview.active and overview.active.project_id == project else None
    states = {
        "samples": number(overview.sentences) if overview.sentences is not None else "",
        "phrases": number(overview.phrases) if overview.phrases is not None else "",
        "train": percent(busy.fraction) if busy and busy.kind == "customize" else (str(overview.runs) if overview.runs else ""),
        "rate": f"{number(overview.rated[0])}/{number(overview.rated[1])}" if overview.rated else "",
        "plugins": str(overview.plugins) if overview.plugins else "",
    }
    return render("step_list.html", pages=PAGES, current=name, project=project, states=states, address=address)


def sidebar_status(overview: Overview) -> str:
    """The active job and the device."""
    job = overview.active
    lines: list[str] = []
    if job is not None and job.state == "queued":
        lines = [paused_text() if job.paused else tr("Starts when a worker is free")]
    elif job is not None:
        remaining = tr("{time} left in this step", time=span(job.eta)) if job.eta is not None else tr("estimating")
        queued = " · " + tr("{count} queued", count=overview.waiting) if overview.waiting else ""
        position = tr(" ({place} of {all})", place=job.step_index + 1, all=job.steps) if job.step else ""
        step = tr(job.step or "starting") + position
        lines = [step, remaining + queued]
    base = Path(overview.project.base).name if overview.project else ""
    return render(
        "foot_boxes.html", job=job, title=tr(WORDS.get(job.kind, job.kind)) if job else "",
        state=(waiting_word(job) if job.state == "queued" else percent(job.fraction)) if job else "",
        lines=lines, job_page=AT_WORK.get(job.kind, "samples") if job else "", address=address,
        device=device_text(overview.device).split(" · "), project=overview.project.id if overview.project else None,
        base=tr("base {name}, frozen", name=base) if base else tr("Bases"),
    )  # fmt: skip


def waiting_word(job: JobRow) -> str:
    """The state of a queued job: waiting, or paused until it continues automatically."""
    return tr("paused") if job.paused else tr("waiting")


def paused_text() -> str:
    """The message for a job that was paused in favour of another one."""
    return tr("Paused for another job; continues by itself")


def signed_in() -> str:
    """The signed-in user with links to the account and to sign out; empty without accounts."""
    identity = guest()
    return render("signed_in.html", name=identity.account.name) if identity and identity.account else ""


def step_text(job: JobRow) -> str:
    """The current step of a job: `Finding phrases (step 2 of 10) · 40 s left in this step`."""
    step = tr(job.step) if job.step else tr("Starting")
    if job.steps > 1:
        step = tr("{step} (step {place} of {all})", step=step, place=job.step_index + 1, all=job.steps)
    return step if job.eta is None else f"{step} · {tr('{time} left in this step', time=span(job.eta))}"


def device_text(line: str) -> str:
    """The device line in the reader's language: `CPU, 2 cores · memory 3.1 of 24 GiB`, `CPU, 2 threads`."""
    if threads := re.fullmatch(r"CPU, (\d+) threads?", line):
        return trn("CPU, {count} thread", "CPU, {count} threads", int(threads[1]))
    match = re.fullmatch(r"CPU, (\d+) cores? · ([^\u00a0]++)\u00a0of\u00a0(.++)", line)
    if match is None:
        return line
    cores, used, total = match.groups()
    memory = tr("memory {used} of {all}", used=used, all=total)
    return trn("CPU, {count} core", "CPU, {count} cores", int(cores)) + " · " + memory
