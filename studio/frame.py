"""The frame of every page: brand, projects, steps with their counts, the job at work and the device; toasts for errors."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gradio as gr

from engine.errors import TailorError
from engine.jobs.kinds import PARTS
from studio.door.who import guest
from studio.html import bar, esc, number, view
from studio.i18n import LANGUAGES, language, mark, span, tr, trn
from studio.moves import MOVES
from studio.service import Overview, Service
from studio.told import told
from studio.tour import add_tour

if TYPE_CHECKING:
    from engine.store import JobRow

__all__ = ["PAGES", "Page", "guard", "heading", "page", "step_said", "wanted"]

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
WORDS = {
    "prepare": mark("Reading samples"),
    "leakage": mark("Comparing with test files"),
    "preview": mark("A first look"),
    **dict.fromkeys(("customize", *PARTS), mark("Making a plugin")),
    "compare": mark("Comparing translations"),
    "proportions": mark("Fitting proportions"),
    "phrase_map": mark("Drawing the map"),
    "translate": mark("Translating a document"),
}
# The choice is kept in a cookie; what the address shows stays, but for a language that it named.
SWITCH = """
element.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-language]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  document.cookie = `tailormt_language=${link.dataset.language}; Path=/; Max-Age=31536000; SameSite=Lax`;
  const address = new URL(window.location.href);
  address.searchParams.delete('lang');
  if (address.href === window.location.href) window.location.reload(); else window.location.assign(address);
});
"""
# The page of a kind of job.
AT_WORK = {
    "preview": "train",
    **dict.fromkeys(("customize", *PARTS), "train"),
    "compare": "compare",
    "proportions": "proportions",
    "phrase_map": "phrases",
    "translate": "translate",
}


@dataclass
class Page:
    """What a page module gets: the heading to update, the place for its buttons, and the tick that polls rows."""

    title: Any
    actions: Any
    timer: Any


def wanted(request: gr.Request) -> str:
    """The project named in the page's address; empty when none is."""
    return str(request.query_params.get("project", ""))


def guard(function: Callable[..., Any], *, polled: bool = False) -> Callable[..., Any]:
    """An event handler whose errors become a toast with one sentence; the page stays as it is.

    What is `polled` fails without a toast, which would come again every two seconds.
    """
    say = _note if polled else _toast
    # A handler that fills nothing must return nothing on an error either, or Gradio complains of a value too many.
    if inspect.signature(function).return_annotation in (None, "None"):
        tell = say

        def say(error: Exception) -> None:
            tell(error)

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def stream(*args: Any, **named: Any) -> Any:
            try:
                yield from function(*args, **named)
            except Exception as error:
                yield say(error)

        return stream

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except Exception as error:
            return say(error)

    return call


def _note(error: Exception) -> Any:
    log.warning("polling failed: %s", error)
    return gr.skip()


def _toast(error: Exception) -> Any:
    if isinstance(error, TailorError):
        sentence = told(str(error))
    else:
        log.exception("an event of the studio failed", exc_info=error)
        sentence = tr("This is a fault of the studio, not yours. The details are in its log; please report them.")
    gr.Warning(esc(sentence), duration=12, title=tr("That did not work"))
    return gr.skip()


@contextlib.contextmanager
def page(demo: gr.Blocks, service: Service, name: str, title: str, text: str) -> Iterator[Page]:
    """Lay out the frame and hand over the main column for the page's own content."""
    gr.Navbar(visible=False)
    with gr.Row(elem_classes="tm-shell"):
        with gr.Column(elem_classes="tm-side"):
            top = view(brand(), classes="tm-top", script=SWITCH)
            steps = view(script=MOVES)
            foot = view(classes="tm-foot")
        with gr.Column(elem_classes="tm-main"):
            with gr.Row(elem_classes="tm-head"):
                head = view(heading(title, text), classes="tm-title")
                actions = gr.Row(elem_classes="tm-actions")
            add_tour(demo, service, name, list(PAGES), guard)
            timer = gr.Timer(POLL_SECONDS)
            yield Page(head, actions, timer)

    def fill(request: gr.Request) -> tuple[str, str, str]:
        seen = service.overview(wanted(request))
        return project_menu(seen, name), step_list(seen, name), foot_boxes(seen) + signed_in()

    def poll(request: gr.Request) -> tuple[str, str]:
        return fill(request)[1:]

    demo.load(guard(fill), None, [top, steps, foot], show_progress="hidden", api_visibility="private")
    timer.tick(guard(poll, polled=True), None, [steps, foot], show_progress="hidden", api_visibility="private")


def heading(title: str, text: str) -> str:
    """The page's name and the sentence under it."""
    return f"<h1>{esc(tr(title))}</h1><p>{esc(tr(text))}</p>"


def brand() -> str:
    """The name, which leads to the first page, and the languages of the interface."""
    now = language()
    links = "".join(
        f'<a href="?lang={code}" data-language="{code}" lang="{code}"{" aria-current=true" if code == now else ""}>{name}</a>'
        for code, name in LANGUAGES.items()
    )
    return (
        '<div class="tm-brand"><a href="/">Tailor<span>·</span>MT</a>'
        f'<div class="tm-languages" role="group" aria-label="{esc(tr("Language"))}">{links}</div></div>'
    )


def address(page: str, project: int | str | None) -> str:
    """The address of a page of a project."""
    return f"/{page}" + (f"?project={project}" if project else "")


def project_menu(seen: Overview, name: str) -> str:
    """Brand and the menu of projects: links, so that each has its address."""
    current = seen.project
    items = "".join(
        f'<li><a href="{esc(address(name or "samples", row.id))}"'
        f"{' aria-current=true' if current and row.id == current.id else ''}>{esc(row.name)}</a></li>"
        for row in seen.projects
    )
    label = current.name if current else tr("New project")
    return (
        f'{brand()}<details class="tm-projects"><summary aria-label="{esc(tr("Project"))}"><b>{esc(label)}</b></summary><ul>{items}'
        f'<li class="tm-rule"><a href="/samples?project=new">{esc(tr("New project"))}</a></li></ul></details>'
    )


def step_list(seen: Overview, name: str) -> str:
    """The steps in the order of the work, each with its count or state."""
    project = seen.project.id if seen.project else None
    busy = seen.active if seen.active and seen.active.project_id == project else None
    states = {
        "samples": number(seen.sentences) if seen.sentences is not None else "",
        "phrases": number(seen.phrases) if seen.phrases is not None else "",
        "train": f"{busy.fraction:.0%}" if busy and busy.kind == "customize" else (str(seen.runs) if seen.runs else ""),
        "compare": "",
        "rate": f"{number(seen.rated[0])}/{number(seen.rated[1])}" if seen.rated else "",
        "plugins": str(seen.plugins) if seen.plugins else "",
    }
    links = "".join(
        f'<a href="{esc(address(slug, project))}"{" aria-current=page" if slug == name else ""}>{esc(tr(label))}'
        f"<small>{esc(states.get(slug, ''))}</small></a>"
        for slug, label in PAGES.items()
    )
    return f'<nav class="tm-steps" aria-label="{esc(tr("Steps"))}">{links}</nav>'


def foot_boxes(seen: Overview) -> str:
    """The job at work and the device."""
    job = seen.active
    boxes = ""
    if job is not None:
        share = job.fraction
        word = tr(WORDS.get(job.kind, job.kind))
        if job.state == "queued":
            lines = f"<b>{esc(word)}</b> · {esc(tr('waiting'))}<br>{esc(tr('It starts when a worker is free'))}"
        else:
            left = tr("{time} left in this step", time=span(job.eta)) if job.eta is not None else tr("estimating")
            queued = " · " + tr("{count} queued", count=seen.waiting) if seen.waiting else ""
            step = tr(job.step or "starting") + tr(" ({place} of {all})", place=job.step_index + 1, all=job.steps)
            lines = f"<b>{esc(word)}</b> · {share:.0%}<br>{esc(step)}<br>{esc(left)}{esc(queued)}"
        link = address(AT_WORK.get(job.kind, "samples"), job.project_id)
        boxes += f'<a class="tm-job" href="{esc(link)}"><div class="tm-box">{lines}{bar(share)}</div></a>'
    base = seen.project.base.rstrip("/").rsplit("/", 1)[-1] if seen.project else ""
    below = f"<br>{esc(tr('base {name}, frozen', name=base))}" if base else ""
    return f'{boxes}<div class="tm-box">{esc(device_said(seen.device))}{below}</div>'


def signed_in() -> str:
    """Who signed in, with the way to their account and out; nothing where nobody does."""
    known = guest()
    if known is None or known.account is None:
        return ""
    return (
        f'<div class="tm-box"><b>{esc(known.account.name)}</b><br><a href="/account">{esc(tr("Your account"))}</a> '
        f'<form method="post" action="/sign-out"><button class="tm-text-button">{esc(tr("Sign out"))}</button></form></div>'
    )


def step_said(job: JobRow) -> str:
    """What a job does now: `Finding phrases (step 2 of 7), 40 s left in this step`."""
    step = tr(job.step) if job.step else tr("Starting")
    place = {"step": step, "place": job.step_index + 1, "all": job.steps}
    if job.eta is None:
        return tr("{step} (step {place} of {all})", **place)
    return tr("{step} (step {place} of {all}), {time} left in this step", time=span(job.eta), **place)


def device_said(line: str) -> str:
    """`CPU, 2 cores · 3.1 of 24 GiB`, `CPU, 2 threads` in the reader's language."""
    if threads := re.fullmatch(r"CPU, (\d+) threads?", line):
        return trn("CPU, {count} thread", "CPU, {count} threads", int(threads[1]))
    found = re.fullmatch(r"CPU, (\d+) cores? · (.+)\u00a0of\u00a0(.+)", line)
    if found is None:
        return line
    cores, used, whole = found.groups()
    return (
        trn("CPU, {count} core", "CPU, {count} cores", int(cores)) + " · " + tr("{used} of {all}", used=used, all=whole)
    )
