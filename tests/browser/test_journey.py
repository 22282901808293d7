"""The whole way as a person goes it: samples, phrases, proportions, a training that is reloaded in its middle, a comparison, a
blind rating, an export, and the plugin at work in another studio. Then what goes wrong on the way.

`TAILORMT_SCREENSHOTS=folder` keeps a picture of each step there.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.store import ProjectRow, Store, tables
from engine.store.project_files import delete_project
from engine.training import budget_options
from tests.browser.conftest import BASE, SAMPLE, Studio, free_settings, served
from tests.waiting import until

SENTENCES = ["The rain had not stopped.", "He opened the door.", "I waited for a letter that never came."]
WAIT = 300_000  # milliseconds for a job, with those of other tests before it
# A training of seconds that still changes what is said.
TINY = {"Max updates": "12", "Phrases per layer": "20", "Learning rate": "0.05", "Warmup": "1", "Tokens per batch": "256"}
Shoot = Callable[[Any, str], None]


@pytest.fixture
def shoot(tmp_path: Path) -> Shoot:
    """Takes a picture of a page."""
    folder = Path(os.environ.get("TAILORMT_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)

    def take(page: Any, name: str) -> None:
        page.wait_for_timeout(400)
        page.screenshot(path=str(folder / f"{name}.png"))

    return take


def step(page: Any, name: str) -> None:
    """Go to a step as a person does."""
    page.locator(".tm-steps a", has_text=name).click()
    expect(page.locator(".tm-steps a[aria-current=page]")).to_contain_text(name)


@pytest.mark.slow
def test_from_sentences_to_a_plugin_in_another_studio(
    studio: Studio, page: Any, chromium: Any, tmp_path: Path, shoot: Shoot
) -> None:
    project = upload(studio, page, tmp_path, shoot)
    look_at_the_phrases(page, shoot)
    look_at_the_proportions(page, shoot)
    train(studio, page, project, shoot)
    text = compare(studio, page, project, shoot)
    rate(studio, page, chromium, project, shoot)
    bundle = export(page, tmp_path, shoot)
    use_elsewhere(chromium, bundle, text, tmp_path, shoot)


def upload(studio: Studio, page: Any, tmp_path: Path, shoot: Shoot) -> ProjectRow:
    """Sixty sentences, one of them twice, with an empty line and one that is too short."""
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()[:60]
    lines[10:10] = [lines[0], "", "嗯"]
    file = tmp_path / "my essays.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    page.goto(f"{studio.url}/samples?project=new")
    page.locator("input[type=file]").first.set_input_files(str(file))
    expect(page.get_by_role("textbox", name="Project")).to_have_value("my essays")
    page.get_by_role("button", name="Read samples").click()
    page.wait_for_url(re.compile(r"project=\d+"))
    expect(page.get_by_text(re.compile(r"\d+ sentences kept from 1 file, \d+ skipped"))).to_be_visible(timeout=WAIT)
    report = page.locator("details.tm-more")
    report.locator("summary").first.click()
    expect(report.get_by_text("duplicate").first).to_be_visible()
    page.wait_for_timeout(4500)  # two polls
    expect(report.get_by_text("duplicate").first).to_be_visible()  # polling does not fold it again
    expect(page.get_by_role("link", name="Train a plugin")).to_be_visible(timeout=WAIT)
    count = page.locator(".tm-steps a", has_text="Samples").locator("small")
    expect(count).to_have_text(re.compile(r"^(5[5-9]|60)$"))
    shoot(page, "1-samples")
    project = studio.store.projects.get(int(re.search(r"project=(\d+)", page.url)[1]))  # type: ignore[index]
    assert project.name == "my essays"
    return project


def look_at_the_phrases(page: Any, shoot: Shoot) -> None:
    step(page, "Phrases")
    rows = page.locator("table.tm-phrases tbody tr")
    expect(rows.first).to_be_visible(timeout=WAIT)
    expect(page.locator(".tm-tree svg")).to_be_visible(timeout=WAIT)
    rows.nth(1).click()
    expect(page.locator(".tm-detail h2")).to_have_text(str(rows.nth(1).get_attribute("data-key")))
    shoot(page, "2-phrases")


def look_at_the_proportions(page: Any, shoot: Shoot) -> None:
    """They were fitted when the samples were read."""
    step(page, "Proportions")
    expect(page.locator(".tm-fig[data-kind=words] .main-svg").first).to_be_visible()
    shoot(page, "3-proportions")


def train(studio: Studio, page: Any, project: ProjectRow, shoot: Shoot) -> None:
    """The smallest training; the page is reloaded while it trains, and nothing is lost by that."""
    step(page, "Train")
    page.get_by_role("radio", name="Memory adapter").click()
    page.get_by_text("Quick", exact=True).click()
    page.get_by_role("button", name="Advanced settings").click()
    quick = str(budget_options("quick", "memory_adapter")["training"]["max_updates"])
    expect(page.get_by_label("Max updates")).to_have_value(quick)
    for name, value in TINY.items():
        page.get_by_label(name).first.fill(value)
    page.get_by_label(name).first.blur()
    page.get_by_role("button", name=re.compile("^(Start training|Add to the queue)$")).click()
    run = until(lambda: next((job for job in studio.store.jobs.list(project.id) if job.kind == "customize"), None))
    until(lambda: (job := studio.store.jobs.get(run.id)).step == "Training" or not job.active)
    page.reload()
    expect(page.locator(".tm-runs tbody tr").first).to_be_visible()
    job = studio.store.jobs.get(run.id)
    if job.active:
        expect(page.locator(".block.tm-foot")).to_contain_text("Making a plugin")
        shoot(page, "4-train")
    expect(page.locator(".tm-runs tbody tr").first.get_by_text("done")).to_be_visible(timeout=WAIT)
    shoot(page, "5-trained")
    job = studio.store.jobs.get(run.id)
    assert (job.state, job.attempt) == ("succeeded", 1), job.error
    assert len(studio.store.plugins.list(project.id)) == 1


def compare(studio: Studio, page: Any, project: ProjectRow, shoot: Shoot) -> str:
    """Base and plugin side by side; at strength 0 the plugin says what the base says. Returns the plugin's first sentence."""
    page.get_by_role("link", name="Compare").last.click()
    page.wait_for_url(re.compile(rf"/compare\?project={project.id}"))
    box = page.get_by_placeholder("One sentence per line")
    box.fill("\n".join(SENTENCES))
    page.get_by_role("button", name="Translate", exact=True).click()
    expect(page.get_by_text(re.compile(r"[0-3] of 3 sentences differ"))).to_be_visible()
    shoot(page, "6-compare")
    number = studio.store.comparisons.list(project.id)[0].id
    (line, *_) = studio.store.sheets.page(number)
    report = page.request.get(f"{studio.url}/download/comparisons/{number}?format=html")
    assert str(line.texts[1]) in re.sub(r"</?(mark|ins|del|b)[^>]*>", "", report.text())
    dial = page.locator("input[type=range]").first
    dial.fill("0")
    dial.dispatch_event("change")
    expect(page.get_by_text("0 of 3 sentences differ")).to_be_visible()  # 0 is the base exactly
    dial.fill("1")
    dial.dispatch_event("change")
    expect(page.get_by_text(re.compile(r"[0-3] of 3 sentences differ"))).to_be_visible()
    return str(line.texts[1])


def rate(studio: Studio, page: Any, chromium: Any, project: ProjectRow, shoot: Shoot) -> None:
    """One rater finds the first text better, always, by keys. Seconds of training may change nothing; hours would, so."""
    rows = [
        {"source": source, "vanilla": f"雨还没有停，{index}。", "customized": f"雨竟还不曾停歇，{index}。", "plugin": "my essays 1"}
        for index, source in enumerate(SENTENCES)
    ]
    studio.store.comparisons.create(project.id, "After hours", rows)
    step(page, "Rate")
    page.get_by_label("Raters", exact=True).fill("Mei")
    page.get_by_role("button", name="Start the round").click()
    page.wait_for_url(re.compile(r"round=\d+"))
    address = page.get_by_label("Link of Mei").input_value()
    with contextlib.closing(chromium.new_context(viewport={"width": 1280, "height": 800})) as context:
        rater = context.new_page()
        rater.goto(address)
        total = studio.store.ratings.list(project.id)[0].size
        assert total == len(SENTENCES)
        for done in range(total):
            expect(rater.locator("#count")).to_have_text(f"{done} of {total}")
            for _ in range(3):
                rater.keyboard.press("1")
        expect(rater.get_by_role("heading", name="Thank you, all is rated.")).to_be_visible()
        shoot(rater, "7-rater")
    expect(page.locator("table.tm-raters tbody tr").first).to_contain_text(f"{total} of {total}")
    expect(page.locator("tr.tm-average")).to_be_visible()
    shoot(page, "8-rated")


def export(page: Any, tmp_path: Path, shoot: Shoot) -> Path:
    step(page, "Plugins")
    expect(page.locator(".tm-plugin")).to_have_count(1)
    shoot(page, "9-plugins")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    bundle = tmp_path / "mine.zip"
    download.value.save_as(bundle)
    assert zipfile.is_zipfile(bundle)
    return bundle


def use_elsewhere(chromium: Any, bundle: Path, expected: str, tmp_path: Path, shoot: Shoot) -> None:
    """Another studio, another home: the bundle is taken in where it fits, and says what it said."""
    settings = free_settings(tmp_path / "elsewhere")
    store = Store(settings.store_url)
    project = store.projects.create("Elsewhere", "en", "zh", str(BASE))
    other = store.projects.create("The other way", "zh", "en", str(BASE))
    with elsewhere(settings, chromium) as (url, page):
        page.goto(f"{url}/plugins?project={other.id}")
        page.locator("input[type=file]").first.set_input_files(str(bundle))
        wrong = "The plugin translates from English to Chinese, this project from Chinese to English."
        expect(page.locator(".tm-import")).to_contain_text(wrong)
        expect(page.locator(".tm-import")).to_contain_text("Nothing was imported.")
        shoot(page, "10-wrong-languages")
        page.goto(f"{url}/plugins?project={project.id}")
        page.locator("input[type=file]").first.set_input_files(str(bundle))
        expect(page.locator(".tm-import")).to_contain_text("Imported as my essays")
        assert [row.project_id for row in store.plugins.list()] == [project.id]
        step(page, "Translate")
        page.get_by_placeholder("Or type a short text here").fill(SENTENCES[0])
        page.get_by_role("button", name="Translate text").click()
        expect(page.locator(".tm-result[lang=zh] p").first).to_have_text(expected)
        shoot(page, "11-elsewhere")


@contextlib.contextmanager
def elsewhere(settings: Any, chromium: Any) -> Iterator[tuple[str, Any]]:
    from engine.jobs import stop_background_worker

    try:
        with (
            served(settings) as (url, _),
            contextlib.closing(chromium.new_context(viewport={"width": 1280, "height": 800})) as context,
        ):
            yield url, context.new_page()
    finally:
        stop_background_worker(settings)


# -- what goes wrong


def test_a_file_that_cannot_be_read_becomes_a_sentence_and_no_project(
    studio: Studio, page: Any, tmp_path: Path, shoot: Shoot
) -> None:
    before = len(studio.store.projects.list())
    page.goto(f"{studio.url}/samples?project=new")
    page.get_by_role("button", name="Read samples").click()
    expect(page.get_by_text("Choose at least one file with your sentences")).to_be_visible()
    broken = tmp_path / "essays.docx"
    broken.write_bytes(b"PK\x03\x04 this is no document")
    page.locator("input[type=file]").first.set_input_files(str(broken))
    expect(page.get_by_role("textbox", name="Project")).to_have_value("essays")
    page.get_by_role("button", name="Read samples").click()
    expect(page.get_by_text(re.compile("essays.docx"))).to_contain_text(["essays.docx"])
    expect(page.get_by_test_id("toast-body").last).to_contain_text("essays.docx")
    shoot(page, "12-unreadable")
    assert len(studio.store.projects.list()) == before


def test_what_is_asked_for_while_another_run_is_at_work_waits_and_says_so(studio: Studio, page: Any, shoot: Shoot) -> None:
    project = studio.project("Queue")
    later = tables.now() + datetime.timedelta(hours=1)  # without a sign of life for long it would be taken for dead
    with studio.store.write() as session:
        record = tables.Job(
            kind="customize", project_id=project.id, arguments={"method": "lhuc", "budget": "quick"}, state="running",
            worker="test", step="Training", steps=8, step_index=5, started=tables.now(), heartbeat=later,
        )  # fmt: skip
        session.add(record)
        session.flush()
        number = record.id
    waiting = [studio.store.jobs.enqueue("customize", {"budget": "quick"}, project_id=project.id) for _ in range(3)]
    page.goto(f"{studio.url}/train?project={project.id}")
    for position in ("no. 2", "no. 3", "no. 4"):
        expect(page.locator(".tm-runs")).to_contain_text(f"waiting, {position}")
    expect(page.locator(".block.tm-foot")).to_contain_text(re.compile("Making a plugin|Starts when a worker is free"))
    shoot(page, "13-queue")
    for job in waiting:
        studio.store.jobs.cancel(job.id)
    studio.store.jobs.cancel(number)
    studio.store.jobs.cancelled(number, 1)
    expect(page.locator(".tm-runs")).not_to_contain_text("waiting")


def test_a_project_that_was_deleted_is_told_and_nothing_comes_back(studio: Studio, page: Any, shoot: Shoot) -> None:
    project = studio.project("Gone in a moment")
    folder = studio.workspace(project)
    page.goto(f"{studio.url}/train?project={project.id}")
    expect(page.locator(".tm-methods").first).to_be_visible()
    delete_project(studio.settings, studio.store, project.id)
    page.get_by_role("button", name=re.compile("^(Start training|Add to the queue)$")).click()
    expect(page.get_by_test_id("toast-body").first).to_contain_text("There is no project")
    shoot(page, "14-deleted")
    for name in ("samples", "phrases", "compare", "plugins"):
        gone = page.request.get(f"{studio.url}/{name}?project={project.id}", headers={"Accept": "text/html"})
        assert (gone.status, "it may have been deleted" in gone.text()) == (404, True)
    assert not folder.exists(), "no page makes the folder again"
