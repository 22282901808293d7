"""The page Plugins: what was made, how good it is, how large; take it away or bring one in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from engine.cards import Card
from engine.store import PluginRow, ProjectRow
from studio.cards import card_fold, license_line
from studio.figures import scores
from studio.frame import address, guard, heading, page, wanted
from studio.home import ago
from studio.html import empty, esc, size, tag, view
from studio.service import Service

__all__ = ["build", "plugin_cards"]

TEXT = "Each plugin is one file. It works with the base it was made for, on any machine."


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/plugins`."""
    with page(demo, service, "plugins", "Plugins", TEXT) as frame:
        with frame.actions:
            bring = gr.UploadButton("Import a bundle…", file_types=[".zip"], file_count="single", size="md")
            onward = view()
        cards = view()

    def fill(request: gr.Request) -> tuple[str, str, str, Any]:
        project = service.project(wanted(request))
        if project is None:
            return heading("Plugins", TEXT), "", no_plugins(None), gr.update(interactive=False)
        rows = service.store.plugins.list(project.id)
        link = (
            f'<a class="tm-link-button tm-filled" href="{esc(address("compare", project.id))}">Compare</a>'
            if rows
            else ""
        )
        shown = plugin_cards(
            rows, project, service.catalog.base_card(project.base), {row.id: service.plugin_card(row) for row in rows}
        )
        return heading("Plugins", TEXT), link, shown, gr.update(interactive=True)

    def take_in(file: str, request: gr.Request) -> None:
        row = service.import_bundle(service.need(wanted(request)), file)
        gr.Info(f"{esc(row.name)} fits the base of this project.", duration=6, title="Imported")

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    outputs = [frame.title, onward, cards, bring]
    demo.load(guard(fill), None, outputs, **quiet)
    bring.upload(guard(take_in), bring, None, **quiet).then(guard(fill), None, outputs, **quiet)


def plugin_cards(
    rows: Sequence[PluginRow],
    project: ProjectRow,
    base: Card | None = None,
    cards: Mapping[int, Card] | None = None,
) -> str:
    """One card a plugin with method, base and its licence, figures, size, and what can be done with it."""
    if not rows:
        return no_plugins(project)
    shown = "".join(_card(row, project, base or Card(""), (cards or {}).get(row.id, Card(row.name))) for row in rows)
    return f'<div class="tm-grid">{shown}</div>'


def _card(row: PluginRow, project: ProjectRow, of_base: Card, own: Card) -> str:
    bytes_ = Path(row.path).stat().st_size if row.exists else None
    base = project.base.rstrip("/").rsplit("/", 1)[-1]
    figures = "".join(
        f"<tr><td>{esc(one.title)}</td><td class=num>{one.before:.1f} → <b>{one.after:.1f}</b></td></tr>"
        for one in scores(row.metrics)
    )
    table = f'<table class="tm tm-small">{figures}</table>' if figures else '<p class="tm-quiet">Not evaluated.</p>'
    links = (
        f'<a class="tm-link-button" href="/download/plugins/{row.id}" download>Download</a> '
        f'<a class="tm-link-button" href="{esc(address("compare", project.id))}&amp;plugin={row.id}">Compare</a>'
        if row.exists
        else tag("the file is gone", "bad")
    )
    return (
        f'<div class="tm-card tm-pad tm-plugin"><h3>{esc(row.name)}</h3><p>{tag(row.method.replace("_", " "), "accent")}</p>'
        f'<p class="tm-quiet">base {esc(base)} · {esc(size(bytes_))} · made {esc(ago(row.created))}</p>{table}'
        f'<div class="tm-plugin-terms">{_terms(of_base, own)}{card_fold(own, "Card")}</div>'
        f'<div class="tm-plugin-links">{links}</div></div>'
    )


def _terms(of_base: Card, own: Card) -> str:
    """The plugin's licence where its card states one, and its base's, which the plugin cannot be used without."""
    stated = license_line(own) if own.license else ""
    return stated + license_line(of_base).replace("Licence:", "Licence of the base:", 1)


def no_plugins(project: ProjectRow | None) -> str:
    """The empty page with the next step."""
    link = address("train", project.id) if project else "/samples?project=new"
    word = "Train one" if project else "Go to Samples"
    return empty(
        "No plugins yet",
        "Train one from your samples, or import a bundle.",
        f'<p style="margin-top:16px"><a href="{esc(link)}">{word}</a></p>',
    )
