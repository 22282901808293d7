"""The page Compare: the same base with and without a plugin, sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from engine.errors import InputError
from engine.store import ComparisonRow, PluginRow, ProjectRow
from studio.catalog import language_name
from studio.difference import compare_table
from studio.figures import figure_row
from studio.frame import guard, page, wanted
from studio.html import empty, esc, view
from studio.service import Service

__all__ = ["as_tsv", "build", "split_lines"]

TEXT = "The same base with and without your plugin. Only what the plugin changed is marked."
MOST = 500  # sentences in one comparison; whole documents have their own place
DIAL = """
element.addEventListener('input', (event) => {
  if (event.target.type === 'range') event.target.nextElementSibling.textContent = Number(event.target.value);
});
element.addEventListener('change', (event) => {
  if (event.target.type === 'range') trigger('dial', {strength: Number(event.target.value)});
});
"""
# The comparison gets an address of its own without a reload.
MARK = """(number, project) => {
  if (!number) return;
  const address = new URL(window.location.href);
  address.searchParams.set('project', project);
  address.searchParams.set('comparison', number);
  window.history.replaceState(null, '', address);
}"""


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/compare`."""
    with page(demo, service, "compare", "Compare", TEXT) as frame:
        with frame.actions:
            upload = gr.UploadButton("Open file…", file_types=[".txt"], file_count="single", size="md")
            export = view()
            run = gr.Button("Translate", variant="primary", interactive=False)
        nothing = view()
        with gr.Row(visible=False, elem_classes="tm-ask", equal_height=True) as ask:
            text = gr.Textbox(
                label="Sentences",
                show_label=False,
                placeholder="One sentence a line",
                lines=4,
                max_lines=6,
                scale=4,
                container=False,
            )
            with gr.Column(scale=1, min_width=240, elem_classes="tm-fields"):
                plugin = gr.Dropdown([], label="Plugin", interactive=True)
                earlier = gr.Dropdown([], label="Earlier comparisons", interactive=True)
        table = view(script=DIAL)
        figures = view()
        shown = gr.Textbox("", visible="hidden")
        project_number = gr.Textbox("", visible="hidden")

    def fill(request: gr.Request) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        if project is None:
            hidden = gr.update(visible=False)
            start = '<p style="margin-top:16px"><a href="/samples?project=new">Go to Samples</a></p>'
            invite = empty("Nothing to compare yet", "A comparison belongs to a project.", start)
            return hidden, gr.update(interactive=False), invite, gr.skip(), gr.skip(), "", "", "", "", "", ""
        rows = service.store.plugins.list(project.id)
        saved = service.comparisons(project.id)
        current = _wanted_comparison(request, saved)
        chosen = _wanted_plugin(request, rows, current)
        return (
            gr.update(visible=True),
            gr.update(interactive=True),
            "",
            gr.update(
                choices=[("base alone", 0)] + [(row.name, row.id) for row in rows], value=chosen.id if chosen else 0
            ),
            gr.update(choices=[(_title(row), row.id) for row in saved], value=current.id if current else None),
            "\n".join(str(row["source"]) for row in current.rows)
            if current
            else service.catalog.demo_lines(project.source),
            render(current.rows, project) if current else invitation(project, chosen),
            figure_row(chosen.metrics) if chosen else "",
            _export(current),
            str(current.id) if current else "",
            str(project.id),
        )

    def open_file(file: str) -> str:
        try:
            lines = Path(file).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{Path(file).name} is not UTF-8 text. Save it as UTF-8 and open it again.") from None
        return "\n".join(split_lines(lines))

    def translate(request: gr.Request, lines: str, number: int) -> Iterator[tuple[Any, ...]]:
        project = service.need(wanted(request))
        texts = split_lines(lines)
        if not texts:
            raise InputError("Type or open at least one sentence to translate.")
        row = service.store.plugins.get(int(number)) if number else None
        rows = [_fresh(text, row, 1.0) for text in texts]
        busy = gr.update(interactive=False, value="Translating")
        yield render(rows, project), busy, gr.skip(), gr.skip(), gr.skip(), gr.skip()
        for key, used in (("vanilla", None), ("customized", row)):
            if key == "customized" and row is None:
                continue
            place = 0
            for part in service.translate(project, texts, used):
                for result in part:
                    rows[place][key] = result
                    place += 1
                yield render(rows, project), busy, gr.skip(), gr.skip(), gr.skip(), gr.skip()
        saved = service.store.comparisons.create(project.id, texts[0][:60], rows)
        everything = [(_title(one), one.id) for one in service.comparisons(project.id)]
        yield (
            render(rows, project),
            gr.skip(),
            gr.update(choices=everything, value=saved.id),
            figure_row(row.metrics) if row else "",
            _export(saved),
            str(saved.id),
        )

    def release() -> Any:
        return gr.update(interactive=True, value="Translate")

    def turn(request: gr.Request, number: str, event: gr.EventData) -> Iterator[str]:
        project = service.need(wanted(request))
        if not number:
            return
        saved = service.store.comparisons.get(int(number))
        rows = [dict(row) for row in saved.rows]
        plugin_number = rows[0].get("plugin_id") if rows else None
        if plugin_number is None:
            return
        used = service.store.plugins.get(int(plugin_number))
        strength = min(1.0, max(0.0, float(event.strength)))
        place = 0
        for part in service.translate(project, [str(row["source"]) for row in rows], used, strength):
            for result in part:
                rows[place] |= {"customized": result, "strength": strength}
                place += 1
        for row in rows:
            row["strength"] = strength
        service.store.comparisons.update(saved.id, rows=rows)
        yield render(rows, project)

    def reopen(request: gr.Request, number: int | None) -> tuple[Any, ...]:
        project = service.need(wanted(request))
        saved = service.store.comparisons.get(int(number or 0))
        lines = "\n".join(str(row["source"]) for row in saved.rows)
        return render(saved.rows, project), lines, _export(saved), str(saved.id)

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    demo.load(
        guard(fill),
        None,
        [ask, run, nothing, plugin, earlier, text, table, figures, export, shown, project_number],
        **quiet,
    )
    upload.upload(guard(open_file), upload, text, **quiet)
    run.click(
        guard(translate), [text, plugin], [table, run, earlier, figures, export, shown], concurrency_limit=2, **quiet
    ).then(guard(release), None, run, **quiet).then(None, [shown, project_number], None, js=MARK)
    table.dial(guard(turn), shown, table, concurrency_limit=2, trigger_mode="always_last", **quiet)
    earlier.input(guard(reopen), earlier, [table, text, export, shown], **quiet).then(
        None, [shown, project_number], None, js=MARK
    )


def _fresh(text: str, plugin: PluginRow | None, strength: float) -> dict[str, Any]:
    row: dict[str, Any] = {"source": text, "vanilla": None, "customized": None}
    if plugin is not None:
        row |= {"plugin_id": plugin.id, "plugin": plugin.name, "method": plugin.method, "strength": strength}
    return row


def _wanted_comparison(request: gr.Request, saved: Sequence[ComparisonRow]) -> ComparisonRow | None:
    number = str(request.query_params.get("comparison", ""))
    if request.query_params.get("plugin"):
        return None
    return next((row for row in saved if str(row.id) == number), saved[0] if saved else None)


def _wanted_plugin(request: gr.Request, rows: Sequence[PluginRow], current: ComparisonRow | None) -> PluginRow | None:
    number = str(request.query_params.get("plugin", ""))
    if not number and current and current.rows:
        number = str(current.rows[0].get("plugin_id", ""))
    return next((row for row in rows if str(row.id) == number), rows[0] if rows else None)


def _title(row: ComparisonRow) -> str:
    return f"{row.created:%d %b %H:%M} · {row.title}"


def _export(row: ComparisonRow | None) -> str:
    return f'<a class="tm-link-button" href="/download/comparisons/{row.id}" download>Export</a>' if row else ""


def split_lines(text: str) -> list[str]:
    """The sentences of a text, one a line, without empty ones. Raises InputError when there are too many."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MOST:
        raise InputError(f"A comparison takes up to {MOST} sentences, these are {len(lines):,}. Take a part of them.")
    return lines


def render(rows: Sequence[Mapping[str, Any]], project: ProjectRow) -> str:
    """The table of a comparison, saved or in the making."""
    first = rows[0] if rows else {}
    return compare_table(
        rows,
        source=project.source,
        target=project.target,
        source_name=language_name(project.source),
        base=project.base.rstrip("/").rsplit("/", 1)[-1],
        plugin=str(first.get("plugin", "")),
        method=str(first.get("method", "")).replace("_", " "),
        strength=float(first.get("strength", 1.0)),
    )


def invitation(project: ProjectRow, plugin: PluginRow | None) -> str:
    """What stands where the table will be."""
    more = "" if plugin else f'<p style="margin-top:16px"><a href="/train?project={project.id}">Train a plugin</a></p>'
    text = (
        "Type or open sentences above, then translate."
        if plugin
        else "There is no plugin yet; the base alone translates."
    )
    return empty(f"Compare {esc(language_name(project.source))} into {esc(language_name(project.target))}", text, more)


def as_tsv(rows: Sequence[Mapping[str, Any]]) -> str:
    """A comparison as tab-separated text with a head, one sentence a line; for a spreadsheet or a script."""

    def flat(value: Any) -> str:
        return " ".join(str(value or "").split())

    lines = ["source\tvanilla\tcustomized"]
    lines += ["\t".join(flat(row.get(key)) for key in ("source", "vanilla", "customized")) for row in rows]
    return "﻿" + "\n".join(lines) + "\n"
