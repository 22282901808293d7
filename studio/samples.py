"""The page Samples: give sentences, see what was kept of them, what was skipped, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from engine.errors import InputError
from engine.progress import duration
from engine.samples import SampleCorpus
from engine.store import JobRow, ProjectRow
from studio.catalog import language_name, sample_types
from studio.chooser import CHOOSE, base_terms, sample_cards
from studio.frame import address, guard, heading, page, wanted
from studio.html import bar, card, esc, note, number, view
from studio.report import report_cards
from studio.service import Service

__all__ = ["build"]

TEXT = "Sentences in the style you want, in the target language. Translations may stand beside them."
INVITE = (
    '<div class="tm-invite"><b>Drop your sentences here, or start with a sample</b> '
    '<span class="tm-quiet">TXT with one sentence a line, CSV, TSV or JSONL; several files at once are fine.</span></div>'
)
CHANGE = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-remove]');
  if (button) trigger('remove', {name: button.dataset.remove});
});
element.addEventListener('change', (event) => {
  const field = event.target.closest('[data-domain]');
  if (field) trigger('relabel', {name: field.dataset.domain, label: field.value});
});
"""
GO = "(address) => { if (address) window.location.assign(address) }"


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/samples`."""
    bases = service.catalog.bases()
    with page(demo, service, "samples", "Samples", TEXT) as frame:
        with frame.actions:
            onward = view()
            read = gr.Button("Read samples", variant="primary", visible=False)
        with gr.Column(visible=False) as start:
            view(INVITE)
            with gr.Row(equal_height=True):
                drop = gr.File(
                    label="Files",
                    show_label=False,
                    file_count="multiple",
                    file_types=sample_types(),
                    height=190,
                    scale=3,
                    elem_classes="tm-drop",
                )
                with gr.Column(scale=2, min_width=280, elem_classes="tm-card tm-pad tm-fields"):
                    name = gr.Textbox(label="Project", placeholder="named after the first file", max_length=80)
                    with gr.Row():
                        source = gr.Dropdown(label="From", choices=_languages(bases[:1]), value=_first(bases, 0))
                        target = gr.Dropdown(label="Into", choices=_languages(bases[:1]), value=_first(bases, 1))
                    base = gr.Dropdown(
                        label="Base model, stays frozen",
                        choices=[(_base_label(one), one["path"]) for one in bases],
                        value=bases[0]["path"] if bases else None,
                    )
                    terms = view()
                    tick = gr.Checkbox(label="I accept these terms", visible=False, container=False)
            sets = view(script=CHOOSE)
        status = view()
        report = view(script=CHANGE)
        with gr.Column(visible=False, elem_classes="tm-more-files") as more:
            view('<p class="tm-quiet" style="margin:0">Add more files to this project. All of them are read again.</p>')
            add = gr.File(
                label="Add files", show_label=False, file_count="multiple", file_types=sample_types(), height=120,
                elem_classes="tm-drop",
            )  # fmt: skip
            with gr.Accordion("Add a bundled sample", open=False, elem_classes="tm-advanced"):
                further = view(script=CHOOSE)
        goto = gr.Textbox(visible="hidden")

    def fill(request: gr.Request, path: str | None) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        show, hide = gr.update(visible=True), gr.update(visible=False)
        if project is None:
            offered = sample_cards(service.catalog.samples())
            return heading("Samples", TEXT), show, "", show, "", "", hide, offered, *terms_of(path), ""
        title, link, line, cards = reading(project)
        return title, hide, link, hide, line, cards, show, "", "", hide, offers(project)

    def reading(project: ProjectRow) -> tuple[str, str, str, str]:
        """Heading, next step, where the reading stands, what was read."""
        job = _job(service, project)
        found = service.report(project.id)
        return (
            heading("Samples", summary(found, project) if found else TEXT),
            next_link(project) if found and not (job and job.active) else "",
            job_line(job),
            report_cards(
                found,
                service.sentences(project.id),
                project.target,
                _names(service, project),
                service.labels(project.id),
            ),
        )

    def terms_of(path: str | None) -> tuple[str, Any]:
        if not path:
            return "", gr.update(visible=False)
        return base_terms(service.catalog.base_card(path)), gr.update(visible=bool(_open_terms(service, path)))

    def offers(project: ProjectRow) -> str:
        names = _names(service, project)
        fitting = [
            one
            for one in service.catalog.samples()
            if one.target == project.target and service.catalog.accepted(one.card, one.files[0].parent)
            if not any(file.name in names for file in one.files)
        ]
        return sample_cards(fitting, f"In {language_name(project.target)}; each file becomes a domain of its own.")

    def poll(request: gr.Request) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        return (gr.skip(),) * 4 if project is None else reading(project)

    def name_it(files: list[str] | None, given: str) -> str:
        return given or (Path(files[0]).stem if files else "")

    def of_base(path: str) -> tuple[Any, ...]:
        chosen = [one for one in bases if one["path"] == path]
        choices = _languages(chosen)
        from_, into = (gr.update(choices=choices, value=_first(chosen, place)) for place in (0, 1))
        shown, asked = terms_of(path)
        return from_, into, shown, asked

    def create(files: list[str] | None, title: str, of: str, into: str, path: str, agreed: bool) -> str:
        if not files:
            raise InputError("Choose at least one file with your sentences, or start with a sample.")
        _agree(service, agreed, path)
        return _create(service, [Path(file) for file in files], title, of, into, path)

    def create_from(of: str, into: str, path: str, agreed: bool, event: gr.EventData) -> str:
        chosen = _chosen(service, event)
        first = chosen[0]
        if first.source:
            of, into = first.source, first.target
        elif first.target != into:
            of, into = (into if of == first.target else of), first.target
        path = service.catalog.base_for(path, of, into) if path else path
        _agree(service, agreed, path, chosen)
        title = " and ".join(one.title for one in chosen)
        files = [file for one in chosen for file in one.files]
        return _create(service, files, title, of, into, path, labels=_labels(chosen) if len(files) > 1 else None)

    def add_from(request: gr.Request, event: gr.EventData) -> tuple[str, str]:
        project = service.need(wanted(request))
        chosen = _chosen(service, event)
        files = [file for one in chosen for file in one.files]
        return job_line(service.add_samples(project, files, _labels(chosen))), offers(project)

    def add_files(files: list[str] | None, request: gr.Request) -> tuple[Any, str]:
        job = service.add_samples(service.need(wanted(request)), files or [])
        return gr.update(value=None), job_line(job)

    def remove(request: gr.Request, event: gr.EventData) -> str:
        project = service.need(wanted(request))
        if len(service.sample_files(project.id)) == 1:
            raise InputError("This is the project's only file. Add another one first, or start a new project.")
        return job_line(service.remove_sample(project, str(event.name)))

    def relabel(request: gr.Request, event: gr.EventData) -> str:
        return job_line(service.label_sample(service.need(wanted(request)), str(event.name), str(event.label)))

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    everything = [frame.title, read, onward, start, status, report, more, sets, terms, tick, further]
    demo.load(guard(fill), base, everything, **quiet)
    frame.timer.tick(guard(poll, polled=True), None, [frame.title, onward, status, report], **quiet)
    drop.upload(guard(name_it), [drop, name], name, **quiet)
    base.input(guard(of_base), base, [source, target, terms, tick], **quiet)
    choices = [source, target, base, tick]
    read.click(guard(create), [drop, name, *choices], goto, **quiet).then(None, goto, None, js=GO)
    sets.choose(guard(create_from), choices, goto, **quiet).then(None, goto, None, js=GO)
    further.choose(guard(add_from), None, [status, further], **quiet)
    report.remove(guard(remove), None, status, **quiet)
    report.relabel(guard(relabel), None, status, **quiet)
    add.upload(guard(add_files), add, [add, status], **quiet)


def _chosen(service: Service, event: gr.EventData) -> list[SampleCorpus]:
    """The bundled corpus that was clicked, with those that go with it where that was asked for."""
    first = service.catalog.sample(str(event.name))
    names = first.goes_with if event.together else ()
    return [first, *(service.catalog.sample(name) for name in names)]


def _labels(corpora: Sequence[SampleCorpus]) -> dict[str, str]:
    """A bundled corpus is one domain, whatever its files are called."""
    return {file.name: one.title[:40] for one in corpora for file in one.files}


def _open_terms(service: Service, path: str, corpora: Sequence[SampleCorpus] = ()) -> list[tuple[Any, str]]:
    """Cards, with their places, whose restrictions were not accepted yet."""
    cards = [(service.catalog.base_card(path), path)] if path else []
    cards += [(one.card, str(one.files[0].parent)) for one in corpora]
    return [(one, place) for one, place in cards if not service.catalog.accepted(one, place)]


def _agree(service: Service, agreed: bool, path: str, corpora: Sequence[SampleCorpus] = ()) -> None:
    """Remember what the tick accepted. Raises InputError where one is needed."""
    for one, place in _open_terms(service, path, corpora):
        if not agreed:
            raise InputError(f"{one.title} is for {one.license_name}. Tick “I accept these terms” to use it.")
        service.catalog.accept(one, place)


def _create(
    service: Service, files: Sequence[Path], title: str, *choice: str, labels: Mapping[str, str] | None = None
) -> str:
    of, into, path = choice
    if not path:
        raise InputError(
            "There is no base model. Add one with `tailormt base add`, or put its folder into assets/models."
        )
    project = service.create_project(title or files[0].stem, of, into, path)
    try:
        service.add_samples(project, files, labels)
    except Exception:
        service.store.projects.delete(project.id)
        raise
    return address("samples", project.id)


def _job(service: Service, project: ProjectRow) -> JobRow | None:
    jobs = [job for job in service.store.jobs.list(project.id) if job.kind == "prepare"]
    return jobs[0] if jobs else None


def _names(service: Service, project: ProjectRow) -> list[str]:
    return [path.name for path in service.sample_files(project.id)]


def _languages(cards: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(language_name(code), code) for one in cards for code in one["languages"]]


def _first(cards: Sequence[Mapping[str, Any]], place: int) -> str | None:
    codes = list(cards[0]["languages"]) if cards else []
    return codes[place] if len(codes) > place else None


def _base_label(one: Mapping[str, Any]) -> str:
    return f"{one['name']} · {one['decoder_layers']} decoder layers · {one['bytes'] / 1e6:.0f} MB"


# -- what is shown


def next_link(project: ProjectRow) -> str:
    """The next step, as the page's one filled button."""
    return f'<a class="tm-link-button tm-filled" href="{esc(address("train", project.id))}">Train a plugin</a>'


def summary(report: Mapping[str, Any], project: ProjectRow) -> str:
    """The sentence under the heading."""
    files = len(report.get("files", []))
    return (
        f"{number(report.get('kept', 0))} sentences kept from {files} {'file' if files == 1 else 'files'}, "
        f"{number(sum(report.get('skipped', {}).values()))} skipped. "
        f"{language_name(project.source)} to {language_name(project.target)}."
    )


def job_line(job: JobRow | None) -> str:
    """Where the reading stands; nothing once it is done."""
    if job is None or job.state == "succeeded":
        return ""
    if job.state == "queued":
        return card('<span class="tm-quiet">Waiting for a worker to read the samples.</span>')
    if job.state == "running":
        left = f", {duration(job.eta)} left in this step" if job.eta is not None else ""
        line = f"{job.step or 'Starting'} (step {job.step_index + 1} of {job.steps}){left}"
        return card(f'<b>Reading samples</b> <span class="tm-quiet">{esc(line)}</span>{bar(job.fraction)}')
    return note(job.error or f"Reading the samples was {job.state}. Add the files again to read them anew.", bad=True)
