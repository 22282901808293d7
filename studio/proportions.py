"""The page Proportions: what each word of a sentence, and of the samples, shares with each domain, layer by layer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import gradio as gr

from engine.errors import InputError, TailorError
from engine.methods.domain_mixing.explore import SHOWN, folder_of, read_shown, sentence_shares
from engine.store import JobRow, PluginRow, ProjectRow
from studio.catalog import language_name
from studio.frame import guard, heading, page, wanted
from studio.html import esc, gated, lang_attribute, note, number, shown_if, view, visible_if
from studio.i18n import tr
from studio.plotted import figure_view
from studio.proportion_views import (
    SIDES,
    WORD_SCRIPT,
    corpus_card,
    held_out_line,
    job_card,
    legend,
    no_proportions,
    sentence_view,
    word_card,
)
from studio.reading import next_link
from studio.service import Service

__all__ = ["build"]

TEXT = "What each word shares with each domain, layer by layer."
KIND = "proportions"
LONGEST = 400  # characters of a sentence
MARK = """
const mark = () => {
  const here = element.querySelector('[data-query]');
  if (!here) return;
  const address = new URL(window.location.href);
  new URLSearchParams(here.dataset.query).forEach((value, name) => {
    if (value) address.searchParams.set(name, value); else address.searchParams.delete(name);
  });
  window.history.replaceState(null, '', address);
};
watch('value', mark);
"""


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/proportions`."""
    kept: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()  # sentences that were looked at lately
    with page(demo, service, "proportions", "Proportions", TEXT) as frame:
        with frame.actions:
            fit = gr.Button("Fit again", size="md", visible="hidden")
            onward = view()
        nothing = view()
        with gated(gr.Column, elem_classes="tm-proportions") as body:
            with gr.Column(elem_classes="tm-card tm-pad tm-stack"):
                with gr.Row(elem_classes="tm-sentence-row"):
                    sentence = gr.Textbox(
                        label="Sentence", max_length=LONGEST, max_lines=1, container=False, show_label=False, scale=5
                    )
                    of = gr.Dropdown(
                        [], label="Proportions of", container=False, show_label=False, scale=2, min_width=180
                    )
                    show = gr.Button("Show", size="md", scale=0, min_width=80)
                offered = view(script=WORD_SCRIPT)
                shapes = figure_view(WORD_SCRIPT)
            with gr.Row(elem_classes="tm-proportion-row"):
                with gr.Column(elem_classes="tm-card tm-pad tm-stack tm-grow"):
                    with gr.Row(elem_classes="tm-map-head"):
                        view("<h2>The samples as a whole</h2>", classes="tm-card-title")
                        side = gr.Radio(
                            [("Encoder", "encoder"), ("Decoder", "decoder")], value="decoder", label="Side", show_label=False,
                            container=False, elem_classes="tm-segments",
                        )  # fmt: skip
                    corpus = figure_view(WORD_SCRIPT)
                with gr.Column(elem_classes="tm-card tm-pad tm-stack tm-aside"):
                    view("<h2>Words</h2>", classes="tm-card-title")
                    word = gr.Textbox(
                        label="Look up a word", placeholder="Look up a word", show_label=False, container=False
                    )
                    words = view(script=WORD_SCRIPT)
        mark = view(script=MARK, visible="hidden")
        stamp = gr.Textbox("", visible="hidden")

    # -- what there is

    def known(project: ProjectRow, plugin: str) -> tuple[dict[str, Any], PluginRow | None]:
        """What is shown of the samples, or of a plugin by its number."""
        workspace = service.workspace(project.id)
        row = next((one for one in with_proportions(service, project) if str(one.id) == plugin), None)
        return shown_of(folder_of(workspace, row.id if row else None)), row

    def need(request: gr.Request, plugin: Any) -> tuple[ProjectRow, dict[str, Any], PluginRow | None]:
        project = service.need(wanted(request))
        found, row = known(project, str(plugin or ""))
        if "corpus" not in found:
            raise InputError("These proportions are not there yet. Wait a moment, or fit them again.")
        return project, found, row

    def seen(project: ProjectRow) -> str:
        files = sorted(folder_of(service.workspace(project.id)).glob(f"**/{SHOWN}"))
        job = active_job(service, project)
        return "-".join(
            [*(str(file.stat().st_mtime_ns) for file in files), f"{job.id}/{job.fraction:.2f}" if job else ""]
        )

    # -- what is shown

    def fill(request: gr.Request, given: Mapping[str, Any] | None = None) -> Iterator[dict[Any, Any]]:
        """The page as its address has it, or as it is `given`, since an address that changed later is not told."""
        project, given = service.project(wanted(request)), given or dict(request.query_params)
        hidden = gr.update(visible="hidden")
        if project is None:
            yield {nothing: no_proportions(None, "", False), onward: "", fit: hidden, body: shown_if(False)}
            return
        found, row = known(project, str(given.get("plugin", "")))
        job = active_job(service, project)
        there = "corpus" in found
        samples = bool(service.sentences(project.id))
        state = job_card(job) if job else ""
        if not there:
            state = state or no_proportions(project, str(found.get("error", "")), samples)
        common = {
            nothing: state,
            onward: next_link(project) if samples else "",
            fit: gr.update(visible=visible_if(samples and job is None), value=tr("Fit again") if there else tr("Fit proportions")),
            stamp: seen(project),
        }  # fmt: skip
        if not there:
            yield {frame.title: heading("Proportions", TEXT), body: shown_if(False), **common}
            return
        at = str(given.get("side", "")) if given.get("side") in SIDES else "decoder"
        sought = str(given.get("word", ""))[:60]
        text = str(given.get("sentence", ""))[:LONGEST]
        rows = with_proportions(service, project)
        yield {
            frame.title: heading("Proportions", title_of(found, row)),
            body: shown_if(True),
            of: gr.update(choices=[(tr("samples, before training"), ""), *((one.name, str(one.id)) for one in rows)],
                          value=str(row.id) if row else "", visible=visible_if(bool(rows))),
            sentence: gr.update(value=text, placeholder=tr("A sentence in {language}", language=language_name(project.source))),
            offered: example_buttons(found, project),
            shapes: "" if text else example_of(found, project, layers_in(request), layer_in(request, "example")),
            side: at,
            corpus: legend(found["domains"]) + corpus_card(found, at, layer_in(request, "corpus")),
            word: sought,
            words: word_card(found, at, sought, language_of(project, at)),
            **common,
        }  # fmt: skip
        if text:
            for part in computed(request, project, row, text):
                yield {shapes: part}

    def computed(request: gr.Request, project: ProjectRow, row: PluginRow | None, text: str) -> Iterator[str]:
        """A sentence's shares; they take a moment, and at first the base is loaded."""
        folder = folder_of(service.workspace(project.id))
        key = (project.id, row.id if row else 0, (folder / SHOWN).stat().st_mtime_ns, text)
        if key not in kept:
            yield f'<p class="tm-quiet">{esc(tr("Translating and reading the sentence…"))}</p>'
            try:
                kept[key] = shares_of(service, project, row, folder, text)
            except TailorError as error:
                yield note(str(error), bad=True)
                return
            while len(kept) > 100:
                kept.popitem(last=False)
        yield sentence_view(kept[key], project, layers_in(request))

    def look(request: gr.Request, text: str, plugin: Any) -> Iterator[dict[Any, Any]]:
        project, found, row = need(request, plugin)
        text = " ".join(text.split())[:LONGEST]
        yield {mark: marked(sentence=text, example="")}
        if not text:
            yield {shapes: example_of(found, project, layers_in(request))}
            return
        for part in computed(request, project, row, text):
            yield {shapes: part}

    def example(request: gr.Request, plugin: Any, event: gr.EventData) -> Iterator[dict[Any, Any]]:
        project, found, _ = need(request, plugin)
        yield {
            sentence: "",
            shapes: example_of(found, project, layers_in(request), int(event.number)),
            mark: marked(sentence="", example=str(event.number)),
        }

    def turn(request: gr.Request, of_side: str, sought: str, plugin: Any) -> dict[Any, Any]:
        project, found, _ = need(request, plugin)
        return {
            corpus: legend(found["domains"]) + corpus_card(found, of_side, layer_in(request, "corpus")),
            words: word_card(found, of_side, sought, language_of(project, of_side)),
            mark: marked(side="" if of_side == "decoder" else of_side),
        }

    def seek(request: gr.Request, of_side: str, sought: str, plugin: Any) -> dict[Any, Any]:
        project, found, _ = need(request, plugin)
        return {words: word_card(found, of_side, sought, language_of(project, of_side)), mark: marked(word=sought[:60])}

    def chosen_word(request: gr.Request, of_side: str, plugin: Any, event: gr.EventData) -> dict[Any, Any]:
        """A word was clicked: looked up on the side that it was read on."""
        sought, to = str(event.word), str(event.language)
        to = to if to in SIDES else of_side
        found = {word: sought, side: to, **seek(request, to, sought, plugin)}
        if to != of_side:
            found |= turn(request, to, sought, plugin)
        return found | {mark: marked(word=sought[:60], side="" if to == "decoder" else to)}

    def other(request: gr.Request, text: str, of_side: str, sought: str, plugin: Any) -> Iterator[dict[Any, Any]]:
        """The proportions of another plugin, or of the samples."""
        project = service.need(wanted(request))
        found, row = known(project, str(plugin or ""))
        if "corpus" not in found:
            if active_job(service, project) is None:
                queue(project, row)
            yield {nothing: note(tr("The proportions of this plugin are being read. They are there in some seconds."))}
            return
        yield {
            frame.title: heading("Proportions", title_of(found, row)),
            nothing: "",
            offered: example_buttons(found, project),
            **turn(request, of_side, sought, plugin),
            mark: marked(plugin=str(row.id) if row else ""),
        }
        if text.strip():
            for part in computed(request, project, row, " ".join(text.split())):
                yield {shapes: part}
        else:
            yield {shapes: example_of(found, project, layers_in(request))}

    def queue(project: ProjectRow, row: PluginRow | None) -> None:
        from engine.jobs import enqueue

        enqueue(service.store, KIND, {"plugin_id": row.id} if row else {}, project_id=project.id)

    def fit_again(request: gr.Request, *values: Any) -> Iterator[dict[Any, Any]]:
        project = service.need(wanted(request))
        row = known(project, str(values[0] or ""))[1]
        if active_job(service, project) is None:
            if row is None:
                (folder_of(service.workspace(project.id, change=True)) / SHOWN).unlink(missing_ok=True)
            queue(project, row)
        yield from fill(request, as_it_is(*values))

    def as_it_is(plugin: Any, text: str, of_side: str, sought: str) -> dict[str, Any]:
        return {"plugin": plugin or "", "sentence": text or "", "side": of_side or "", "word": sought or ""}

    def poll(request: gr.Request, before: str, *values: Any) -> Iterator[dict[Any, Any]]:
        project = service.project(wanted(request))
        if project is None or seen(project) == before:
            yield {stamp: gr.skip()}
        elif (job := active_job(service, project)) and "corpus" in known(project, str(values[0] or ""))[0]:
            yield {nothing: job_card(job), stamp: seen(project)}
        else:
            yield from fill(request, as_it_is(*values) if before else None)

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    whole = [
        frame.title,
        nothing,
        onward,
        fit,
        body,
        of,
        sentence,
        offered,
        shapes,
        side,
        corpus,
        word,
        words,
        mark,
        stamp,
    ]
    demo.load(guard(fill), None, whole, **quiet)
    frame.timer.tick(guard(poll, polled=True), [stamp, of, sentence, side, word], whole, **quiet)
    for event in (show.click, sentence.submit):
        event(guard(look), [sentence, of], [shapes, mark], concurrency_limit=2, **quiet)
    offered.example(guard(example), of, [sentence, shapes, mark], **quiet)
    side.input(guard(turn), [side, word, of], [corpus, words, mark], **quiet)
    # Not `input`: it comes with key presses alone, not with what an input method composes.
    word.change(guard(seek), [side, word, of], [words, mark], trigger_mode="always_last", **quiet)
    for source in (shapes, corpus, words):
        source.word(guard(chosen_word), [side, of], [word, side, corpus, words, mark], **quiet)
    of.input(guard(other), [sentence, side, word, of], whole, concurrency_limit=2, **quiet)
    fit.click(guard(fit_again), [of, sentence, side, word], whole, **quiet)


# -- behind the page


@lru_cache(maxsize=8)
def _shown(folder: Path, stamp: int) -> dict[str, Any]:
    return read_shown(folder)


def shown_of(folder: Path) -> dict[str, Any]:
    """What there is to be seen in a folder, read once."""
    file = folder / SHOWN
    return _shown(folder, file.stat().st_mtime_ns) if file.exists() else {}


def with_proportions(service: Service, project: ProjectRow) -> list[PluginRow]:
    """The project's plugins that have proportions of their own."""
    from engine.methods import get_method

    def offers(method: str) -> bool:
        try:
            return get_method(method).capabilities.offers_proportions
        except TailorError:
            return False

    return [row for row in service.store.plugins.list(project.id) if row.exists and offers(row.method)]


def active_job(service: Service, project: ProjectRow) -> JobRow | None:
    """The job that makes this project's proportions now, or will: its own, or the reading of samples."""
    jobs = [job for job in service.store.jobs.list(project.id) if job.active]
    return next((job for job in jobs if job.kind == KIND), None) or next(
        (job for job in jobs if job.kind == "prepare" and job.step_index == 0), None
    )


def shares_of(service: Service, project: ProjectRow, row: PluginRow | None, folder: Path, text: str) -> dict[str, Any]:
    """Translate a sentence and read both sides of it."""
    from engine.methods.domain_mixing.commands import model_of
    from engine.methods.domain_mixing.model import ProportionModel

    base = service.base_model(project)
    translation = next(service.translate(project, [text], row))[0]
    if row is None:
        return sentence_shares(base, ProportionModel.load(folder, base), text, translation)
    plugin = service.plugin(row, base)
    return sentence_shares(base, model_of(plugin, row.name), text, translation, plugin)


def language_of(project: ProjectRow, side: str) -> str:
    return project.source if side == "encoder" else project.target


def layer_in(request: gr.Request, name: str) -> int:
    """The layer that the address names for a slider; 0: all together."""
    given = str(request.query_params.get(name, ""))
    return int(given) if given.isdigit() else 0


def layers_in(request: gr.Request) -> dict[str, int]:
    return {side: layer_in(request, side) for side in SIDES}


def marked(**values: str) -> str:
    """What the address is to say; an empty value leaves it out."""
    return f'<span data-query="{esc(urlencode(values))}"></span>'


def title_of(found: Mapping[str, Any], row: PluginRow | None) -> str:
    """The sentence under the heading."""
    count = number(sum(found["sentences"].values()))
    if row is not None:
        return tr("As {name} mixes its domains, on {count} sentences.", name=row.name, count=count)
    said = tr(
        "Fitted in {seconds} s on {count} sentences, before any training.",
        seconds=f"{found['seconds']:.0f}",
        count=count,
    )
    return f"{said} {held_out_line(found)}".strip()


def example_buttons(found: Mapping[str, Any], project: ProjectRow) -> str:
    """Sentences of the samples to begin with."""
    buttons = "".join(
        f'<button class="tm-chip" data-example="{place}" title="{esc(one["domain"])}"'
        f"{lang_attribute(project.target)}>{esc(shortened(one['translation']))}</button>"
        for place, one in enumerate(found.get("examples", ()))
    )
    return (
        f'<div class="tm-chips"><span class="tm-quiet">{esc(tr("Of your samples"))}</span>{buttons}</div>'
        if buttons
        else ""
    )


def shortened(text: str) -> str:
    return text if len(text) <= 44 else f"{text[:42].rstrip()}…"


def example_of(found: Mapping[str, Any], project: ProjectRow, layers: Mapping[str, int], place: int = 0) -> str:
    """One of them; the first, so that there is something to see at once."""
    examples = found.get("examples") or []
    return sentence_view(examples[place if 0 <= place < len(examples) else 0], project, layers) if examples else ""
