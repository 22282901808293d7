"""The page Bases as a person meets it: from the line on Translate to a base fetched from a hub, used, and removed again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.core.model_card import read_card_file
from engine.jobs import stop_background_worker
from engine.store import Store
from studio.services.catalog import Catalog
from tests.bases import copy_base
from tests.browser.conftest import BASE, Studio, free_settings, served
from tests.hub import served_hub

MODEL = "facebook/nllb-200-distilled-600M"


@pytest.fixture
def beside_a_hub(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Studio]:
    """A studio whose hub is on this machine and has one model, for research only."""
    folder = copy_base(tiny, tmp_path / "repository")
    (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n# It\n", encoding="utf-8")
    # Which bases are demonstrations depends on their folder.
    settings = free_settings(tmp_path / "home").replace(assets="")
    Catalog(settings).accept(read_card_file(BASE), BASE)
    with served_hub({MODEL: folder}) as address:
        for name, value in {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "hf")}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        try:
            with served(settings) as (url, _):
                yield Studio(url, settings, Store(settings.store_url))
        finally:
            stop_background_worker(settings)


def test_a_better_base_is_fetched_with_consent_used_and_removed(beside_a_hub: Studio, page: Any) -> None:
    store = beside_a_hub.store
    project = store.projects.create("Novels", "en", "zh", str(BASE))
    page.goto(f"{beside_a_hub.url}/translate?project={project.id}")
    note = page.locator(".tm-base-note")
    expect(note).to_contain_text("en-zh is a demonstration model")
    note.get_by_role("link", name="Use a better base").click()
    page.wait_for_url("**/bases?project=*")

    page.get_by_role("button", name="Add nllb-200-distilled-600M").click()
    offer = page.locator(".tm-offer")
    expect(offer).to_contain_text("Not for commercial use")
    fetch = offer.get_by_role("button", name="Download")
    fetch.click()
    expect(page.locator(".toast-body")).to_contain_text("I accept these terms")
    assert store.jobs.list() == []
    offer.get_by_label("I accept these terms").check()
    fetch.click()
    expect(offer).to_contain_text("Adding nllb-200-distilled-600M")
    card = page.locator(".tm-base", has_text="nllb-200-distilled-600M")
    expect(card).to_be_visible(timeout=300_000)
    assert (beside_a_hub.settings.home_dir / "models" / "nllb-200-distilled-600M" / "origin.json").exists()

    card.get_by_role("button", name="Use in Novels").click()
    expect(card).to_contain_text("this project's base")
    expect(card).to_contain_text("In use, so it cannot be removed")
    page.locator(".tm-base", has_text="en-zh").get_by_role("button", name="Use in Novels").click()
    card.get_by_role("button", name="Remove").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("nllb-200-distilled-600M")
    question.get_by_role("button", name="Remove").click()
    expect(card).to_have_count(0)
    assert store.projects.get(project.id).base == str(BASE)

    page.get_by_role("textbox", name="Another base").fill("group/nothing")
    page.keyboard.press("Enter")
    expect(offer).to_contain_text("There is no model group/nothing on the hub")
