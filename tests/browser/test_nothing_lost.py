"""From six files, of which two are broken, to a comparison: the page is reloaded in the middle of each wait and the server started
again once. Nothing is lost, nothing is silent, and eight clicks are enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.core.settings import Settings
from engine.store import JobRow, Store
from tests.browser.conftest import BASE, SAMPLE, free_settings, served
from tests.waiting import until

WAIT = 600_000  # milliseconds for a job on a machine that is very busy
MOST_CLICKS = 8


@pytest.fixture
def shown(chromium: Any) -> Iterator[Any]:
    """A page whose console may complain of a server that is away."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """Those of a studio with a home of its own, whose worker ends with the test."""
    from engine.core.model_card import read_card_file
    from engine.jobs import stop_background_worker
    from studio.services.catalog import Catalog

    settings = free_settings(tmp_path / "home", first_look=True)
    Catalog(settings).accept(read_card_file(BASE), BASE)
    yield settings
    stop_background_worker(settings)


def six_files(folder: Path) -> list[str]:
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()[:80]
    for number in range(4):
        (folder / f"essay {number}.txt").write_text("\n".join(lines[20 * number :][:20]) + "\n", encoding="utf-8")
    (folder / "scan.docx").write_bytes(b"PK\x03\x04 this is no document")
    (folder / "letters.tmx").write_text("<tmx><body><tu>", encoding="utf-8")
    return sorted(map(str, folder.iterdir()))


class Walk:
    """A person at a page, whose clicks are counted."""

    def __init__(self, page: Any, store: Store) -> None:
        self.page, self.store, self.clicks = page, store, 0

    def click(self, what: Any) -> None:
        self.clicks += 1
        what.click()

    def reload(self) -> None:
        """Also while the page reloads by itself, as it does once a studio that was started again answers."""
        from playwright.sync_api import Error

        for attempt in range(3):
            try:
                self.page.reload()
                return
            except Error as error:
                # What Chromium says of a reload that meets one under way: before it has begun to load, and at the change of pages.
                if attempt == 2 or not re.search("ERR_ABORTED|Not attached to an active page", str(error)):
                    raise
                self.page.wait_for_load_state()

    def job(self, kind: str) -> JobRow:
        """The newest job of that kind, once there is one."""
        return until(lambda: next((job for job in self.store.jobs.list() if job.kind == kind), None))  # type: ignore[no-any-return]

    def midway(self, kind: str, interrupt: Callable[[], object]) -> None:
        """Reload while that job waits or works, which the page says before and after."""
        job = self.job(kind)
        at_work = self.page.locator(".block.tm-foot")
        interrupt()
        until(lambda: not self.store.jobs.get(job.id).active or re.search(r"\d+%|waiting", at_work.inner_text()))

    def done(self, kind: str) -> JobRow:
        job = until(lambda: (latest := self.job(kind)) and not latest.active and latest, WAIT / 1000)
        assert (job.state, job.error) == ("succeeded", "")
        return job  # type: ignore[no-any-return]


@pytest.mark.slow
def test_six_files_become_a_comparison_whatever_is_reloaded_or_started_again(
    settings: Settings, shown: Any, tmp_path: Path
) -> None:
    page = shown
    folder = tmp_path / "mine"
    folder.mkdir()
    with served(settings) as (url, _):
        store = Store(settings.store_url)
        walk = Walk(page, store)
        page.goto(f"{url}/samples?project=new")
        walk.clicks += 1  # the dialogue of the system in which the files are chosen
        page.locator("input[type=file]").first.set_input_files(six_files(folder))
        expect(page.get_by_role("textbox", name="Project")).not_to_have_value("")
        walk.click(page.get_by_role("button", name="Read samples"))
        page.wait_for_url(re.compile(r"project=\d+"))
        walk.midway("prepare", walk.reload)
        expect(page.get_by_text(re.compile(r"\d+ sentences kept from 4 files"))).to_be_visible(timeout=WAIT)
        unread = page.locator(".tm-card", has_text="Not read").last
        for name in ("scan.docx", "letters.tmx"):
            expect(unread.locator("li", has_text=name).locator("div")).not_to_be_empty()
        walk.done("prepare")
        walk.click(page.get_by_role("link", name="Train a plugin"))
        walk.midway("preview", walk.reload)
        look = page.get_by_role("button", name="Turn this into a plugin")
        expect(look).to_be_visible(timeout=WAIT)
        expect(page.get_by_text(re.compile(r"\d+ of \d+ sentences change"))).to_be_visible()
        expect(page.locator("table.tm-look tbody tr")).to_have_count(5)
        walk.click(look)
        expect(page.get_by_role("heading", name=re.compile(r"Run \d+ · kNN-MT · quick"))).to_be_visible()
        job = walk.job("customize")
        assert job.arguments["method"] == "knn"
    with served(settings):
        walk.midway("customize", walk.reload)
        assert walk.job("customize").id == job.id
        expect(page.locator(".tm-runs tbody tr").first.get_by_text("done")).to_be_visible(timeout=WAIT)
        walk.done("customize")
        walk.click(page.get_by_role("link", name="Compare translations"))
        box = page.get_by_placeholder("One sentence per line")
        expect(box).not_to_have_value("")
        walk.click(page.get_by_role("button", name="Translate", exact=True))
        page.wait_for_url(re.compile(r"comparison=\d+"))
        walk.midway("compare", walk.reload)
        expect(page.get_by_text(re.compile(r"\d+ of \d+ sentences differ"))).to_be_visible(timeout=WAIT)
        expect(page.locator(".tm-pending")).to_have_count(0)
        walk.done("compare")
        # What shows the samples gave way to all of this, and is made once nothing else is.
        until(lambda: not any(job.active for job in store.jobs.list()))
    assert walk.clicks <= MOST_CLICKS
    assert [(job.kind, job.state) for job in store.jobs.list() if job.state != "succeeded"] == []
    assert len(store.projects.list()) == len(store.plugins.list()) == 1
