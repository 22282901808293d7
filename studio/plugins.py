"""The page Plugins: what was made, how good it is, where it comes from; names, tags, versions, blends; out and in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from engine.errors import InputError
from studio.frame import address, guard, page, wanted
from studio.html import esc, note, view
from studio.i18n import tr
from studio.incoming import Incoming
from studio.plugin_boxes import blend_box, check_list, default_menu, waiting_box
from studio.plugin_cards import no_plugins, plugin_cards, seen
from studio.service import Service

if TYPE_CHECKING:
    from engine.plugins.checks import Check
    from engine.store import PluginRow, ProjectRow

__all__ = ["build"]

TEXT = "Each plugin is one file. It works with the base it was made for, on any machine."
ACT = """
const send = (button) => {
  const box = button.closest('[data-plugin]');
  const field = button.dataset.field && box.querySelector(`[name="${button.dataset.field}"]`);
  const number = button.dataset.number || (box && box.dataset.plugin) || '';
  trigger('act', {act: button.dataset.act, number, value: field ? field.value : ''});
};
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-act]');
  if (button) send(button);
  const blend = event.target.closest('[data-blend]');
  if (!blend) return;
  const wish = {};
  for (const field of blend.closest('details').querySelectorAll('[name]')) wish[field.name] = field.value;
  trigger('blend', wish);
});
element.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || !event.target.matches('input[type=text]')) return;
  const label = event.target.closest('label');
  const button = label && label.nextElementSibling;
  if (button && button.dataset.act) send(button);
});
element.addEventListener('input', (event) => {
  if (event.target.type === 'range') event.target.nextElementSibling.textContent = Number(event.target.value);
});
element.addEventListener('change', (event) => {
  if ('default' in event.target.dataset) trigger('act', {act: 'default', number: event.target.value, value: ''});
});
"""


def build(demo: gr.Blocks, service: Service) -> None:
    """Lay out the page `/plugins`."""
    with page(demo, service, "plugins", "Plugins", TEXT) as frame:
        with frame.actions:
            usual = view(script=ACT)
            bring = gr.UploadButton("Import a bundle…", file_types=[".zip"], file_count="single", size="md")
            onward = view()
        bringing = view(script=ACT)
        cards = view(script=ACT)
        blend = view(script=ACT)
        mixed = view()

    def fill(request: gr.Request) -> tuple[Any, ...]:
        project = service.project(wanted(request))
        if project is None:
            return "", "", no_plugins(None), "", gr.update(interactive=False)
        store = service.store
        plugins = service.library.versions(project.id)
        rows = [row for one in plugins for row in one.rows]
        jobs = {job.id: job for job in service.runs(project.id)}
        shown = {row.id: seen(row, jobs) for row in rows}
        chosen = store.defaults.get(project.id)
        link = (
            f'<a class="tm-link-button tm-filled" href="{esc(address("compare", project.id))}">{esc(tr("Compare"))}</a>'
            if rows
            else ""
        )
        body = plugin_cards(
            plugins,
            shown,
            project,
            service.catalog.base_card(project.base),
            tags=store.tags.of(project.id),
            default=chosen.id if chosen else None,
            wanted=str(request.query_params.get("tag", "")),
        )
        newest = [shown[one.newest.id] for one in plugins]
        menu = default_menu(sorted(rows, key=lambda row: -row.id), chosen.id if chosen else None)
        return menu, link, body, blend_box(newest), gr.update(interactive=True)

    def unfinished(request: gr.Request) -> str:
        project = service.project(wanted(request))
        return waiting_box(Incoming(service, project).waiting()) if project else ""

    def take_in(request: gr.Request, file: str) -> Iterator[str]:
        yield from bring_in(service, service.need(wanted(request)), Path(file))

    def act(request: gr.Request, event: gr.EventData) -> None:
        project = service.need(wanted(request))
        if event.act == "default":
            service.store.defaults.set(project.id, int(event.number) if event.number else None)
            return
        row = own(service, project, event.number)
        if event.act == "rename":
            service.library.rename(project.id, row.name, str(event.value))
        elif event.act == "tag":
            service.library.tag(project.id, row.name, str(event.value).split(","))
        elif event.act == "delete":
            service.library.delete(row)

    def decide(request: gr.Request, event: gr.EventData) -> str:
        project = service.need(wanted(request))
        incoming = Incoming(service, project)
        if event.act == "accept":
            row = incoming.finish(str(event.number))
            service.catalog.accept(service.plugin_card(row), row.path)
            return note(tr("{name} is imported.", name=row.name))
        incoming.drop(str(event.number))
        return waiting_box(incoming.waiting())

    def mix(request: gr.Request, event: gr.EventData) -> Iterator[str]:
        project = service.need(wanted(request))
        one, two = (own(service, project, number) for number in (event.one, event.two))
        if one.id == two.id:
            raise InputError("Choose two different plugins to blend.")
        yield note(tr("Loading the base and both plugins, then translating a sentence with the blend."))
        weights = {one.id: float(event.weight_one), two.id: float(event.weight_two)}
        row = service.library.blend(project, str(event.name), weights, service.base_model(project))
        yield note(tr("{name} is saved. It can be chosen wherever a plugin can.", name=row.name))

    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    outputs = [usual, onward, cards, blend, bring]
    demo.load(guard(fill), None, outputs, **quiet)
    demo.load(guard(unfinished), None, bringing, **quiet)
    bring.upload(guard(take_in), bring, bringing, concurrency_limit=1, **quiet).then(
        guard(fill), None, outputs, **quiet
    )
    for place in (usual, cards):
        place.act(guard(act), None, None, **quiet).then(guard(fill), None, outputs, **quiet)
    bringing.act(guard(decide), None, bringing, **quiet).then(guard(fill), None, outputs, **quiet)
    blend.blend(guard(mix), None, mixed, concurrency_limit=1, **quiet).then(guard(fill), None, outputs, **quiet)


def own(service: Service, project: ProjectRow, number: Any) -> PluginRow:
    """The plugin of that number, where it is the project's. Raises InputError."""
    row = service.store.plugins.get(int(number))
    if row.project_id != project.id:
        raise InputError(tr("{name} belongs to another project. Reload the page.", name=row.name))
    return row


def bring_in(service: Service, project: ProjectRow, file: Path) -> Iterator[str]:
    """Check a bundle before the user's eyes and take it in; a restricting licence asks first."""
    incoming = Incoming(service, project)
    done: list[Check] = []
    yield check_list(file.name, done)
    key = incoming.keep(file)
    for check in incoming.checks(key, file.name):
        done.append(check)
        yield check_list(file.name, done)
    if not done[-1].ok:
        return
    if done[-1].restricted:
        yield check_list(file.name, done, asked=incoming.ask(key, file.name, done[-1].sentence))
        return
    row = incoming.finish(key, file.name)
    versions = next(one for one in service.library.versions(project.id) if one.name == row.name)
    said = tr("Imported as {name}.", name=row.name)
    if versions.older:
        said = tr("Imported as version {number} of {name}.", number=versions.number(row), name=row.name)
    yield check_list(file.name, done, done=said)
