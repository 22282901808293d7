"""The form that creates a project: files or bundled samples, a name, the two languages, the base and its licence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from engine.corpora.bundled import SampleCorpus
from engine.errors import InputError
from studio.components.base_note import quality_note
from studio.components.choosers import CHOOSE, base_terms, sample_cards
from studio.components.file_fields import drop_field, path_field
from studio.components.html import hidden_text, html_block
from studio.components.import_options import ImportOptions
from studio.components.layout import FOLLOW, HEAVY, LAST, QUIET, address, handle_errors, requested_project
from studio.components.settings_fields import COLLECTED
from studio.components.templating import render
from studio.services.catalog import default_pair, language_name
from studio.services.new_project import agree, language_of, open_terms, samples_setup, start_from_samples, start_project
from studio.services.service import Service
from studio.services.uploads import own_key, server_files, stash, stashed


class NewProjectForm:
    """The form in a column of the page Samples, visible while no project is selected."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.options = ImportOptions()

    def layout(self) -> None:
        """Lay out the fields."""
        base = next(iter(self.service.catalog.bases()), None)
        sources, targets = map(_choices, self.service.catalog.languages())
        with gr.Column(visible=False) as self.column:
            html_block(render("samples_invitation.html"))
            with gr.Row(equal_height=True):
                with gr.Column(scale=3, min_width=320):
                    self.files = drop_field("Files", 190, scale=3)
                    self.path = path_field(self.service.settings)
                with gr.Column(scale=2, min_width=280, elem_classes="tm-card tm-pad tm-fields"):
                    self.name = gr.Textbox(label="Project", placeholder="named after the first file", max_length=80)
                    with gr.Row():
                        self.source = gr.Dropdown(label="From", choices=sources, value=_pair(base)[0])
                        self.target = gr.Dropdown(label="Into", choices=targets, value=_pair(base)[1])
                    self.base = gr.Dropdown(
                        label="Base model (stays frozen)", choices=self._base_choices(), value=base["path"] if base else None
                    )
                    self.terms = html_block()
                    self.agreed = gr.Checkbox(label="I accept these terms", visible=False, container=False)
            with gr.Accordion("How files are read", open=False, elem_classes="tm-advanced"):
                self.options.layout()
            self.samples = html_block(script=CHOOSE)
            self.address = hidden_text()

    def events(self, start: Any) -> None:
        """Wire the fields; `start` is the button that creates the project from the files."""
        chosen = [self.source, self.target, self.base, self.agreed]
        fields = [self.files, self.path, self.name, *chosen, self.options.values]
        dropped = [self.files, self.base, self.source, self.target]
        self.files.upload(handle_errors(self.look_at_files, heavy=True), dropped, dropped[2:], **HEAVY)
        self.files.change(handle_errors(self.keep), [self.files, self.name], self.name, **QUIET)
        self.base.input(handle_errors(self.choose_base), [self.base, self.files], self.of_base, **LAST)
        languages = [self.base, self.source, self.target]
        self.source.input(handle_errors(self.choose_source), languages, self.target, **LAST)
        self.target.input(handle_errors(self.choose_target), languages, self.source, **LAST)
        # Runs one at a time and finally with the latest values, because the base depends on both languages.
        gr.on(
            [self.source.change, self.target.change], handle_errors(self.choose_languages), languages,
            [self.base, self.terms, self.agreed], **LAST,
        )  # fmt: skip
        for event in (
            start.click(handle_errors(self.create, heavy=True), fields, self.address, js=COLLECTED, **HEAVY),
            self.samples.choose(
                handle_errors(self.create_from_samples, heavy=True), chosen, [*chosen, self.terms, self.address], **HEAVY
            ),
        ):
            event.then(None, self.address, None, js=FOLLOW)

    @property
    def of_base(self) -> list[Any]:
        """The components that depend on the chosen base."""
        return [self.source, self.target, self.terms, self.agreed]

    @property
    def filled(self) -> list[Any]:
        """The components that `fill` sets."""
        return [self.column, self.samples, self.terms, self.agreed, self.files, self.name]

    def fill(self, request: gr.Request, base: str | None) -> dict[Any, Any]:
        """The form for a new project, with files dropped on the home page or chosen here earlier."""
        waiting = stashed(str(request.query_params.get("files", "")), self.service.settings)
        return {
            self.column: gr.update(visible=True),
            self.samples: sample_cards(self.service.catalog.samples()),
            self.files: [str(path) for path in waiting] or None,
            self.name: waiting[0].stem if waiting else "",
            **self._licence(base, *_pair(self._card(base)), other=False),
        }

    def refresh_bases(self, request: gr.Request) -> dict[Any, Any]:
        """Update the list of bases, as some may have been added since the studio started; the address may name one.

        The languages follow those of the files shown, if any.
        """
        if self.service.project(requested_project(request)) is not None:
            return {self.base: gr.skip()}
        bases = self.service.catalog.bases()
        named = str(request.query_params.get("base", ""))
        chosen = next((base_card for base_card in bases if base_card["name"] == named), bases[0] if bases else {}).get("path")
        waiting = [str(path) for path in stashed(str(request.query_params.get("files", "")), self.service.settings)]
        values = self.choose_base(chosen, waiting, other=chosen != self.base.value)  # keep a tick set meanwhile
        for field, codes in zip((self.source, self.target), self.service.catalog.languages(), strict=True):
            values[field] = gr.update(choices=_choices(codes), value=values[field])
        return {**values, self.base: gr.update(choices=self._base_choices(), value=chosen)}

    def choose_base(self, base: str | None, files: list[str] | None, *, other: bool = True) -> dict[Any, Any]:
        """Set the languages, with that of the files as the target if possible, and the licence of the chosen base. `other`:
        whether the base has changed.
        """
        card = self._card(base)
        source, target = _into_language_of(files, card, *_pair(card))
        return {self.source: source, self.target: target, **self._licence(base, source, target, other=other)}

    def look_at_files(self, files: list[str] | None, base: str, source: str, target: str) -> dict[Any, Any]:
        """Set the target to the language of the files."""
        into = _into_language_of(files, self._card(base), source, target)
        return {self.source: into[0], self.target: into[1]}

    def keep(self, files: list[str] | None, name: str = "") -> dict[Any, Any]:
        """Remember the chosen files, in case the page is left and reopened before the project is created. The project is named
        after the first file unless the user has named it.
        """
        chosen, before = [Path(file) for file in files or []], stashed("", self.service.settings)
        stash(chosen, self.service.settings, own_key())
        renamed = bool(name) and name not in [path.stem for path in before[:1]]
        return {self.name: name if renamed else chosen[0].stem if chosen else ""}

    def create(self, *form_values: Any) -> dict[Any, Any]:
        """Create a project from the files and open it in the browser. `form_values` are in the order of its event. Raises
        InputError without files.
        """
        files, path, name, source, target, base, agreed, options = form_values
        paths = [Path(file) for file in files or []]
        if path and path.strip():
            paths += server_files(path, self.service.settings)
        if not paths:
            raise InputError("Choose at least one file with your sentences, or start with a sample.")
        changed = self.options.changed(options)
        agree(self.service, agreed, base)
        project = start_project(self.service, paths, name, source, target, base, options=changed)
        self.keep(None)
        return {self.address: address("samples", project.id)}

    def create_from_samples(
        self, source: str, target: str, base: str, agreed: bool, event: gr.EventData
    ) -> Iterator[dict[Any, Any]]:
        """Create a project from the bundled corpus that was clicked and open it in the browser.

        If that requires another base, the form shows that base first and ignores the tick, which accepted other terms.
        """
        corpora = chosen_corpora(self.service, event)
        source, target, new_base = samples_setup(self.service, corpora, source, target, base)
        if new_base != base:
            yield {self.source: source, self.target: target, self.base: new_base, **self._licence(new_base, source, target)}
            agreed = False
        project = start_from_samples(self.service, corpora, source, target, new_base, agreed)
        self.keep(None)
        yield {self.address: address("samples", project.id)}

    def choose_source(self, base: str | None, source: str, target: str) -> dict[Any, Any]:
        """Set the target to a language that a base supports for the chosen source."""
        return {self.target: self.service.catalog.other_language(base or "", source, target)}

    def choose_target(self, base: str | None, source: str, target: str) -> dict[Any, Any]:
        """Set the source to a language that a base supports for the chosen target."""
        return {self.source: self.service.catalog.other_language(base or "", target, source, into=True)}

    def choose_languages(self, base: str | None, source: str | None, target: str | None) -> dict[Any, Any]:
        """Set a base that supports the direction, preferably the chosen one, and the note on its quality in that direction."""
        new_base = base
        if base and source and target:
            with contextlib.suppress(InputError):  # reported when the project is created
                new_base = self.service.catalog.base_for(base, source, target)
        values = self._licence(new_base, source, target)
        return {self.terms: values[self.terms]} if new_base == base else {self.base: new_base, **values}

    def _licence(self, base: str | None, source: str | None, target: str | None, *, other: bool = True) -> dict[Any, Any]:
        if not base:
            return {self.terms: "", self.agreed: gr.update(visible=False)}
        quality = quality_note(self.service, base, source or "", target or "")
        return {
            self.terms: quality + base_terms(self.service.catalog.base_card(base)),
            # Another base has other terms, so the tick is cleared.
            self.agreed: gr.update(visible=bool(open_terms(self.service, base)), **({"value": False} if other else {})),
        }

    def _card(self, base: str | None) -> Mapping[str, Any] | None:
        return next((card for card in self.service.catalog.bases() if card["path"] == base), None)

    def _base_choices(self) -> list[tuple[str, str]]:
        return [(f"{card['name']} · {card['bytes'] / 1e6:.0f} MB", card["path"]) for card in self.service.catalog.bases()]


def chosen_corpora(service: Service, event: gr.EventData) -> list[SampleCorpus]:
    """The bundled corpus that was clicked and, if the user asked for them, those that go with it."""
    first = service.catalog.sample(str(event.name))
    names: Sequence[str] = first.goes_with if event.together else ()
    return [first, *(service.catalog.sample(name) for name in names)]


def _into_language_of(
    files: Sequence[str] | None, card: Mapping[str, Any] | None, source: str | None, target: str | None
) -> tuple[str | None, str | None]:
    """Source and target, with the target replaced by the files' language if it is certain and the base supports it."""
    detected = language_of([Path(file) for file in files], card["languages"]) if card and files else None
    if detected and detected != target:
        return target if source == detected else source, detected
    return source, target


def _choices(codes: Sequence[str]) -> list[tuple[str, str]]:
    return [(language_name(code), code) for code in codes]


def _pair(base: Mapping[str, Any] | None) -> tuple[str | None, str | None]:
    """The initial source and target language of a base."""
    return default_pair(base["path"]) if base else (None, None)
