"""The page Phrases: what was found in the samples, what is typical of them, which decoder layer will read it.

The tree, the histograms, the table and the map show the same phrase; what is looked at stands in the address.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from engine.errors import InputError
from engine.phrases.exclusions import Exclusions
from engine.phrases.types import Tree
from engine.store import ProjectRow
from studio.frame import address, guard, heading, page, wanted
from studio.html import card, esc, gated, number, shown_if, view, visible_if
from studio.i18n import tr, trn
from studio.phrase_data import (
    ORDERS,
    PAGE,
    SHOWS,
    Phrases,
    PhraseView,
    Row,
    own_sources,
    phrases_of,
    stamp_of,
    with_page_of,
)
from studio.phrase_sentences import at_sentence, check_share, holding, left_out, parsed_tree, spots, tree_of
from studio.phrase_tree import TREE_SCRIPT, tree_svg
from studio.phrase_views import (
    HISTOGRAM_SCRIPT,
    KEEP,
    MARK,
    TABLE_SCRIPT,
    detail_card,
    histograms,
    map_figure,
    map_invite,
    map_state,
    no_phrases,
    origin_card,
    phrase_table,
    tree_card,
    where_line,
)
from studio.plotted import figure_view
from studio.reading import next_link
from studio.service import Service
from studio.told import told
from studio.watched import just_done, newest_job

__all__ = ["build"]

TEXT = "What was found in your samples: phrases of one word up to whole clauses."
EXAMPLES = 2


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/phrases`."""
    with page(demo, service, "phrases", "Phrases", TEXT) as frame:
        with frame.actions:
            undo = gr.Button("Undo", size="md", visible="hidden")
            export = view()
            onward = view()
        nothing = view()
        with gated(gr.Column, elem_classes="tm-phrase-page") as body:
            with gr.Row(elem_classes="tm-phrase-row"):
                tree = view(classes="tm-grow", script=TREE_SCRIPT)
                bars = view(classes="tm-aside", script=HISTOGRAM_SCRIPT)
            with gr.Row(elem_classes="tm-phrase-row"):
                with gr.Column(elem_classes="tm-card tm-stack tm-grow"):
                    with gr.Row(elem_classes="tm-phrase-filters"):
                        text = gr.Textbox(
                            label="Search", placeholder="Search", show_label=False, container=False, min_width=100
                        )
                        low = _choice("From length", [])
                        high = _choice("To length", [])
                        layer = _choice("Layer", [])
                        order = _choice("Order", list(ORDERS.items()))
                        shown = _choice("Show", list(SHOWS.items()))
                    rows = view(classes="tm-scroll", script=TABLE_SCRIPT)
                    with gr.Row(elem_classes="tm-pager"):
                        place = view(classes="tm-quiet")
                        back = gr.Button("Back", size="sm", min_width=60, scale=0)
                        forth = gr.Button("Next", size="sm", min_width=60, scale=0)
                    with gr.Row(elem_classes="tm-pager tm-phrase-acts"):
                        whole = gr.Checkbox(
                            True, label="Leave out with their sentences", container=False, min_width=200
                        )
                        bulk = gr.Button("Leave out all of these", size="sm", visible="hidden", scale=0)
                        translate = gr.Button("Translate these back", size="sm", visible="hidden", scale=0)
                with gr.Column(elem_classes="tm-aside"):
                    detail = view(script=KEEP)
                    with gr.Column(elem_classes="tm-card tm-pad tm-stack"):
                        with gr.Row(elem_classes="tm-map-head"):
                            view("<h2>Map of phrases</h2>", classes="tm-card-title")
                            draw_map = gr.Button("Draw the map", size="sm", scale=0)
                        progress = view()
                        points = figure_view()
                    origin = view()
        mark = view(script=MARK, visible="hidden")
        state = gr.Textbox("", visible="hidden")
        stamp = gr.Textbox("", visible="hidden")
    filters = [text, low, high, layer, order, shown]

    # -- what is shown

    def found_in(project: ProjectRow) -> Phrases | None:
        return phrases_of(service.workspace(project.id), project, service.settings, service.decoder_layers(project))

    def need(request: gr.Request) -> tuple[ProjectRow, Phrases]:
        project = service.need(wanted(request))
        found = found_in(project)
        if found is None:
            raise InputError("The phrases are being found again. Wait a moment and reload the page.")
        return project, found

    def everything(project: ProjectRow, found: Phrases, look: PhraseView) -> dict[Any, Any]:
        """All but the tree and the filters, as the view has it."""
        chosen = found.find(look.phrase) if look.phrase else None
        places = found.select(look)
        first = max(0, min(look.start, (len(places) - 1) // PAGE * PAGE))
        look = look.but(start=first)
        part = [found.row(int(one)) for one in places[first : first + PAGE]]
        row = found.row(chosen) if chosen is not None else None
        steps = found.exclusions
        return {
            rows: phrase_table(part, project.target, project.source, look.phrase),
            place: where_line(first, len(part), len(places), found, left_out(service.workspace(project.id), project.target)),
            bars: f'<div class="tm-card tm-pad">{histograms(found, look, row)}</div>',
            detail: detail_of(project, row),
            undo: gr.update(visible=visible_if(bool(steps.steps)),
                            value=tr("Undo: {what}", what=told(steps.last)) if steps.steps else tr("Undo")),
            export: f'<a class="tm-link-button" href="/download/phrases/{project.id}?{esc(look.query())}" download>'
                    f'{esc(tr("Export CSV"))}</a>',
            bulk: gr.update(visible=visible_if(look.filtered and look.show == "used" and len(places) > 0),
                            value=tr("Leave out all {count}", count=number(len(places))), interactive=True),
            translate: gr.update(visible=visible_if(any(not one.source for one in part))),
            mark: f'<span data-address="{esc(address("phrases", project.id))}{esc("&" + look.query() if look.query() else "")}" '
                  f'data-chosen="{esc(look.phrase)}"></span>',
            state: look.query(),
            stamp: stamp_of(service.workspace(project.id)),
        }  # fmt: skip

    def detail_of(project: ProjectRow, row: Row | None) -> str:
        if row is None:
            said = tr("Choose a phrase in the tree, the table or the map to see it in its sentences.")
            return card(f'<p class="tm-quiet" style="margin:0">{esc(said)}</p>')
        sentences = service.sentences(project.id)
        some = holding(sentences, row.text, project.target)
        return detail_card(row, sentences, some[:EXAMPLES], project.target, len(some))

    def with_sentence(project: ProjectRow, look: PhraseView) -> PhraseView:
        folder = service.workspace(project.id)
        return at_sentence(
            look, service.sentences(project.id), project.target, lambda text: tree_of(folder, text) is not None
        )

    def tree_views(project: ProjectRow, found: Phrases, look: PhraseView) -> Iterator[str]:
        """The tree as it was kept; where it was not, what is being done, and then the tree."""
        sentences = service.sentences(project.id)
        at = look.sentence
        if not 0 <= at < len(sentences):
            return
        text = str(sentences[at]["text"])
        drawn = tree_of(service.workspace(project.id), text)
        if drawn is None:
            wait = f'<p class="tm-quiet tm-tree-wait">{esc(tr("Parsing the sentence…"))}</p>'
            yield tree_card(at, len(sentences), wait)
            drawn = parsed_tree(service.workspace(project.id), text, project.target, service.settings)
        yield tree_card(at, len(sentences), svg(drawn, project, found, look))

    def svg(drawn: Tree, project: ProjectRow, found: Phrases, look: PhraseView) -> str:
        def key_of(text: str) -> str:
            at = found.find(text)
            return found.table.texts[at] if at is not None else ""

        caption = ""
        chosen = found.find(look.phrase)
        if chosen is not None:
            row = found.row(chosen)
            caption = trn("{count} token", "{count} tokens", row.length) + " → "
            caption += tr("layer {number}", number=row.layer + 1) if row.layer >= 0 else tr("left out")
        return tree_svg(
            drawn, project.target, sentence=look.sentence, key_of=key_of, chosen=look.phrase, caption=caption
        )

    def controls(found: Phrases, look: PhraseView) -> dict[Any, Any]:
        """The filters, set to what the view has."""
        lengths = sorted(set(found.table.lengths.tolist()))
        return {
            text: look.words,
            low: gr.update(choices=[(tr("from {number}", number=one), one) for one in lengths], value=look.low or lengths[0]),
            high: gr.update(choices=[(tr("to {number}", number=one), one) for one in lengths], value=look.high or lengths[-1]),
            layer: gr.update(choices=[(tr("any layer"), -1)]
                             + [(tr("layer {number}", number=one + 1), one) for one in range(found.layer_count)],
                             value=look.layer),
            order: gr.update(choices=[(tr(name), key) for name, key in ORDERS.items()
                                      if key != "typical" or found.table.general_words],
                             value=look.order if look.order != "typical" or found.table.general_words else "times"),
            shown: look.show,
        }  # fmt: skip

    def map_card(project: ProjectRow) -> dict[Any, Any]:
        file = service.workspace(project.id) / "phrases.map.json.gz"
        job = newest_job(service, project, "phrase_map")
        busy = job is not None and job.active
        there = file.is_file()
        return {
            draw_map: gr.update(value=tr("Draw again") if there else tr("Draw the map"), interactive=not busy),
            progress: map_state(job) if busy or not there else "",
            points: map_figure(project, file.stat().st_mtime_ns, service.decoder_layers(project))
            if there
            else map_invite(),
        }

    # -- what happens

    def fill(request: gr.Request, query: str = "") -> Iterator[dict[Any, Any]]:
        project = service.project(wanted(request))
        found = found_in(project) if project else None
        if project is None or found is None or not len(found):
            yield {
                frame.title: heading("Phrases", TEXT), onward: "", nothing: no_phrases(project), undo: gr.update(visible="hidden"),
                export: "", body: shown_if(False), stamp: stamp_of(service.workspace(project.id)) if project else "",
            }  # fmt: skip
            return
        look = PhraseView.of(query or dict(request.query_params))
        if look.order == "typical" and not found.table.general_words:
            look = look.but(order="times")
        sentences = service.sentences(project.id)
        look = with_sentence(project, look)
        lengths = found.table.lengths
        yield {
            frame.title: heading(
                "Phrases",
                tr(
                    "{phrases} phrases of {low} to {high} tokens in {sentences} sentences.",
                    phrases=number(len(found)),
                    low=lengths.min(),
                    high=lengths.max(),
                    sentences=number(len(sentences)),
                ),
            ),
            onward: next_link(project),
            nothing: "",
            body: shown_if(True),
            origin: origin_card(service.parser(project.id), project, bool(found.table.general_words)),
            **everything(project, found, look),
            **controls(found, look),
            **map_card(project),
        }
        for shape in tree_views(project, found, look):
            yield {tree: shape}

    def choose(request: gr.Request, query: str, event: gr.EventData) -> Iterator[dict[Any, Any]]:
        """A phrase was chosen, wherever: all show it, and the tree is of a sentence that holds it."""
        project, found = need(request)
        at = found.find(str(event.phrase))
        if at is None:
            return
        row = found.row(at)
        look = PhraseView.of(query).but(phrase=row.text)
        sentences = service.sentences(project.id)
        given = int(getattr(event, "sentence", None) or -1)
        inside = 0 <= given < len(sentences) and spots(row.text, project.target).search(str(sentences[given]["text"]))
        look = look.but(sentence=given) if inside else with_sentence(project, look.but(sentence=-1))
        look = with_page_of(found, look, at)
        yield everything(project, found, look)
        for shape in tree_views(project, found, look):
            yield {tree: shape}

    def step(request: gr.Request, query: str, event: gr.EventData) -> Iterator[dict[Any, Any]]:
        project, found = need(request)
        look = PhraseView.of(query).but(sentence=int(event.sentence))
        yield everything(project, found, look)
        for shape in tree_views(project, found, look):
            yield {tree: shape}

    def press(request: gr.Request, query: str, event: gr.EventData) -> Iterator[dict[Any, Any]]:
        """A bar was pressed: its phrases in the table, the first of them chosen; pressed again, all phrases."""
        project, found = need(request)
        look = PhraseView.of(query).but(low=int(event.low), high=int(event.high), layer=int(event.layer), start=0)
        places = found.select(look)
        if look.filtered and len(places):
            look = look.but(phrase=found.table.texts[int(places[0])], sentence=-1)
        look = with_sentence(project, look)
        yield everything(project, found, look) | controls(found, look)
        for shape in tree_views(project, found, look):
            yield {tree: shape}

    def filtered(request: gr.Request, query: str, *values: Any) -> dict[Any, Any]:
        project, found = need(request)
        words, least, most, of_layer, by, which = values
        ends = found.table.lengths.min(), found.table.lengths.max()
        look = PhraseView.of(query).but(
            words=str(words or "").strip(), low=0 if least in (None, ends[0]) else int(least),
            high=0 if most in (None, ends[1]) else int(most),
            layer=-1 if of_layer is None else int(of_layer), order=by, show=which, start=0,
        )  # fmt: skip
        return everything(project, found, look)

    def searched(request: gr.Request, query: str, *values: Any) -> dict[Any, Any]:
        """The words typed, unless it was the page that set them."""
        same = str(values[0] or "").strip() == PhraseView.of(query).words
        return {state: gr.skip()} if same else filtered(request, query, *values)

    def turn(pages: int) -> Any:
        def turned(request: gr.Request, query: str) -> dict[Any, Any]:
            project, found = need(request)
            look = PhraseView.of(query)
            return everything(project, found, look.but(start=look.start + pages * PAGE))

        return turned

    def keep(request: gr.Request, query: str, sentences: bool, event: gr.EventData) -> dict[Any, Any]:
        project, _ = need(request)
        return decided(project, query, [str(event.phrase)], bool(event.keep), sentences)

    def leave_out_all(request: gr.Request, query: str, sentences: bool) -> Iterator[dict[Any, Any]]:
        project, found = need(request)
        yield {bulk: gr.update(value=tr("Leaving out…"), interactive=False)}
        texts = [found.table.texts[int(one)] for one in found.select(PhraseView.of(query))]
        try:
            yield decided(project, query, texts, False, sentences)
        except Exception:
            yield {bulk: gr.update(value=tr("Leave out all {count}", count=number(len(texts))), interactive=True)}
            raise

    def decided(project: ProjectRow, query: str, phrases: list[str], kept: bool, sentences: bool) -> dict[Any, Any]:
        folder = service.workspace(project.id, change=True)
        if kept:
            Exclusions.restore(folder, phrases)
        else:
            if sentences:
                check_share(phrases, service.sentences(project.id), project.target)
            Exclusions.exclude(folder, phrases, sentences=sentences)
        return again(project, query)

    def take_back(request: gr.Request, query: str) -> dict[Any, Any]:
        project, _ = need(request)
        Exclusions.undo(service.workspace(project.id, change=True))
        return again(project, query)

    def again(project: ProjectRow, query: str) -> dict[Any, Any]:
        found = found_in(project)
        return everything(project, found, PhraseView.of(query)) if found else {state: query}

    def back_translate_shown(request: gr.Request, query: str) -> Iterator[dict[Any, Any]]:
        from engine.decoding.greedy import back_translate

        project, found = need(request)
        look = PhraseView.of(query)
        part = [found.row(int(one)) for one in found.select(look)[look.start : look.start + PAGE]]
        missing = [row.text for row in part if not row.source]
        yield {translate: gr.update(value=tr("Translating…"), interactive=False)}
        try:
            base = service.models.base(project.base, project.target, project.source)
            own_sources(service.workspace(project.id), dict(zip(missing, back_translate(base, missing), strict=True)))
            yield again(project, query)
        finally:
            yield {translate: gr.update(value=tr("Translate these back"), interactive=True)}

    def start_map(request: gr.Request) -> dict[Any, Any]:
        from engine.jobs import enqueue

        project, _ = need(request)
        job = newest_job(service, project, "phrase_map")
        if job is None or not job.active:
            enqueue(service.store, "phrase_map", {}, project_id=project.id)
        return map_card(project)

    def poll(request: gr.Request, query: str, seen: str) -> Iterator[dict[Any, Any]]:
        """The map as it gets ready, and all of it again when another window or a job changed something."""
        project = service.project(wanted(request))
        if project is None:
            yield {stamp: gr.skip()}
        elif stamp_of(service.workspace(project.id)) == seen:
            job = newest_job(service, project, "phrase_map")
            recent = job is not None and (job.active or just_done(job))
            yield map_card(project) if recent else {stamp: gr.skip()}
        else:
            yield from fill(request, query)

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    shows = [rows, place, bars, detail, undo, export, bulk, translate, mark, state, stamp]
    mapped = [draw_map, progress, points]
    whole_page = [frame.title, onward, nothing, body, origin, *shows, *filters, *mapped, tree]
    demo.load(guard(fill), None, whole_page, **quiet)
    frame.timer.tick(guard(poll, polled=True), [state, stamp], whole_page, **quiet)
    # Each click counts: "once" forgets those that come while one is at work, "always_last" sends the first one's data again.
    each = {**quiet, "trigger_mode": "multiple", "concurrency_limit": 1}
    for source in (tree, rows, points):
        source.pick(guard(choose), state, [*shows, tree], **each)
    tree.step(guard(step), state, [*shows, tree], **each)
    bars.bar(guard(press), state, [*shows, *filters, tree], **each)
    # A text field's `input` comes with key presses alone: not what an input method composes, not what is pasted or deleted.
    text.change(guard(searched), [state, *filters], shows, trigger_mode="always_last", **quiet)
    for widget in filters[1:]:
        widget.input(guard(filtered), [state, *filters], shows, trigger_mode="always_last", **quiet)
    back.click(guard(turn(-1)), state, shows, **quiet)
    forth.click(guard(turn(1)), state, shows, **quiet)
    rows.keep(guard(keep), [state, whole], shows, **each)
    detail.keep(guard(keep), [state, whole], shows, **each)
    bulk.click(guard(leave_out_all), [state, whole], shows, **quiet)
    undo.click(guard(take_back), state, shows, **quiet)
    translate.click(guard(back_translate_shown), state, shows, **quiet)
    draw_map.click(guard(start_map), None, mapped, **quiet)


def _choice(label: str, choices: list[Any]) -> Any:
    value = choices[0][1] if choices else None
    return gr.Dropdown(choices, value=value, label=label, show_label=False, container=False, min_width=80)
