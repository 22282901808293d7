"""The page Plugins: plugins with their figures and origin; names, tags, versions, blends; import and export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from engine.errors import InputError
from engine.jobs import enqueue
from engine.store import JobRow, PluginRow, ProjectRow
from studio.components.ablation import lines_of
from studio.components.html import hidden_text, html_block, link_button, note
from studio.components.layout import EACH, QUIET, StudioPage, address, handle_errors, page, requested_project
from studio.components.plugin_boxes import blend_box, bring_in, default_menu, waiting_box
from studio.components.plugin_cards import card_data, no_plugins, plugin_cards
from studio.components.templating import script
from studio.i18n.translate import tr
from studio.pages import Values
from studio.services.plugin_imports import PendingImports

ABLATE = "ablate"  # kind of job
TEXT = "Each plugin is a single file that works with the base it was built for, on any machine."
ACT = script("plugins.js")


class PluginsPage(StudioPage):
    """/plugins: the plugins as cards, with imports and blends."""

    def layout(self) -> None:
        with page(self.demo, self.service, "plugins", "Plugins", TEXT) as self.frame:
            with self.frame.actions:
                self.default = html_block(script=ACT)
                self.upload = gr.UploadButton("Import a bundle…", file_count="single", size="md")
                self.next_step = html_block()
            self.imports = html_block(script=ACT)
            self.cards = html_block(script=ACT)
            self.blend = html_block(script=ACT)
            self.blended = html_block()
            self.version = hidden_text()

    def events(self) -> None:
        outputs = [self.default, self.next_step, self.cards, self.blend, self.upload, self.version]
        self.demo.load(handle_errors(self.fill), None, outputs, **QUIET)
        self.demo.load(handle_errors(self.show_imports), None, self.imports, **QUIET)
        self.frame.timer.tick(handle_errors(self.poll, polled=True), self.version, outputs, **QUIET)
        for event in (
            self.upload.upload(handle_errors(self.import_bundle), self.upload, self.imports, concurrency_limit=1, **QUIET),
            self.default.act(handle_errors(self.act), None, None, **EACH),
            self.cards.act(handle_errors(self.act), None, None, **EACH),
            self.cards.ablate(handle_errors(self.ablate), None, None, **EACH),
            self.imports.act(handle_errors(self.decide), None, self.imports, **EACH),
            self.blend.blend(handle_errors(self.save_blend), None, self.blended, concurrency_limit=1, **QUIET),
        ):
            event.then(handle_errors(self.fill), None, outputs, **QUIET)

    # -- what the page shows

    def fill(self, request: gr.Request) -> Values:
        project = self.service.project(requested_project(request))
        if project is None:
            return {self.cards: no_plugins(None), self.upload: gr.update(interactive=False)}
        versions = self.service.library.versions(project.id)
        rows = [row for plugin in versions for row in plugin.rows]
        jobs = {job.id: job for job in self.service.runs(project.id)}
        ablations = self._ablations(project)
        cards = {row.id: card_data(row, jobs, ablations) for row in rows}
        chosen = self.service.store.defaults.get(project.id)
        default = chosen.id if chosen else None
        return {
            self.default: default_menu(sorted(rows, key=lambda row: -row.id), default),
            self.next_step: link_button(address("compare", project.id), tr("Compare")) if rows else "",
            self.cards: plugin_cards(
                versions,
                cards,
                project,
                self.service.catalog.base_card(project.base),
                tags=self.service.store.tags.of(project.id),
                default=default,
                wanted=str(request.query_params.get("tag", "")),
            ),
            self.blend: blend_box([cards[plugin.newest.id] for plugin in versions]),
            self.upload: gr.update(interactive=True),
            self.version: _version(ablations),
        }

    def poll(self, request: gr.Request, version: str) -> Values:
        """Refill the page when a memory ablation has started or ended."""
        project = self.service.project(requested_project(request))
        if project is None or _version(self._ablations(project)) == version:
            return {self.version: gr.skip()}
        return self.fill(request)

    def show_imports(self, request: gr.Request) -> Values:
        """Show imports that wait for their licence to be accepted."""
        project = self.service.project(requested_project(request))
        return {self.imports: waiting_box(PendingImports(self.service, project).waiting()) if project else ""}

    def _ablations(self, project: ProjectRow) -> dict[int, JobRow]:
        """The last memory ablation of each plugin, by plugin id."""
        jobs = self.service.store.jobs.list(project.id, kinds=(ABLATE,))
        return {int(job.arguments["plugin_id"]): job for job in sorted(jobs, key=lambda job: job.id)}

    # -- what the user does

    def import_bundle(self, request: gr.Request, file: str) -> Iterator[Values]:
        for checks in bring_in(self.service, self.service.need(requested_project(request)), Path(file)):
            yield {self.imports: checks}

    def decide(self, request: gr.Request, event: gr.EventData) -> Values:
        """Accept the licence of an import, or discard the import."""
        project = self.service.need(requested_project(request))
        imports = PendingImports(self.service, project)
        if event.act == "accept":
            row = imports.finish(str(event.number))
            self.service.catalog.accept(self.service.plugin_card(row), row.path)
            return {self.imports: note(tr("{name} is imported.", name=row.name))}
        imports.drop(str(event.number))
        return {self.imports: waiting_box(imports.waiting())}

    def act(self, request: gr.Request, event: gr.EventData) -> None:
        """Rename, tag or delete a plugin, or make it the default."""
        project = self.service.need(requested_project(request))
        if event.act == "default":
            self.service.store.defaults.set(project.id, int(event.number) if event.number else None)
            return
        row = self._plugin(project, event.number)
        if event.act == "rename":
            self.service.library.rename(project.id, row.name, str(event.value))
        elif event.act == "tag":
            self.service.library.tag(project.id, row.name, str(event.value).split(","))
        elif event.act == "delete":
            self.service.library.delete(row)

    def ablate(self, request: gr.Request, event: gr.EventData) -> None:
        """Queue a memory ablation of a plugin."""
        project = self.service.need(requested_project(request))
        row = self._plugin(project, event.number)
        lines = {name: lines_of(getattr(event, name)) for name in ("sources", "references")}
        enqueue(self.service.store, ABLATE, {"plugin_id": row.id, **lines}, project_id=project.id)

    def save_blend(self, request: gr.Request, event: gr.EventData) -> Iterator[Values]:
        project = self.service.need(requested_project(request))
        first, second = (self._plugin(project, number) for number in (event.one, event.two))
        if first.id == second.id:
            raise InputError("Choose two different plugins to blend.")
        if not str(event.name).strip():
            raise InputError("A blend needs a name.")
        words = tr("Loading the base and both plugins, then translating a sentence with the blend.")
        yield {self.blended: note(words)}
        weights = {first.id: float(event.weight_one), second.id: float(event.weight_two)}
        row = self.service.library.blend(project, str(event.name), weights, self.service.base_model(project))
        yield {self.blended: note(tr("{name} is saved and can be used like any other plugin.", name=row.name))}

    def _plugin(self, project: ProjectRow, number: Any) -> PluginRow:
        """The plugin with that id. Raises InputError if it belongs to another project."""
        row = self.service.store.plugins.get(int(number))
        if row.project_id != project.id:
            raise InputError("{name} belongs to another project. Reload the page.", name=row.name)
        return row


def _version(ablations: Mapping[int, JobRow]) -> str:
    return " ".join(f"{job.id}/{job.state}" for job in ablations.values())


build = PluginsPage.build
