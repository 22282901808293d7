"""A studio that people sign in to, in a real browser: every page works for who may see it, and the console stays empty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.core.actor import Actor, act_as
from engine.store import ProjectRow, Store
from tests.browser.conftest import SAMPLE, Studio, free_settings, served
from tests.waiting import until

PASSWORD = "a long enough password"
STEPS = ("samples", "phrases", "proportions", "train", "compare", "rate", "plugins", "translate")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    from engine.jobs import stop_background_worker

    settings = free_settings(tmp_path_factory.mktemp("home"))
    (Path(settings.home) / "settings.toml").write_text('sign_in = "on"\nlocal_worker = false\n', encoding="utf-8")
    store = Store(settings.store_url)
    for name, role in (("Ada", "admin"), ("Ann", "member"), ("Bob", "viewer")):
        store.accounts.create(name, PASSWORD, role)
    try:
        with served(settings) as (url, _):
            yield Studio(url, settings, store)
    finally:
        stop_background_worker(settings)


@pytest.fixture(scope="module")
def project(house: Studio) -> ProjectRow:
    with act_as(Actor("Ann", "member", house.store.accounts.named("Ann").id)):
        return house.project("Ann's own")


def sign_in(page: Any, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_every_page_works_after_signing_in(house: Studio, page: Any, project: ProjectRow) -> None:
    """The page fixture fails on any line of the console, and so on any violation of the content-security policy."""
    page.goto(f"{house.url}/train?project={project.id}")
    page.get_by_role("heading", name="Sign in").wait_for()
    page.get_by_label("Name", exact=True).fill("Ann")
    sign_in(page, "Ann")
    page.wait_for_url(re.compile(rf"/train\?project={project.id}"))
    page.locator(".tm-steps").wait_for()
    for step in STEPS:
        page.goto(f"{house.url}/{step}?project={project.id}")
        page.locator(f".tm-steps a[href^='/{step}'][aria-current=page]").wait_for()
        page.wait_for_load_state("networkidle")  # what it still asks for as it is left would be answered with an error
    page.goto(f"{house.url}/")
    page.get_by_role("link", name="Members").click()
    page.get_by_role("cell", name="Ann", exact=True).wait_for()
    page.goto(f"{house.url}/account")
    page.get_by_label("Program").fill("OmegaT")
    page.get_by_role("button", name="Create token").click()
    assert page.locator("pre").inner_text().startswith("tmt_")
    page.goto(f"{house.url}/account?lang=zh")
    page.get_by_role("heading", name="您的账号").wait_for()
    page.goto(f"{house.url}/account?lang=en")


def test_a_file_can_be_dropped_by_who_signed_in(house: Studio, page: Any, project: ProjectRow) -> None:
    page.goto(f"{house.url}/samples?project={project.id}")
    sign_in(page, "Ann")
    page.locator(".tm-steps").wait_for()
    before = len(house.store.jobs.list(project.id))
    page.locator("input[type=file]").first.set_input_files([str(SAMPLE)])
    page.wait_for_function("() => document.body.innerText.includes('literary-zh')")
    until(lambda: [row.action for row in house.store.audit.list(action="upload")] == ["upload"])
    assert len(house.store.jobs.list(project.id)) >= before


def test_a_token_for_a_cat_tool_is_made_and_copied_with_the_address(house: Studio, page: Any, project: ProjectRow) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{house.url}/cat-tools?project={project.id}")
    sign_in(page, "Ann")
    page.get_by_role("button", name="Create a token, and copy it with the address").click()
    page.get_by_role("button", name="Copied").wait_for()
    address, secret = page.evaluate("() => navigator.clipboard.readText()").split("\n")
    assert address == f"{house.url}/cat/{project.id}"
    token = house.store.tokens.find(secret)
    assert token is not None
    assert token.project_id == project.id
    page.reload()
    page.get_by_role("button", name="Create a token, and copy it with the address").wait_for()
    assert secret not in page.content()


def test_a_viewer_looks_and_a_stranger_does_not(house: Studio, page: Any, project: ProjectRow) -> None:
    page.goto(f"{house.url}/")
    sign_in(page, "Bob")
    page.locator(".tm-steps").wait_for()
    assert "Ann's own" not in page.content()
    foreign = page.request.get(f"{house.url}/phrases?project={project.id}", headers={"Accept": "text/html"})
    assert (foreign.status, "Ann's own" in foreign.text()) == (404, False)
    house.store.members.set(project.id, house.store.accounts.named("Bob").id, "viewer")
    page.goto(f"{house.url}/phrases?project={project.id}")
    page.locator(".tm-projects summary", has_text="Ann's own").wait_for()
    page.locator(".tm-foot").get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    page.goto(f"{house.url}/phrases?project={project.id}")
    page.get_by_role("heading", name="Sign in").wait_for()
