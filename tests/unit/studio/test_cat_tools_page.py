"""The page CAT tools: the addresses of a project and plugin, the key, and what each tool's card says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from engine.core.actor import THIS_MACHINE, Actor, act_as
from engine.core.settings import Settings
from engine.errors import InputError
from engine.store import PluginRow, ProjectRow
from studio.auth.identity import RequestIdentity, welcome
from studio.components.cat_tool_cards import GUIDES, WAYS, connection_card, fill_placeholders, tool_cards
from studio.components.layout import sidebar_status
from studio.i18n.translate import speaking
from studio.pages.cat_tools import CatToolsPage
from studio.pages.mount import MODULES
from studio.services.cat_connections import Connection, connection, known_choice
from studio.services.origin import origin_of
from studio.services.service import Service
from tests.bases import EN_ZH, ROOT

ORIGIN = "https://mt.example.org"
HOSTILE = "<img src=x onerror=alert(1)>'\"&"
FIELD = re.compile(r'<input type="text" readonly value="([^"]*)">')


@pytest.fixture
def project(service: Service) -> ProjectRow:
    return service.store.projects.create(HOSTILE, "en", "zh", str(EN_ZH))


@pytest.fixture
def plugin(service: Service, project: ProjectRow) -> PluginRow:
    folder = service.library.folder(project.id) / "style.zip"
    shutil.copy(ROOT / "tests" / "golden" / "format-1" / "plugin.zip", folder)
    return service.store.plugins.create(project.id, "Style", method="memory_adapter", path=str(folder))


def made(service: Service, project: ProjectRow | None, choice: str = "", **changes: Any) -> Connection:
    other = Service(service.settings.replace(**changes)) if changes else service
    return connection(other, ORIGIN, project, choice)


def test_the_address_names_the_project_and_the_plugin(service: Service, project: ProjectRow, plugin: PluginRow) -> None:
    addresses = {choice: made(service, project, choice).address for choice in ("", str(plugin.id), "base")}
    here = f"{ORIGIN}/cat/{project.id}"
    assert addresses == {"": here, str(plugin.id): f"{here}/{plugin.id}", "base": f"{here}/base"}
    details = made(service, project)
    assert (details.command, details.versioned) == (f"{here}/translate", f"{here}/v2")
    assert (details.source, details.target, details.deepl_source, details.deepl_target) == ("en", "zh", "EN", "ZH")
    assert made(service, None, "base").address == ORIGIN


def test_a_choice_that_is_none_is_the_default_plugin(service: Service, project: ProjectRow, plugin: PluginRow) -> None:
    assert known_choice(service, project, str(plugin.id)) == str(plugin.id)
    assert known_choice(service, project, "base") == "base"
    assert [known_choice(service, project, choice) for choice in ("", "999", HOSTILE)] == ["", "", ""]
    assert known_choice(service, None, "base") == ""
    Path(plugin.path).unlink()
    assert known_choice(service, project, str(plugin.id)) == "", "its bundle is gone"


def test_the_connection_can_be_copied_field_by_field(service: Service, project: ProjectRow, plugin: PluginRow) -> None:
    details = made(service, project)
    card = connection_card(details, project, [("Style", plugin.id)], "Style", "")
    assert FIELD.findall(card) == [details.address, details.command, details.versioned, details.library, "any-key"]
    assert card.count("data-copy") == 5
    assert HOSTILE not in card
    assert "&lt;img src=x" in card
    assert '<option value="" selected>Default plugin: Style</option>' in card
    assert f'<option value="{plugin.id}" selected>' in connection_card(details, project, [("Style", plugin.id)], "", str(plugin.id))
    assert "reached from this computer only" in card
    assert "data-choice" not in connection_card(made(service, None), None, [], "", "")


def test_a_server_that_asks_for_a_key_says_where_it_is_made(service: Service, project: ProjectRow) -> None:
    details = made(service, project, api_tokens="always")
    card = connection_card(details, project, [], "", "")
    assert "tailormt token create" in card
    assert "/account" not in card
    people = made(service, project, host="0.0.0.0")
    card = connection_card(people, project, [], "", "")
    assert 'href="/account"' in card
    assert "this computer only" not in card
    assert fill_placeholders("[address] [key]", people) == f"{people.address} tmt_…"


def test_who_is_signed_in_gets_a_token_with_the_address_once(settings: Settings, tmp_path: Path) -> None:
    service = Service(settings.replace(sign_in="on"))
    with act_as(THIS_MACHINE):
        ann = service.store.accounts.create("Ann", "a long password", "member")
        row = service.store.projects.create("Style", "en", "zh", str(EN_ZH))
        other = service.store.projects.create("Other", "en", "zh", str(EN_ZH))
        service.store.members.set(row.id, ann.id, "owner")
    with gr.Blocks() as demo:
        page = CatToolsPage(demo, service)
        page.layout()

    def request(number: int) -> Any:
        return SimpleNamespace(query_params={"project": str(number)}, headers={"origin": ORIGIN})

    actor = Actor(ann.name, user=ann.id, role=ann.role)
    welcome({}, RequestIdentity("10.0.0.1", access=actor, account=ann))
    try:
        assert "data-create" in page.fill(request(row.id))[page.connection]
        drawn = page.create(request(row.id), "base")
        (token,) = service.store.tokens.list(user_id=ann.id)
        assert (token.scopes, token.project_id) == ("read,translate", row.id)
        assert token.expires is not None
        (text,) = re.findall(r'data-text="([^"]*)"', drawn[page.connection])
        address, secret = text.split("\n")
        assert address == f"{ORIGIN}/cat/{row.id}/base"
        stored_token = service.store.tokens.find(secret)
        assert stored_token is not None
        assert stored_token.id == token.id
        assert secret in FIELD.findall(drawn[page.tools]), "the tools' fields are ready to copy"
        assert secret not in str(page.fill(request(row.id))), "it is shown once"
        with pytest.raises(InputError):
            page.create(request(other.id), "")
    finally:
        welcome({}, RequestIdentity())
    with pytest.raises(InputError, match="Sign in to create a token"):
        page.create(request(row.id), "")
    with act_as(THIS_MACHINE):
        assert len(service.store.tokens.list()) == 1


def test_where_nobody_signs_in_no_token_is_needed_and_none_is_offered(service: Service, project: ProjectRow) -> None:
    card = connection_card(made(service, project), project, [], "", "")
    assert "does not require an API key" in card
    assert "data-create" not in card


def test_each_tool_has_a_card_whose_fields_are_filled(service: Service, project: ProjectRow) -> None:
    details = made(service, project)
    page = tool_cards(details, project)
    values = [value for guide in GUIDES for step in guide.steps for field in step.fields for value in [field.value]]
    assert page.count("data-copy") == len(FIELD.findall(page)) == len(values)
    assert not any("[" in value for value in FIELD.findall(page)), "a value that nothing fills"
    assert {"OmegaT", "Trados Studio", "memoQ", "Weblate"} <= set(re.findall(r'aria-level="2">([\w ]+?) <', page))
    assert {guide.protocol for guide in GUIDES} <= set(WAYS)
    assert {step.page for guide in GUIDES for step in guide.steps if step.page} <= set(MODULES)
    assert page.count(f'href="/translate?project={project.id}"') == 3


def test_what_the_tools_are_given_is_what_their_connectors_send_to(service: Service, project: ProjectRow) -> None:
    details = made(service, project, "base")
    values = {guide.name: [fill_placeholders(f.value, details) for s in guide.steps for f in s.fields] for guide in GUIDES}
    assert values["OmegaT"] == [f"{ORIGIN}/cat/{project.id}/base/translate"], "the plug-in adds q, source and target alone"
    assert values["Weblate"][0] == f"{ORIGIN}/cat/{project.id}/base", "it adds translate and languages"
    assert values["Weblate"][2] == f"{ORIGIN}/cat/{project.id}/base/v2", "it adds translate, languages and glossaries"
    assert ORIGIN in values["Weblate"]


def test_a_tool_that_sends_no_key_says_that_it_is_refused(service: Service, project: ProjectRow) -> None:
    words = "This plug-in sends no API key, and this server asks for one."
    assert words not in tool_cards(made(service, project), project)
    assert tool_cards(made(service, project, api_tokens="always"), project).count(words) == 1


def test_the_page_is_filled_from_its_address_and_in_chinese(
    settings: Settings, service: Service, project: ProjectRow, plugin: PluginRow
) -> None:
    with gr.Blocks() as demo:
        page = CatToolsPage(demo, service)
        page.layout()
    request: Any = SimpleNamespace(
        query_params={"project": str(project.id), "plugin": str(plugin.id)},
        headers={"host": "127.0.0.1:7860", "referer": f"{ORIGIN}/cat-tools?project=1"},
    )
    drawn = page.fill(request)
    assert f"{ORIGIN}/cat/{project.id}/{plugin.id}/v2" in drawn[page.tools]
    assert drawn[page.choice] == str(plugin.id)
    chosen: Any = SimpleNamespace(value="base")
    assert f"{ORIGIN}/cat/{project.id}/base/translate" in page.choose(request, chosen)[page.connection]
    with speaking("zh"):
        drawn = page.fill(request)
    assert "服务器地址" in drawn[page.connection]
    assert "交换文件" in drawn[page.tools]


def test_the_address_is_that_of_the_readers_browser() -> None:
    assert origin_of({"host": "127.0.0.1:7860"}) == "http://127.0.0.1:7860"
    assert origin_of({"host": "127.0.0.1:7860", "origin": "null", "referer": f"{ORIGIN}/x"}) == "http://127.0.0.1:7860"
    assert origin_of({"host": "127.0.0.1:7860", "origin": ORIGIN}) == ORIGIN


def test_the_frame_leads_to_the_page(service: Service, project: ProjectRow) -> None:
    assert f'href="/cat-tools?project={project.id}"' in sidebar_status(service.overview(str(project.id)))
    assert 'href="/cat-tools"' in sidebar_status(service.overview("new"))
