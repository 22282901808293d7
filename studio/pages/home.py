"""The home page: every project as a card with its actions, or an invitation to start one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gradio as gr

from engine.errors import InputError
from engine.store.project_files import delete_project
from studio.auth.identity import guest
from studio.components.file_fields import drop_field, large_files, reasons_of
from studio.components.home_welcome import start_with_sample, welcome, welcome_heading
from studio.components.html import esc, hidden_text, html_block, link_button
from studio.components.layout import EACH, FOLLOW, HEAVY, QUIET, StudioPage, address, handle_errors, heading, page
from studio.components.templating import render, script
from studio.i18n.translate import ago, tr, trn
from studio.pages import Values
from studio.services.catalog import language_pair_text
from studio.services.projects import ProjectSummary, project_summaries
from studio.services.uploads import all_refused, stash

TEXT = "One project per style, with its samples, plugins and comparisons."
NEW = "/samples?project=new"
LONGEST_NAME = 80
CARDS = script("home-cards.js")
START = script("home-start.js")
ANSWER = script("home-answer.js")


class HomePage(StudioPage):
    """/: the projects as cards; without any, an invitation to start one."""

    def layout(self) -> None:
        with page(self.demo, self.service, "", "Projects", TEXT) as self.frame:
            with self.frame.actions:
                self.new = html_block()
            self.cards = html_block(script=CARDS)
            self.welcome = html_block(script=START)
            with gr.Column(visible=False, elem_classes="tm-card tm-first") as self.invitation:
                html_block("<b>Drop your sentences here, or start with a sample</b>", classes="tm-first-words")
                self.files = drop_field("Files", 150)
                self.large = large_files()
                html_block(f'<a href="{NEW}">Choose files or a sample</a>', classes="tm-first-words")
            # One dialog of each kind for all cards. The native <dialog> keeps the keyboard focus inside and closes on Escape.
            self.dialogs = html_block(render("home_dialogs.html", longest=LONGEST_NAME), script=ANSWER, classes="tm-dialogs")
            self.address = hidden_text()
            self.busy = hidden_text("busy")  # empty while no job is active

    def events(self) -> None:
        project_outputs = [self.frame.title, self.cards]
        outputs = [*project_outputs, self.new, self.welcome, self.invitation]
        self.demo.load(handle_errors(self.fill), None, outputs, **QUIET)
        self.frame.timer.tick(handle_errors(self.poll, polled=True), self.busy, [*project_outputs, self.busy], **QUIET)
        self.dialogs.rename(handle_errors(self.rename), None, project_outputs, **EACH)
        self.dialogs.delete(handle_errors(self.delete), None, outputs, **EACH)
        self.large.refuse(handle_errors(self.refuse), **EACH)
        for event in (
            self.files.upload(handle_errors(self.drop, heavy=True), self.files, self.address, **HEAVY),
            self.welcome.start(handle_errors(self.start, heavy=True), None, self.address, **HEAVY),
        ):
            event.then(None, self.address, None, js=FOLLOW)

    def fill(self) -> Values:
        has_projects = bool(self.service.store.projects.list())
        new = link_button(NEW, tr("New project")) if has_projects else ""
        return {
            **self._projects(),
            self.new: new,
            self.welcome: "" if has_projects else welcome(self.service),
            self.invitation: gr.update(visible=not has_projects),
        }

    def poll(self, busy: str) -> Values:
        """Refresh the projects while jobs are active, and once more after the last one has ended."""
        active = bool(self.service.store.jobs.list(states=("queued", "running"), limit=1))
        if not active and not busy:
            return {self.busy: gr.skip()}
        return {**self._projects(), self.busy: "busy" if active else ""}

    def _projects(self) -> Values:
        projects = project_summaries(self.service)
        count = trn("{count} project, most recent first.", "{count} projects, most recent first.", len(projects))
        return {
            self.frame.title: heading("Projects", count) if projects else welcome_heading(),
            self.cards: home_cards(projects) if projects else "",
        }

    def rename(self, event: gr.EventData) -> Values:
        name = " ".join(str(event.name).split())[:LONGEST_NAME]
        if not name:
            raise InputError("A project needs a name.")
        self.service.store.projects.update(int(event.project), name=name)
        return self._projects()

    def delete(self, event: gr.EventData) -> Values:
        project = self.service.store.projects.get(int(event.project))
        delete_project(self.service.settings, self.service.store, project.id)
        gr.Info(esc(project.name), duration=5, title=tr("Deleted"))
        return self.fill()

    def refuse(self, event: gr.EventData) -> None:
        """Report files that are too large. Raises InputError."""
        raise all_refused(list(reasons_of(event, self.service.settings).values()))

    def start(self, event: gr.EventData) -> Values:
        """Create a project from a bundled sample and open it in the browser."""
        project = start_with_sample(self.service, bool(event.agreed))
        return {self.address: address("samples", project.id)}

    def drop(self, files: list[str] | None) -> Values:
        """Store dropped files for a new project and open the page Samples with them."""
        token = stash([Path(file) for file in files or []], self.service.settings)
        return {self.address: f"{NEW}&files={token}"}


def home_cards(project_summaries: Sequence[ProjectSummary]) -> str:
    """Project cards: name, languages, state, counts, best score, last change; actions to rename and delete."""
    visitor = guest()
    members = visitor is not None and visitor.account is not None
    return render("home_cards.html", cards=[_card(summary) for summary in project_summaries], members=members)


def _card(summary: ProjectSummary) -> dict[str, object]:
    counts = [tr("No sentences read yet")]
    if summary.sentences is not None:
        counts = [trn("{count} sentence", "{count} sentences", summary.sentences)]
        counts += [trn("{count} phrase", "{count} phrases", summary.phrases)] if summary.phrases is not None else []
    plugins = [trn("{count} plugin", "{count} plugins", summary.plugins)] if summary.plugins else []
    holds = trn("{count} file of samples", "{count} files of samples", summary.files)
    return {
        "project": summary.project,
        "address": address(summary.next, summary.project.id),
        "state": summary.state,
        "languages": language_pair_text(summary.project.source, summary.project.target),
        "counts": [*counts, *plugins],
        "best": summary.best,
        "changed": ago(summary.changed),
        "holds": tr("{one}, {two}.", one=holds, two=plugins[0]) if plugins else tr("{one}.", one=holds),
    }


build = HomePage.build
