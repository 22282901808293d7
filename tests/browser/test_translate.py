"""The page Translate as a person meets it: a document in, the same out; a short text; nothing lost on a reload."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.jobs.handlers.documents import Documents
from engine.store import ProjectRow
from tests.browser.conftest import BASE, SAMPLE, Studio

PAGE = '<html lang="en"><p>The rain had not stopped. He opened <b>the door</b>.<p translate="no">Tailor MT'
DONE = 300_000  # milliseconds in which a worker translates it, with another job before it


def start(studio: Studio, name: str) -> ProjectRow:
    return studio.store.projects.create(name, "en", "zh", str(BASE))


@pytest.mark.slow
def test_a_document_comes_back_in_its_format(studio: Studio, page: Any, tmp_path: Path) -> None:
    project = start(studio, "Documents")
    (tmp_path / "Rain <i>.html").write_text(PAGE, encoding="utf-8")
    page.goto(f"{studio.url}/translate?project={project.id}")
    button = page.get_by_role("button", name="Translate documents")
    expect(button).to_be_disabled()
    page.locator("input[type=file]").set_input_files(str(tmp_path / "Rain <i>.html"))
    expect(button).to_be_enabled()
    button.click()
    row = page.locator("table.tm-papers-done tbody tr", has_text="Rain")
    page.reload()  # the work is a job: nothing of it is in the page
    expect(row.get_by_text("done")).to_be_visible(timeout=DONE)
    expect(row).to_contain_text("base alone")
    expect(page.get_by_text('Left unchanged: 1 translate="no".')).to_be_visible()
    with page.expect_download() as download:
        row.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename.endswith(".zh.html")
    html = Path(download.value.path()).read_text(encoding="utf-8")
    assert re.fullmatch(r'<html lang="zh"><p>.*<b>.+</b>.*<p translate="no">Tailor MT', html)
    assert re.search("[\u4e00-\u9fff]", html)
    assert page.locator("table.tm-papers-done i").count() == 0, "a name is no markup"
    row.get_by_role("button", name="Delete").click()
    expect(page.locator("table.tm-papers-done")).to_have_count(0)
    assert Documents(studio.store, studio.settings).list(project.id) == []
    assert not list((studio.workspace(project) / "documents").iterdir())


def test_what_cannot_be_translated_is_said_at_once(studio: Studio, page: Any, tmp_path: Path) -> None:
    project = start(studio, "Damaged")
    (tmp_path / "a.docx").write_bytes(b"this is no document")
    page.goto(f"{studio.url}/translate?project={project.id}")
    page.locator("input[type=file]").set_input_files(str(tmp_path / "a.docx"))
    page.get_by_role("button", name="Translate documents").click()
    unread = page.locator(".tm-card", has=page.get_by_role("heading", name="Not read"))
    expect(unread).to_contain_text("a.docx cannot be opened")
    page.get_by_role("button", name="Remove a.docx").click()
    expect(unread).to_have_count(0)
    assert studio.store.jobs.list(project.id) == []


def test_a_short_text_stands_in_the_address(studio: Studio, page: Any) -> None:
    project = start(studio, "Short")
    page.goto(f"{studio.url}/translate?project={project.id}")
    box = page.get_by_placeholder("Or type a short text here")
    box.fill("The rain had not stopped.\n\nHe opened the door to {name}.")
    box.press("Shift+Enter")
    result = page.locator(".tm-result[lang=zh] p")
    expect(result).to_have_count(3)
    texts = result.all_inner_texts()
    assert re.search("[\u4e00-\u9fff]", texts[0])
    assert texts[2].count("{name}") == 1
    page.wait_for_url(re.compile(r"text=The\+rain"))
    page.reload()
    expect(box).to_have_value(re.compile("^The rain had not stopped."))
    expect(result).to_have_count(3)
    assert result.all_inner_texts() == texts


def test_documents_at_work_can_be_watched_and_cancelled(studio: Studio, page: Any) -> None:
    from engine.store import tables

    project = start(studio, "Watched documents")
    text = {"document": str(studio.workspace(project) / "documents" / "x" / "source.po"), "name": "messages.po", "strength": 0.5}
    with studio.store.write() as session:
        session.add(
            tables.Job(
                kind="translate",
                project_id=project.id,
                arguments={**text, "plugin_id": 9, "plugin": "Mine"},
                state="running",
                step="Translating",
                note="310 of 1,204 sentences",
                done=0.25,
                total=1.0,
                eta=125.0,
                worker="test",
                heartbeat=tables.now(),
                started=tables.now(),
            )
        )
    page.goto(f"{studio.url}/translate?project={project.id}")
    box = page.locator(".tm-paper")
    expect(box).to_contain_text("messages.po Mine at 0.5")
    expect(box).to_contain_text("Translating · 310 of 1,204 sentences · 2 min left")
    box.get_by_role("button", name="Cancel messages.po").click()
    expect(box.get_by_text("Stopping")).to_be_visible()
    (row,) = studio.store.jobs.list(project.id)
    studio.store.jobs.cancelled(row.id, row.attempt)
    expect(page.get_by_role("button", name="Continue messages.po")).to_be_visible()


def test_an_edited_translation_becomes_a_sample(studio: Studio, page: Any) -> None:
    project = start(studio, "Edited")
    (studio.workspace(project) / "samples").mkdir()
    shutil.copy(SAMPLE, studio.workspace(project) / "samples")
    page.goto(f"{studio.url}/translate?project={project.id}&text=He+opened+the+door.")
    segment = page.locator(".tm-segment")
    expect(segment).to_have_text(re.compile("[\u4e00-\u9fff]"))
    segment.click()
    field = page.get_by_role("textbox", name="Translation")
    expect(page.locator(".tm-editor [data-sentence]").nth(1)).to_be_visible()
    page.locator(".tm-editor [data-sentence]").nth(1).click()
    expect(field).not_to_have_value(segment.text_content())
    field.fill("他把<b>门</b>打开了。")
    learn = page.get_by_role("button", name="Add to samples")
    learn.dblclick()
    count = page.get_by_role("link", name="1 edited translation in the samples")
    expect(count).to_be_visible()
    expect(segment).to_have_text("他把<b>门</b>打开了。")
    count.click()
    row = page.locator(".tm-sentences, .tm-card", has_text="He opened the door.").last
    expect(row).to_contain_text("他把门打开了。", timeout=DONE)  # tags are stripped where samples are read
    expect(page.get_by_text("Edited translations.jsonl").first).to_be_visible()
