"""The page Samples: give sentences, see what was kept of them, what was skipped, and why."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from engine.errors import InputError
from engine.progress import duration
from engine.samples import SampleCorpus
from engine.store import JobRow, ProjectRow
from studio.catalog import language_name, sample_types
from studio.frame import address, guard, heading, page, wanted
from studio.html import Cell, bar, bars, card, esc, note, number, table, tag, titled, view
from studio.service import Service

__all__ = ["build", "file_table", "report_cards"]

TEXT = "Sentences in the style you want, in the target language. Translations may stand beside them."
INVITE = (
    '<div class="tm-invite"><b>Drop your sentences here, or start with a sample</b> '
    '<span class="tm-quiet">TXT with one sentence a line, CSV, TSV or JSONL; several files at once are fine.</span></div>'
)
CHOOSE = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-sample]');
  if (button) trigger('choose', {name: button.dataset.sample});
});
"""
REMOVE = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-remove]');
  if (button) trigger('remove', {name: button.dataset.remove});
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
            sets = view(sample_cards(service.catalog.samples()), script=CHOOSE)
        status = view()
        report = view(script=REMOVE)
        with gr.Column(visible=False, elem_classes="tm-more-files") as more:
            view('<p class="tm-quiet" style="margin:0">Add more files to this project. All of them are read again.</p>')
            add = gr.File(
                label="Add files", show_label=False, file_count="multiple", file_types=sample_types(), height=120,
                elem_classes="tm-drop",
            )  # fmt: skip
        goto = gr.Textbox(visible="hidden")

    def fill(request: gr.Request) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        if project is None:
            return (
                heading("Samples", TEXT),
                gr.update(visible=True),
                "",
                gr.update(visible=True),
                "",
                "",
                gr.update(visible=False),
            )
        job = _job(service, project)
        found = service.report(project.id)
        return (
            heading("Samples", summary(found, project) if found else TEXT),
            gr.update(visible=False),
            next_link(project) if found and not (job and job.active) else "",
            gr.update(visible=False),
            job_line(job),
            report_cards(found, service.sentences(project.id), project.target, _names(service, project)),
            gr.update(visible=True),
        )

    def poll(request: gr.Request) -> tuple[Any, ...]:
        if service.project(wanted(request)) is None:
            return (gr.skip(),) * 4
        title, _, link, _, line, cards, _ = fill(request)
        return title, link, line, cards

    def name_it(files: list[str] | None, given: str) -> str:
        return given or (Path(files[0]).stem if files else "")

    def languages_of(path: str) -> tuple[Any, Any]:
        chosen = [one for one in bases if one["path"] == path]
        choices = _languages(chosen)
        return gr.update(choices=choices, value=_first(chosen, 0)), gr.update(choices=choices, value=_first(chosen, 1))

    def create(files: list[str] | None, title: str, of: str, into: str, path: str) -> str:
        if not files:
            raise InputError("Choose at least one file with your sentences, or start with a sample.")
        return _create(service, [Path(file) for file in files], title, of, into, path)

    def create_from(of: str, into: str, path: str, event: gr.EventData) -> str:
        chosen = service.catalog.sample(event.name)
        if chosen.target != into:
            of, into = (into if of == chosen.target else of), chosen.target
        return _create(service, chosen.files, chosen.title, of, into, path)

    def add_files(files: list[str] | None, request: gr.Request) -> tuple[Any, str]:
        job = service.add_samples(service.need(wanted(request)), files or [])
        return gr.update(value=None), job_line(job)

    def remove(request: gr.Request, event: gr.EventData) -> str:
        project = service.need(wanted(request))
        if len(service.sample_files(project.id)) == 1:
            raise InputError("This is the project's only file. Add another one first, or start a new project.")
        return job_line(service.remove_sample(project, str(event.name)))

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    demo.load(guard(fill), None, [frame.title, read, onward, start, status, report, more], **quiet)
    frame.timer.tick(guard(poll, polled=True), None, [frame.title, onward, status, report], **quiet)
    drop.upload(guard(name_it), [drop, name], name, **quiet)
    base.input(guard(languages_of), base, [source, target], **quiet)
    choices = [source, target, base]
    read.click(guard(create), [drop, name, *choices], goto, **quiet).then(None, goto, None, js=GO)
    sets.choose(guard(create_from), choices, goto, **quiet).then(None, goto, None, js=GO)
    report.remove(guard(remove), None, status, **quiet)
    add.upload(guard(add_files), add, [add, status], **quiet)


def _create(service: Service, files: Sequence[Path], title: str, *choice: str) -> str:
    of, into, path = choice
    if not path:
        raise InputError(
            "There is no base model. Put one into the folder bases in the data folder, or into assets/models."
        )
    project = service.create_project(title or files[0].stem, of, into, path)
    try:
        service.add_samples(project, files)
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


def sample_cards(sets: Sequence[SampleCorpus]) -> str:
    """The bundled corpora, one click each."""
    if not sets:
        return ""
    cards = "".join(
        f'<button type="button" class="tm-method" data-sample="{esc(one.name)}"><h3>{esc(one.title)}</h3>'
        f"<p>{esc(one.card.summary)}</p><p>{esc(language_name(one.target))}</p></button>"
        for one in sets
    )
    return f'<p class="tm-quiet tm-or">Bundled samples</p><div class="tm-grid">{cards}</div>'


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


def report_cards(
    report: Mapping[str, Any], sentences: Sequence[Mapping[str, Any]], language: str, names: Sequence[str] = ()
) -> str:
    """Files with what was kept and skipped, languages and warnings, and ten sentences."""
    if not report:
        return ""
    warnings = "".join(note(str(one)) for one in report.get("warnings", []))
    shares = [(code, share) for code, share in report.get("languages", {}).items() if share >= 0.005]
    tags = " ".join(
        tag(f"{language_name(code)} {share:.0%}", "accent" if code == language else "") for code, share in shares
    )
    files = titled("Files", file_table(report), tags)
    if not sentences:
        return warnings + files
    chosen = random.Random(len(sentences)).sample(range(len(sentences)), min(10, len(sentences)))
    rows = [
        [
            Cell(sentences[place].get("text", ""), lang=language),
            Cell(_place(sentences[place], len(names) > 1), "", "num quiet"),
        ]
        for place in sorted(chosen)
    ]
    body = table(["sentence", "line"], rows, numeric=[1])
    examples = titled(f"{len(rows)} of {number(len(sentences))} sentences, at random", body)
    lengths = card(length_bars([str(one.get("text", "")) for one in sentences]), "Sentences by length, in characters")
    return f'{warnings}{files}<div class="tm-two">{examples}{lengths}</div>'


def length_bars(texts: Sequence[str]) -> str:
    """How long the sentences are: up to twelve columns of a round width, the last one open."""
    lengths = sorted(len(text) for text in texts)
    usual = lengths[int(0.98 * (len(lengths) - 1))]
    width = next(step for step in (2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if usual < 12 * step)
    last = usual // width
    counts = [0] * (last + 1)
    for length in lengths:
        counts[min(length // width, last)] += 1
    names = [
        f"{place * width}" + ("+" if place == last and lengths[-1] >= (last + 1) * width else "")
        for place in range(last + 1)
    ]
    middle = lengths[len(lengths) // 2]
    return (
        bars(counts, names, "sentences")
        + f'<p class="tm-quiet">half of them have up to {number(middle)} characters</p>'
    )


def _place(sentence: Mapping[str, Any], several: bool) -> str:
    line = number(sentence.get("line", 0))
    return f"{Path(str(sentence.get('file', ''))).name} {line}" if several else line


def file_table(report: Mapping[str, Any]) -> str:
    """One row a file; the skipped ones unfold to line, reason and excerpt."""
    rows = []
    several = len(report.get("files", [])) > 1
    for file in report.get("files", []):
        name = Path(str(file.get("name", ""))).name
        remove = f'<button type="button" class="tm-text-button" data-remove="{esc(name)}">Remove</button>'
        notes = "".join(f'<div class="tm-quiet">{esc(one)}</div>' for one in file.get("notes", []))
        rows.append(
            [
                Cell(html=f"{esc(name)}{notes}"),
                Cell(file.get("encoding", ""), kind="quiet"),
                Cell(number(file.get("lines", 0)), kind="num"),
                Cell(number(file.get("kept", 0)), kind="num"),
                Cell(html=_skipped(file, str(report.get("language", "")))),
                *([Cell(html=remove, kind="num")] if several else []),
            ]
        )
    heads = ["file", "encoding", "lines", "kept", "skipped", *([""] if several else [])]
    return table(heads, rows, numeric=[2, 3])


def _skipped(file: Mapping[str, Any], language: str) -> str:
    counts = file.get("skipped", {})
    if not counts:
        return "0"
    parts = ", ".join(f"{reason} {number(count)}" for reason, count in counts.items())
    lines = [
        [Cell(number(line), kind="num"), Cell(reason), Cell(text, lang=language)]
        for reason, examples in file.get("examples", {}).items()
        for line, text in examples
    ]
    inner = table(["line", "reason", "text"], lines, numeric=[0], kind="tm-skips") if lines else ""
    head = f"<summary>{number(sum(counts.values()))}: {esc(parts)}</summary>"
    return f'<details class="tm-more">{head}{inner}</details>'
