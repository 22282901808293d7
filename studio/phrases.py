"""The page Phrases: what was found in the samples, which decoder layer will read it, and which parser found it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import gradio as gr

from engine.store import ProjectRow
from studio.catalog import language_name
from studio.files import read_rows
from studio.frame import address, guard, heading, page, wanted
from studio.html import Cell, card, empty, esc, lang_attribute, number, table, tag, view
from studio.plots import length_histogram
from studio.service import Service

__all__ = ["Filter", "Row", "build", "collect", "phrase_table", "select"]

TEXT = "What was found in your samples: phrases of one word up to whole clauses."
PAGE = 25
ORDERS = {"most frequent": "times", "longest": "tokens", "shortest": "-tokens"}


PICK = """
const pick = (event) => {
  const row = event.target.closest('tr[data-key]');
  if (!row || (event.type === 'keydown' && event.key !== 'Enter')) return;
  element.querySelectorAll('tr[aria-selected]').forEach((one) => one.removeAttribute('aria-selected'));
  row.setAttribute('aria-selected', 'true');
  trigger('pick', {phrase: row.dataset.key});
};
element.addEventListener('click', pick);
element.addEventListener('keydown', pick);
"""


@dataclass(frozen=True)
class Row:
    """A phrase with the layer (from 0) that reads it and, once training made them, its back-translation."""

    text: str
    length: int
    count: int
    label: str
    layer: int
    source: str = ""


@dataclass(frozen=True)
class Filter:
    """Which rows to show: `words` in phrase or back-translation, lengths in tokens, a layer from 0 (-1: any), an order."""

    words: str = ""
    low: int = 0
    high: int = 10**9
    layer: int = -1
    order: str = "times"

    @classmethod
    def of(cls, *values: Any) -> Filter:
        """From the values of the five widgets; empty ones mean no limit."""
        words, low, high, layer, order = values
        return cls(
            str(words or "").strip().casefold(),
            int(low or 0),
            int(high or 10**9),
            -1 if layer is None else int(layer),
            ORDERS.get(order, "times"),
        )


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/phrases`."""
    with page(demo, service, "phrases", "Phrases", TEXT) as frame:
        with frame.actions:
            onward = view()
        nothing = view()
        with gr.Row(visible=False, elem_classes="tm-split") as body:
            with gr.Column(scale=3, elem_classes="tm-card tm-stack"):
                with gr.Row(elem_classes="tm-filters"):
                    text = gr.Textbox(placeholder="Search", show_label=False, container=False, scale=3, min_width=140)
                    low = gr.Dropdown([], label="From", scale=1, min_width=110, show_label=False, container=False)
                    high = gr.Dropdown([], label="To", scale=1, min_width=110, show_label=False, container=False)
                    layer = gr.Dropdown([], label="Layer", scale=1, min_width=110, show_label=False, container=False)
                    order = gr.Dropdown(
                        list(ORDERS), value="most frequent", scale=1, min_width=140, show_label=False, container=False
                    )
                rows = view(classes="tm-scroll", script=PICK)
                with gr.Row(elem_classes="tm-pager"):
                    place = view(classes="tm-quiet")
                    back = gr.Button("Back", size="sm", min_width=60, scale=0)
                    forth = gr.Button("Next", size="sm", min_width=60, scale=0)
            with gr.Column(scale=2, min_width=300):
                with gr.Column(elem_classes="tm-card tm-pad tm-stack"):
                    view("<h2>Phrases by length, coloured by decoder layer</h2>", classes="tm-card-title")
                    plot = gr.Plot(show_label=False, container=False, elem_classes="tm-plot")
                example = view()
                origin = view()
        at = gr.Number(0, visible="hidden", precision=0)

    def fill(request: gr.Request) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        found, layers = collect(service, project) if project else ([], 0)
        if project is None or not found:
            hidden = gr.update(visible=False)
            return (heading("Phrases", TEXT), "", no_phrases(project), hidden, *(gr.skip(),) * 5)
        lengths = sorted({row.length for row in found})
        title = (
            f"{number(len(found))} phrases of {lengths[0]} to {lengths[-1]} tokens in "
            f"{number(len(service.sentences(project.id)))} sentences."
        )
        return (
            heading("Phrases", title),
            f'<a class="tm-link-button tm-filled" href="{esc(address("train", project.id))}">Train a plugin</a>',
            "",
            gr.update(visible=True),
            gr.update(choices=[(f"from {length}", length) for length in lengths], value=lengths[0]),
            gr.update(choices=[(f"to {length}", length) for length in lengths], value=lengths[-1]),
            gr.update(choices=[("any layer", -1)] + [(f"layer {one + 1}", one) for one in range(layers)], value=-1),
            length_histogram([row.length for row in found], [row.layer for row in found], layers),
            origin_card(service.parser(project.id), project),
        )

    def show(request: gr.Request, *values: Any) -> tuple[str, str, int]:
        project = service.project(wanted(request))
        if project is None:
            return "", "", 0
        chosen = select(collect(service, project)[0], Filter.of(*values[:5]))
        first = max(0, min(int(values[5] or 0), (len(chosen) - 1) // PAGE * PAGE))
        part = chosen[first : first + PAGE]
        where = (
            f"{number(first + 1)}–{number(first + len(part))} of {number(len(chosen))}" if part else "No phrase fits."
        )
        return phrase_table(part, project.target, project.source), where, first

    def from_start(request: gr.Request, *values: Any) -> tuple[str, str, int]:
        return show(request, *values, 0)

    def backwards(request: gr.Request, *values: Any) -> tuple[str, str, int]:
        return show(request, *values[:-1], (values[-1] or 0) - PAGE)

    def onwards(request: gr.Request, *values: Any) -> tuple[str, str, int]:
        return show(request, *values[:-1], (values[-1] or 0) + PAGE)

    def pick(request: gr.Request, event: gr.EventData) -> str:
        project = service.need(wanted(request))
        chosen = next((row for row in collect(service, project)[0] if row.text == event.phrase), None)
        return example_card(chosen, service.sentences(project.id), project.target) if chosen else ""

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    filters = [text, low, high, layer, order]
    outputs = [rows, place, at]
    demo.load(guard(fill), None, [frame.title, onward, nothing, body, low, high, layer, plot, origin], **quiet).then(
        guard(show), [*filters, at], outputs, **quiet
    )

    text.change(guard(from_start), filters, outputs, trigger_mode="always_last", **quiet)
    for widget in filters[1:]:
        widget.input(guard(from_start), filters, outputs, **quiet)
    rows.pick(guard(pick), None, example, **quiet)
    back.click(guard(backwards), [*filters, at], outputs, **quiet)
    forth.click(guard(onwards), [*filters, at], outputs, **quiet)


def collect(service: Service, project: ProjectRow) -> tuple[Sequence[Row], int]:
    """The project's phrases, each with its decoder layer and back-translation; and how many layers there are."""
    folder = service.workspace(project.id)
    files = (folder / "phrases.jsonl", folder / "method" / "phrase_pairs.jsonl")
    layers = service.decoder_layers(project)
    return _collect(*files, _stamp(files[0]), _stamp(files[1]), layers), layers


def _stamp(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


@lru_cache(maxsize=4)
def _collect(phrases: Path, pairs: Path, *stamps_and_layers: int) -> tuple[Row, ...]:
    from engine.memory import assign_layers

    found = [row for row in read_rows(phrases) if "text" in row and "length" in row]
    places = assign_layers([int(row["length"]) for row in found], stamps_and_layers[-1]) if found else []
    sources = {row.get("target"): str(row.get("source", "")) for row in read_rows(pairs)}
    return tuple(
        Row(
            text=str(one["text"]),
            length=int(one["length"]),
            count=int(one.get("count", 1)),
            label=str(one.get("label", "")),
            layer=layer,
            source=sources.get(one["text"], ""),
        )
        for one, layer in zip(found, places, strict=True)
    )


def select(rows: Sequence[Row], wish: Filter) -> list[Row]:
    """The rows that fit, in the order wished for."""
    chosen = [
        row
        for row in rows
        if wish.low <= row.length <= wish.high
        and wish.layer in (-1, row.layer)
        and (not wish.words or wish.words in row.text.casefold() or wish.words in row.source.casefold())
    ]
    if wish.order == "times":
        return sorted(chosen, key=lambda row: (-row.count, -row.length, row.text))
    sign = 1 if wish.order == "-tokens" else -1
    return sorted(chosen, key=lambda row: (sign * row.length, -row.count, row.text))


def phrase_table(rows: Sequence[Row], target: str, source: str) -> str:
    """Phrase, back-translation where there is one, label, tokens, times, layer."""
    translated = any(row.source for row in rows)
    kinds = any(row.label not in ("", "statistical") for row in rows)
    heads = ["phrase", *(["back-translation"] if translated else []), *(["kind"] if kinds else [])]
    heads += ["tokens", "times", "layer"]
    body = [
        [
            Cell(row.text, lang=target),
            *([Cell(row.source, kind="quiet", lang=source)] if translated else []),
            *([Cell(row.label, kind="quiet")] if kinds else []),
            Cell(row.length, kind="num"),
            Cell(number(row.count), kind="num"),
            Cell(html=tag(row.layer + 1, "accent"), kind="num"),
        ]
        for row in rows
    ]
    return table(
        heads, body, numeric=range(len(heads) - 3, len(heads)), kind="tm-click", keys=[row.text for row in rows]
    )


def example_card(row: Row, sentences: Sequence[Mapping[str, Any]], language: str) -> str:
    """A phrase where it stands in the samples, and the layer that reads it."""
    text = next((str(one["text"]) for one in sentences if row.text in str(one.get("text", ""))), "")
    before, found, after = text.partition(row.text)
    shown = f"{esc(before)}<b>{esc(found)}</b>{esc(after)}" if found else esc(row.text)
    count = "once" if row.count == 1 else f"{number(row.count)} times"
    facts = f"{row.length} {'token' if row.length == 1 else 'tokens'} · {count} · read in layer {row.layer + 1}"
    return card(
        f'<p class="tm-example"{lang_attribute(language)}>{shown}</p><p class="tm-quiet">{esc(facts)}</p>', row.text
    )


def origin_card(parser: str, project: ProjectRow) -> str:
    """Who found the phrases, in a sentence."""
    text = parser or f"Phrases of {language_name(project.target)} text."
    why = "Short phrases are read low in the decoder, long ones high."
    return card(f'<p class="tm-quiet" style="margin:0">{esc(text)}<br>{esc(why)}</p>', "Where they come from")


def no_phrases(project: ProjectRow | None) -> str:
    """The empty page with the next step."""
    link = f'<p style="margin-top:16px"><a href="{esc(address("samples", project.id if project else "new"))}">Go to Samples</a></p>'
    return empty("No phrases yet", "They are found while your samples are read.", link)
