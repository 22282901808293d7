"""The page Compare: the base alone and with up to three plugins, sentence by sentence; word attributions; figures.

The address contains the comparison, its order, its first line and the open word. A hidden field holds the same, because events
do not receive an address that changed after the page was loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import gradio as gr

from engine.core.numerals import whole_number
from engine.errors import InputError, TailorError
from engine.store import ProjectRow
from engine.store.comparisons import ComparisonRecord
from engine.workflows.compare.systems import MOST_PLUGINS
from studio.components.base_note import add_base_note
from studio.components.compare_url import CompareUrl
from studio.components.comparison_parts import figures_of, menus_of, table_of
from studio.components.comparison_table import file_card, plugin_choices, progress_card, reading_card
from studio.components.editor import EDIT, Editor
from studio.components.html import empty, hidden_text, html_block, link_line, toggle_value, toggled, visible_if
from studio.components.layout import EACH, HEAVY, QUIET, StudioPage, handle_errors, page, requested_project
from studio.components.templating import script
from studio.components.terms_box import TermsBox
from studio.i18n.translate import listed, tr
from studio.pages import Values
from studio.pages.compare_jobs import CompareJobs, table_version
from studio.pages.compare_translation import CompareTranslation
from studio.pages.compare_words import WordPanel
from studio.services.comparisons import Comparisons
from studio.services.service import Service
from studio.services.terminology import project_terms

TEXT = "With and without your plugins. Click a word to see what the plugin retrieved for it, where its method retrieves."
STATE = script("compare-state.js")
MARK = script("compare-mark.js")  # updates the address without a reload


class ComparePage(StudioPage):
    """/compare: opens a comparison, shows it page by page, shares and deletes it."""

    def __init__(self, demo: gr.Blocks, service: Service) -> None:
        super().__init__(demo, service)
        self.comparisons = Comparisons(service)
        self.editor = Editor(service)

    def layout(self) -> None:
        with page(self.demo, self.service, "compare", "Compare", TEXT) as self.frame:
            with self.frame.actions:
                self.upload = gr.UploadButton("Open file…", file_count="multiple", size="md")
                self.menus = html_block(classes="tm-menus", script=script("compare-menus.js"))
                self.run = gr.Button("Translate", variant="primary", interactive=False)
            add_base_note(self.frame, self.service)
            self.nothing = html_block()
            with toggled(gr.Row, elem_classes="tm-ask", equal_height=True) as self.ask:
                self.text = gr.Textbox(
                    label="Sentences", show_label=False, placeholder="One sentence per line", lines=4, max_lines=4,
                    scale=4, container=False,
                )  # fmt: skip
                self.file = html_block(classes="tm-file-box", visible="hidden")
                with gr.Column(scale=1, min_width=240, elem_classes="tm-fields"):
                    self.plugins = gr.Dropdown(
                        [], label="Plugins, up to three", interactive=True, multiselect=True, max_choices=MOST_PLUGINS
                    )
                    self.enforce = gr.Checkbox(False, label="Enforce terminology", container=False, visible=False)
            self.state = html_block(script=STATE)
            with gr.Row(elem_classes="tm-compare-body"):
                self.table = html_block(classes="tm-compare-table", script=script("compare-table.js") + EDIT)
                self.panel = html_block(classes="tm-compare-panel", script=script("compare-panel.js"))
            self.editor.layout()
            self.figures = html_block(classes="tm-compare-figures", script=STATE)
            self.terms = TermsBox()
            self.here = hidden_text()
            self.version = hidden_text()
            self.number = hidden_text()

    def events(self) -> None:
        url_field, named = self.here, [self.here, self.number]
        content = [self.text, self.file, self.state, self.table, self.figures, self.menus, url_field]
        inputs = [self.ask, self.run, self.upload, self.nothing, self.plugins, self.enforce]
        outputs = [*inputs, *content, self.number, self.editor.count]
        ready = self.demo.load(handle_errors(self.fill), None, outputs, **QUIET)
        WordPanel(self).events(ready)
        CompareJobs(self).events(ready)
        CompareTranslation(self).events(ready)
        self.editor.events(self.table)
        self.upload.upload(handle_errors(self.open_file, heavy=True), self.upload, content, **HEAVY).then(
            None, named, None, js=MARK
        )
        turned = [self.table, url_field, self.version]
        self.table.leaf(handle_errors(self.change_page), url_field, turned, concurrency_limit=1, **EACH)
        self.menus.keep(handle_errors(self.keep), url_field, None, **EACH)
        self.menus.remove(handle_errors(self.remove), url_field, [*content, self.panel], **QUIET)
        url_field.change(None, named, None, js=MARK)

    def need(self, project: ProjectRow, url: CompareUrl) -> ComparisonRecord:
        """The comparison on the page. Raises InputError if it no longer exists."""
        sheet = self.comparisons.sheet(project, str(url.comparison or "new"))
        if sheet is None:
            raise InputError("This comparison no longer exists. Reload the page.")
        return sheet

    def content(self, project: ProjectRow, sheet: ComparisonRecord | None, url: CompareUrl, requested: str = "") -> Values:
        """Everything below the actions, for a comparison that has just been opened or created, or none."""
        from_file = sheet is not None and bool(sheet.file)
        lines = self.service.store.sheets.page(sheet.comparison_id, limit=500) if sheet and not from_file else []
        typed = "\n".join(line.source for line in lines) or self.service.catalog.demo_lines(project.source)
        return {
            self.text: gr.update(value=typed, visible=visible_if(not from_file)),
            self.file: gr.update(value=file_card(sheet, project.id) if sheet and from_file else "", visible=visible_if(from_file)),
            self.state: progress_card(self.comparisons.job(sheet)),
            **self.result(project, sheet, url, requested),
            self.menus: menus_of(self.comparisons, project, sheet),
            self.here: replace(url, comparison=sheet.comparison_id if sheet else 0).text(),
        }

    def result(self, project: ProjectRow, sheet: ComparisonRecord | None, url: CompareUrl, requested: str = "") -> Values:
        return {
            self.table: table_of(self.comparisons, project, url, sheet, requested),
            self.figures: figures_of(self.comparisons, sheet),
        }

    def fill(self, request: gr.Request) -> Values:
        project = self.service.project(requested_project(request))
        usable = {self.ask: toggle_value(project is not None)}
        usable |= {button: gr.update(interactive=project is not None) for button in (self.run, self.upload)}
        if project is None:
            start = link_line("/samples?project=new", tr("Go to Samples"))
            invite = empty(tr("Nothing to compare yet"), tr("A comparison belongs to a project."), start)
            cleared = (self.state, self.table, self.figures, self.menus, self.here, self.number)
            return {**usable, self.nothing: invite, **dict.fromkeys(cleared, "")}
        rows = self.service.store.plugins.list(project.id)
        plugin = str(request.query_params.get("plugin", ""))
        number = "new" if plugin else str(request.query_params.get("comparison", ""))
        sheet, url = self.comparisons.sheet(project, number), CompareUrl.of(dict(request.query_params))
        if sheet is None or url.comparison != sheet.comparison_id:
            url = CompareUrl()
        chosen = self.comparisons.chosen_plugins(project, sheet, whole_number(plugin))
        return {
            **usable,
            self.nothing: "",
            self.plugins: gr.update(choices=plugin_choices(rows), value=chosen, visible=visible_if(bool(rows))),
            self.enforce: gr.update(
                value=sheet is not None and bool(sheet.systems[0].get("enforced")),
                visible=visible_if(bool(project_terms(self.service, project))),
            ),
            **self.content(project, sheet, url, number),
            self.number: str(project.id),
            self.editor.count: self.editor.counted(project),
        }

    def open_file(self, request: gr.Request, files: list[str]) -> Iterator[Values]:
        project = self.service.need(requested_project(request))
        yield {self.state: reading_card(listed([Path(file).name for file in files]))}
        try:
            sheet, typed = self.comparisons.opened(project, files)
        except TailorError:
            yield {self.state: ""}
            raise
        values = self.content(project, sheet, CompareUrl())
        if sheet is None:
            values[self.text] = gr.update(value=typed, visible=True)
            values[self.file] = gr.update(value="", visible="hidden")
        yield values

    def change_page(self, request: gr.Request, url_json: str, event: gr.EventData) -> Values:
        """Show the table in another order or from another line."""
        project, url = self.service.need(requested_project(request)), CompareUrl.read(url_json)
        url = CompareUrl.of({**asdict(url), "order": event.order, "offset": str(event.offset)})
        sheet = self.comparisons.sheet(project, str(url.comparison))
        table = table_of(self.comparisons, project, url, sheet)
        return {self.table: table, self.here: url.text(), self.version: table_version(url, self.comparisons.job(sheet), table)}

    def keep(self, request: gr.Request, url_json: str, event: gr.EventData) -> None:
        """Name the comparison and keep it unchanged from now on."""
        sheet = self.need(self.service.need(requested_project(request)), CompareUrl.read(url_json))
        self.service.store.sheets.update(sheet.comparison_id, title=str(event.title), kept=True)

    def remove(self, request: gr.Request, url_json: str) -> Values:
        project = self.service.need(requested_project(request))
        self.comparisons.delete(self.need(project, CompareUrl.read(url_json)))
        return {**self.content(project, None, CompareUrl()), self.panel: ""}


build = ComparePage.build
