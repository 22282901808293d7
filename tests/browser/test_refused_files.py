"""Files that the studio does not take, beside others that it does: each with its reason, and the others are imported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.store import Store
from tests.browser.conftest import BASE, ROOT, SAMPLE, Studio, free_settings, served
from tests.waiting import until

ENGLISH = ROOT / "assets" / "samples" / "it-help-en" / "it-help.txt"
DROP = """([target, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([new Uint8Array(2 << 20)], 'large.txt'));
  files.items.add(new File([text], 'help.txt'));
  target.dispatchEvent(new DragEvent('drop', {bubbles: true, cancelable: true, dataTransfer: files}));
}"""


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Studio]:
    """A studio that takes files of up to 1 MiB."""
    from engine.core.model_card import read_card_file
    from engine.jobs import stop_background_worker
    from studio.services.catalog import Catalog

    monkeypatch.setenv("TAILORMT_MAX_UPLOAD_MIB", "1")
    settings = free_settings(tmp_path / "home")
    Catalog(settings).accept(read_card_file(BASE), BASE)
    try:
        with served(settings) as (url, _):
            yield Studio(url, settings, Store(settings.store_url))
    finally:
        stop_background_worker(settings)


def cancelled(store: Store) -> bool:
    """Whether nothing is left to cancel: what comes by itself after a reading, which no step here waits for."""
    active = store.jobs.list(states=("queued", "running"))
    for job in active:
        store.jobs.cancel(job.id)
    return not active


def test_refused_files_are_named_and_the_others_imported(studio: Studio, page: Any, tmp_path: Path) -> None:
    url = studio.url
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    for number, name in enumerate(("first.txt", "second.txt")):
        (tmp_path / name).write_text("\n".join(lines[40 * number :][:40]) + "\n", encoding="utf-8")
    (tmp_path / "large.txt").write_bytes(b"x" * (2 << 20))
    (tmp_path / "photo.png").write_bytes(b"x")
    names = ["second.txt", "large.txt", "photo.png"]

    page.goto(url)  # dropped on Home: the language is that of the file that fits
    expect(page.locator(".tm-first .tm-drop")).to_be_visible()
    page.locator(".tm-first .tm-drop button").first.evaluate(
        "(target, text) => (" + DROP + ")([target, text])", ENGLISH.read_text(encoding="utf-8")
    )
    page.wait_for_url(re.compile("files="))
    expect(page.get_by_role("textbox", name="Project")).to_have_value("help")
    expect(page.get_by_label("Into")).to_have_value("English")

    page.goto(f"{url}/samples?project=new")
    expect(page.get_by_role("textbox", name="Project")).to_have_value("help")  # chosen before
    page.locator(".tm-drop:visible").get_by_label("Clear").click()
    expect(page.get_by_role("textbox", name="Project")).to_have_value("")
    page.locator("input[type=file]").first.set_input_files([str(tmp_path / "first.txt"), str(tmp_path / "large.txt")])
    expect(page.get_by_test_id("toast-body").last).to_contain_text("large.txt is larger than 1 MiB")
    expect(page.get_by_role("textbox", name="Project")).to_have_value("first")
    page.get_by_role("button", name="Read samples").click()
    page.wait_for_url(re.compile(r"project=\d+"))

    page.locator(".tm-more-files input[type=file]").set_input_files([str(tmp_path / name) for name in names])
    unread = page.locator(".tm-card", has=page.get_by_role("heading", name="Not read"))
    expect(unread).to_contain_text("large.txt is larger than 1 MiB")
    expect(unread).to_contain_text("photo.png cannot be read as samples")
    expect(page.get_by_text(re.compile("sentences kept from 2 files"))).to_be_visible(timeout=300_000)
    until(lambda: cancelled(studio.store))  # a job that starts later reads what is there then
    page.get_by_role("button", name="Remove photo.png").click()
    expect(unread).not_to_contain_text("photo.png")
    expect(unread).to_contain_text("large.txt")

    for name in ("first.txt", "second.txt"):  # one can be removed, and brought back, without a reading
        remove = page.locator(f'[data-remove="{name}"]')
        if name == "first.txt":
            remove.click()
            expect(page.get_by_text("Your changes take effect at the next import or training.")).to_be_visible()
            page.get_by_role("button", name="Undo first.txt").click()
        expect(remove).to_be_visible()
    expect(page.get_by_text("Your changes take effect at the next import or training.")).to_have_count(0)
