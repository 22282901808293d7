"""The page Samples: give sentences, see what was kept of them, what was skipped, and why; decide about single ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr

from engine.corpora import CorpusOptions
from engine.errors import InputError
from engine.samples import SampleCorpus
from engine.store import ProjectRow
from studio.catalog import language_name, sample_types
from studio.chooser import CHOOSE, base_terms, sample_cards
from studio.forms import build_form
from studio.frame import address, guard, heading, page, wanted
from studio.html import view
from studio.i18n import tr
from studio.reading import job_line, next_link, summary
from studio.report import files_card, leak_card, side_cards, unread_card
from studio.segments import View, chosen, listing, view_counts
from studio.sentences import BROWSE, change_bar, sentence_card
from studio.service import Service
from studio.starting import agree, labels_of, open_terms, start_from_samples, start_project
from studio.uploads import paths_offered, server_files, stashed

__all__ = ["build"]

TEXT = "Sentences in the style you want, in the target language. Translations may stand beside them."
INVITE = (
    '<div class="tm-invite"><b>Drop your sentences here, or start with a sample</b> '
    '<span class="tm-quiet">Text with one sentence a line, tables, TMX, XLIFF, PO, Word, OpenDocument, subtitles, PDF; '
    "several files at once are fine.</span></div>"
)
CHANGE = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-remove]');
  if (button) trigger('remove', {name: button.dataset.remove});
  const untest = event.target.closest('[data-untest]');
  if (untest) trigger('untest', {name: untest.dataset.untest});
  const link = event.target.closest('a[data-go]');
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    trigger('go', {to: link.dataset.go});
  }
});
element.addEventListener('change', (event) => {
  const field = event.target.closest('[data-domain]');
  if (field) trigger('relabel', {name: field.dataset.domain, label: field.value});
});
"""
ACT = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-act]');
  if (button) trigger('act', {act: button.dataset.act, job: button.dataset.job});
});
"""
GO = "(address) => { if (address) window.location.assign(address) }"
# The view of the sentences has an address without a reload; a link among the files brings it into sight as well.
SHOW = "(address) => { if (address) window.history.replaceState(null, '', address) }"
JUMP = """(address) => {
  if (!address) return;
  window.history.replaceState(null, '', address);
  document.getElementById('sentences')?.scrollIntoView({block: 'start', behavior: 'smooth'});
}"""
NOT_ASKED = ("domain_from_file", "check_language", "max_line_chars")


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
                with gr.Column(scale=3, min_width=320):
                    drop = _drop("Files", 190)
                    path = _path_field(service)
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
            with gr.Accordion("How files are read", open=False, elem_classes="tm-advanced"):
                first_form = build_form(CorpusOptions, skip=NOT_ASKED)
            sets = view(script=CHOOSE)
        status = view(script=ACT)
        report = view(script=CHANGE)
        with gr.Row(visible=False, elem_classes="tm-split tm-samples") as body:
            with gr.Column(scale=5, min_width=420, elem_classes="tm-stack"):
                changes = view(script=BROWSE)
                browser = view(script=BROWSE)
            with gr.Column(scale=2, min_width=250, elem_classes="tm-stack"):
                side = view()
                with gr.Column(elem_classes="tm-card tm-pad tm-stack"):
                    view("<h2>Test files</h2>", classes="tm-card-title")
                    leaks = view(script=CHANGE)
                    test = gr.UploadButton(
                        "Name test files…", file_types=sample_types(), file_count="multiple", size="sm"
                    )
        with gr.Column(visible=False, elem_classes="tm-more-files") as more:
            view('<p class="tm-quiet" style="margin:0">Add more files to this project. All of them are read again.</p>')
            add = _drop("Add files", 120)
            with gr.Row(elem_classes="tm-path"):
                more_path = _path_field(service)
                take = gr.Button("Add", size="sm", scale=0, min_width=80, visible=paths_offered(service.settings))
            with gr.Accordion("Add a bundled sample", open=False, elem_classes="tm-advanced"):
                further = view(script=CHOOSE)
            with gr.Accordion("How files are read", open=False, elem_classes="tm-advanced"):
                form = build_form(CorpusOptions, skip=NOT_ASKED)
                reread = gr.Button("Read again with these settings", size="sm", scale=0)
        goto = gr.Textbox(visible="hidden")
        shown = gr.Textbox(visible="hidden")  # the view of the sentences, as its address has it
        stamp = gr.Textbox(visible="hidden")

    show, hide = gr.update(visible=True), gr.update(visible=False)

    def fill(request: gr.Request, chosen_base: str | None) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        if project is None:
            offered = sample_cards(service.catalog.samples())
            head = (heading("Samples", TEXT), show, show, *terms_of(chosen_base), offered, "", hide, hide)
            waiting = stashed(str(request.query_params.get("files", "")), service.settings)
            title = waiting[0].stem if waiting else ""
            return (*head, *("",) * 9, [str(path) for path in waiting] or None, title, *form.values({}))
        query = View.of(dict(request.query_params)).query(at=View.of(dict(request.query_params)).at)
        title, line, files, link, has = reading(project)
        head = (title, hide, hide, "", hide, "", offers(project), show, show if has else hide)
        options = service.import_options(project.id)
        mark = _stamp(service, project)
        return (*head, link, line, files, *sentences_of(project, query), mark, query, None, "", *form.values(options))

    def reading(project: ProjectRow) -> tuple[str, str, str, str, bool]:
        """Heading, where the reading stands, the files, the next step; and whether there is something to show."""
        job = service.reading(project.id)
        found = service.report(project.id)
        busy = job is not None and job.active and job.kind == "prepare"
        leaked = int(service.leaks(project.id).get("samples", 0))
        listed = {Path(str(one.get("name", ""))).name for one in found.get("files", [])}
        unread = [] if busy else [path.name for path in service.sample_files(project.id) if path.name not in listed]
        return (
            heading("Samples", summary(found, project) if found else TEXT),
            job_line(job, bool(found)),
            unread_card(unread) + files_card(found, project.target, service.labels(project.id), project.id, leaked),
            next_link(project) if found and not busy else "",
            bool(found),
        )

    def sentences_of(project: ProjectRow, query: str) -> tuple[str, str, str, str]:
        """The bar of decisions, the sentences, what stands beside them, the test files."""
        found, leaked = service.report(project.id), service.leaks(project.id)
        if not found:
            return "", "", "", ""
        decisions = service.decisions(project.id)
        seen = listing(service.workspace(project.id), found, decisions, View.of(dict(parse_qsl(query))))
        counts = view_counts(found, leaked, decisions)
        several = len(found.get("files", [])) > 1
        body_html = sentence_card(seen, counts, project.id, project.target, project.source, several=several)
        names = [file.name for file in service.test_files(project.id)]
        waiting = service.undecided(project.id)
        return change_bar(decisions, waiting), body_html, side_cards(found), leak_card(leaked, names, project.id)

    def terms_of(chosen_base: str | None) -> tuple[str, Any]:
        if not chosen_base:
            return "", gr.update(visible=False)
        return base_terms(service.catalog.base_card(chosen_base)), gr.update(
            visible=bool(open_terms(service, chosen_base))
        )

    def offers(project: ProjectRow) -> str:
        names = [file.name for file in service.sample_files(project.id)]
        fitting = [
            one
            for one in service.catalog.samples()
            if one.target == project.target and service.catalog.accepted(one.card, one.files[0].parent)
            if not any(file.name in names for file in one.files)
        ]
        return sample_cards(
            fitting, tr("In {language}; each file becomes a domain of its own.", language=language_name(project.target))
        )

    def poll(request: gr.Request, query: str, known: str) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        if project is None:
            return (gr.skip(),) * 10
        title, line, files, link, has = reading(project)
        mark = _stamp(service, project)
        # Sentences are shown again only when there is something new, so that nobody loses his place.
        below = sentences_of(project, query) if mark != known else (gr.skip(),) * 4
        return (title, link, line, files, show if has else hide, *below, mark)

    def name_it(files: list[str] | None, given: str) -> str:
        return given or (Path(files[0]).stem if files else "")

    def of_base(chosen_base: str) -> tuple[Any, ...]:
        found = [one for one in bases if one["path"] == chosen_base]
        choices = _languages(found)
        from_, into = (gr.update(choices=choices, value=_first(found, place)) for place in (0, 1))
        told, asked = terms_of(chosen_base)
        return from_, into, told, asked

    def create(
        files: list[str] | None, place: str, title: str, of: str, into: str, with_base: str, agreed: bool, *values: Any
    ) -> str:
        paths = [Path(file) for file in files or []]
        if place and place.strip():
            paths += server_files(place, service.settings)
        if not paths:
            raise InputError("Choose at least one file with your sentences, or start with a sample.")
        options = first_form.changed(values)
        agree(service, agreed, with_base)
        project = start_project(service, paths, title, of, into, with_base, options=options)
        return address("samples", project.id)

    def create_from(of: str, into: str, with_base: str, agreed: bool, event: gr.EventData) -> str:
        project = start_from_samples(service, _chosen(service, event), of, into, with_base, agreed)
        return address("samples", project.id)

    def add_from(request: gr.Request, event: gr.EventData) -> tuple[str, str]:
        project = service.need(wanted(request))
        corpora = _chosen(service, event)
        files = [file for one in corpora for file in one.files]
        return job_line(service.add_samples(project, files, labels_of(corpora))), offers(project)

    def add_files(files: list[str] | None, request: gr.Request) -> tuple[Any, str]:
        job = service.add_samples(service.need(wanted(request)), files or [])
        return gr.update(value=None), job_line(job)

    def add_path(place: str, request: gr.Request) -> tuple[str, str]:
        job = service.add_samples(service.need(wanted(request)), server_files(place or "", service.settings))
        return "", job_line(job)

    def remove(request: gr.Request, event: gr.EventData) -> str:
        project = service.need(wanted(request))
        if len(service.sample_files(project.id)) == 1:
            raise InputError("This is the project's only file. Add another one first, or start a new project.")
        return job_line(service.remove_sample(project, str(event.name)))

    def relabel(request: gr.Request, event: gr.EventData) -> str:
        return job_line(service.label_sample(service.need(wanted(request)), str(event.name), str(event.label)))

    def act(request: gr.Request, event: gr.EventData) -> str:
        project = service.need(wanted(request))
        if event.act == "cancel":
            service.store.jobs.cancel(int(event.job))
        else:
            service.read_again(project)
        return job_line(service.reading(project.id))

    def again(request: gr.Request) -> str:
        return job_line(service.read_again(service.need(wanted(request))))

    def read_so(request: gr.Request, *values: Any) -> str:
        project = service.need(wanted(request))
        service.set_import_options(project.id, form.changed(values))
        return job_line(service.read_again(project))

    def browse(request: gr.Request, event: gr.EventData) -> tuple[str, ...]:
        project = service.need(wanted(request))
        asked = View.of(dict(parse_qsl(str(event.to))))
        query = asked.query(at=asked.at)
        bar_html, body_html, *_ = sentences_of(project, query)
        return bar_html, body_html, query, _at(project, query)

    def decide(request: gr.Request, event: gr.EventData) -> tuple[str, ...]:
        project = service.need(wanted(request))
        found = View.of(dict(parse_qsl(str(event.query))))
        keys = chosen(
            service.workspace(project.id),
            service.report(project.id),
            service.decisions(project.id),
            found,
            str(event.key),
        )
        service.decide(project.id, str(event.action), keys)
        return sentences_of(project, str(event.query))[:2]

    def undo(request: gr.Request, query: str) -> tuple[str, ...]:
        project = service.need(wanted(request))
        service.undo(project.id)
        return sentences_of(project, query)[:2]

    def add_tests(files: list[str] | None, request: gr.Request) -> str:
        return job_line(service.add_tests(service.need(wanted(request)), files or []))

    def untest(request: gr.Request, event: gr.EventData) -> str:
        return job_line(service.remove_test(service.need(wanted(request)), str(event.name)))

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    below = [changes, browser, side, leaks]
    everything = [
        frame.title, read, start, terms, tick, sets, further, more, body, onward, status, report, *below, stamp, shown,
        drop, name, *form.widgets,
    ]  # fmt: skip
    demo.load(guard(fill), base, everything, **quiet)
    polled = [frame.title, onward, status, report, body, *below, stamp]
    frame.timer.tick(guard(poll, polled=True), [shown, stamp], polled, **quiet)
    drop.upload(guard(name_it), [drop, name], name, **quiet)
    base.input(guard(of_base), base, [source, target, terms, tick], **quiet)
    choices = [source, target, base, tick]
    given = [drop, path, name, *choices, *first_form.widgets]
    read.click(guard(create), given, goto, **quiet).then(None, goto, None, js=GO)
    sets.choose(guard(create_from), choices, goto, **quiet).then(None, goto, None, js=GO)
    further.choose(guard(add_from), None, [status, further], **quiet)
    report.remove(guard(remove), None, status, **quiet)
    report.relabel(guard(relabel), None, status, **quiet)
    add.upload(guard(add_files), add, [add, status], **quiet)
    take.click(guard(add_path), more_path, [more_path, status], **quiet)
    status.act(guard(act), None, status, **quiet)
    reread.click(guard(read_so), form.widgets, status, **quiet)
    test.upload(guard(add_tests), test, status, **quiet)
    leaks.untest(guard(untest), None, status, **quiet)
    browser.go(guard(browse), None, [changes, browser, shown, goto], **quiet).then(None, goto, None, js=SHOW)
    for place in (report, leaks):
        moved = place.go(guard(browse), None, [changes, browser, shown, goto], **quiet)
        moved.then(None, goto, None, js=JUMP)
    browser.decide(guard(decide), None, [changes, browser], **quiet)
    changes.undo(guard(undo), shown, [changes, browser], **quiet)
    changes.again(guard(again), None, status, **quiet)


def _chosen(service: Service, event: gr.EventData) -> list[SampleCorpus]:
    """The bundled corpus that was clicked, with those that go with it where that was asked for."""
    first = service.catalog.sample(str(event.name))
    names = first.goes_with if event.together else ()
    return [first, *(service.catalog.sample(name) for name in names)]


def _drop(label: str, height: int) -> Any:
    return gr.File(
        label=label, show_label=False, file_count="multiple", file_types=sample_types(), height=height, scale=3,
        elem_classes="tm-drop",
    )  # fmt: skip


def _path_field(service: Service) -> Any:
    return gr.Textbox(
        show_label=False, container=False, elem_classes="tm-path-field",
        placeholder="or a path on this machine: /data/manuals.tmx, or a folder",
        visible=paths_offered(service.settings), label="Path on this machine", max_length=1000,
    )  # fmt: skip


def _at(project: ProjectRow, query: str) -> str:
    return f"{address('samples', project.id)}&{query}"


def _stamp(service: Service, project: ProjectRow) -> str:
    """Changes when sentences, test files or decisions have changed on disk."""
    folder = service.workspace(project.id)
    times = []
    for name in ("import_report.json", "leaks.json", "decisions.jsonl", "test_files"):
        try:
            times.append(str((folder / name).stat().st_mtime_ns))
        except OSError:
            times.append("0")
    return ".".join(times)


def _languages(cards: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(language_name(code), code) for one in cards for code in one["languages"]]


def _first(cards: Sequence[Mapping[str, Any]], place: int) -> str | None:
    codes = list(cards[0]["languages"]) if cards else []
    return codes[place] if len(codes) > place else None


def _base_label(one: Mapping[str, Any]) -> str:
    return f"{one['name']} · {one['bytes'] / 1e6:.0f} MB"
