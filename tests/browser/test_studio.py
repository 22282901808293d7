"""The studio as a person meets it: what is on the page after a click, after a reload, and with nothing but this machine."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from studio.components.layout import PAGES
from tests.browser.conftest import SAMPLE, Studio


def test_an_empty_studio_invites(studio: Studio, page: Any) -> None:
    if studio.store.projects.list():
        pytest.skip("another test was first")
    page.goto(studio.url)
    expect(page.get_by_text("Drop your sentences here, or start with a sample")).to_be_visible()
    page.get_by_role("link", name="Choose files or a sample").click()
    expect(page.get_by_role("button", name=re.compile("^Literary Chinese"))).to_be_visible()
    expect(page.get_by_role("button", name="Read samples")).to_be_visible()


def test_addresses_survive_reload_and_back(studio: Studio, page: Any) -> None:
    first, second = studio.project("First address"), studio.project("Second address")
    page.goto(f"{studio.url}/phrases?project={first.id}")
    expect(page.locator(".tm-projects summary")).to_have_text("First address")
    page.reload()
    expect(page.locator(".tm-projects summary")).to_have_text("First address")
    page.locator(".tm-projects summary").click()
    page.get_by_role("link", name="Second address").click()
    page.wait_for_url(f"**/phrases?project={second.id}")
    expect(page.locator(".tm-projects summary")).to_have_text("Second address")
    selected = []
    for name, path in (("Train", "train"), ("Plugins", "plugins"), ("Phrases", "phrases")):
        page.evaluate("window.kept = 1")
        page.locator(".tm-steps a", has_text=name).click()
        page.wait_for_url(f"**/{path}?project={second.id}")
        expect(page.locator(".tm-steps a[aria-current]")).to_contain_text(name)
        selected.append(page.evaluate("window.kept"))
    # Where Gradio does not come up again, the address is opened as a document of its own (studio/static/navigation.js).
    assert 1 in selected, "no step was taken within the document"
    page.go_back()
    expect(page.locator(".tm-steps a[aria-current]")).to_contain_text("Plugins")
    expect(page.locator(".tm-projects summary")).to_have_text("Second address")


def test_the_base_translates_and_the_comparison_stays(studio: Studio, page: Any) -> None:
    project = studio.project("Translate")
    page.goto(f"{studio.url}/compare?project={project.id}")
    box = page.get_by_placeholder("One sentence per line")
    expect(box).not_to_have_value("")  # a few sentences to start with
    box.fill("The rain had not stopped.\n\nHe opened the door.")
    page.get_by_role("button", name="Translate").click()
    cells = page.locator("table.tm-compare .tm-words")
    expect(cells).to_have_count(2)
    texts = cells.all_inner_texts()
    assert all(re.search("[\u4e00-\u9fff]", text) for text in texts)
    page.wait_for_url(re.compile(r"comparison=\d+"))
    page.reload()
    expect(cells).to_have_count(2)
    assert cells.all_inner_texts() == texts
    with page.expect_download() as download:
        page.get_by_text("Export", exact=True).click()
        page.get_by_role("link", name="Data (JSON)").click()
    exported = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert exported["lines"][0]["source"] == "The rain had not stopped."
    assert exported["lines"][0]["texts"][0].startswith(texts[0])
    assert len(studio.store.comparisons.list(project.id)) == 1


def test_compare_marks_changes_and_runs_no_markup(studio: Studio, page: Any) -> None:
    project = studio.project("<b>Marks</b>")
    hostile = '<img src=x onerror="window.hacked=1"> {{value}} ${window.hacked=2}'
    rows = [
        {"source": "The rain had not stopped.", "vanilla": "雨还没有停。", "customized": "雨竟还不曾停歇。"},
        {"source": "The door opened.", "vanilla": "门开了。", "customized": "门开了。"},
        {"source": hostile, "vanilla": hostile, "customized": hostile + "！"},
    ]
    plugin = studio.store.plugins.create(project.id, hostile, method="memory_adapter", path=str(SAMPLE))
    common = {"plugin_id": plugin.id, "plugin": hostile, "method": "memory_adapter", "strength": 0.8}
    studio.store.comparisons.create(project.id, hostile, [row | common for row in rows])
    page.goto(f"{studio.url}/compare?project={project.id}")
    body = page.locator("table.tm-compare tbody")
    expect(body.locator("tr")).to_have_count(3)
    expect(body.locator("tr").nth(0).locator("mark.new").first).to_be_visible()
    expect(body.locator("tr").nth(0).locator("mark.old").first).to_be_visible()
    expect(body.locator("tr").nth(1).locator("mark")).to_have_count(0)
    expect(body.locator("tr").nth(2).locator("td.source")).to_have_text(hostile)
    expect(page.get_by_text("2 of 3 sentences differ")).to_be_visible()
    expect(page.locator("input[type=range]")).to_have_value("0.8")
    expect(page.locator(".tm-projects summary")).to_have_text("<b>Marks</b>")
    assert page.evaluate("window.hacked") is None
    assert page.locator(".tm-shell img").count() == 0


def test_a_damaged_bundle_becomes_a_sentence(studio: Studio, page: Any, tmp_path: Path) -> None:
    project = studio.project("Bundles")
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"PK\x03\x04 this is no bundle")
    page.goto(f"{studio.url}/plugins?project={project.id}")
    expect(page.get_by_text("No plugins yet")).to_be_visible()
    page.locator("input[type=file]").first.set_input_files(str(broken))
    imported = page.locator(".tm-import")
    expect(imported).to_contain_text("broken.zip is not a plugin bundle")
    expect(imported).to_contain_text("Nothing was imported.")
    assert studio.store.plugins.list(project.id) == []


def test_every_page_has_the_frame_one_filled_button_and_its_colours(studio: Studio, page: Any) -> None:
    project = studio.project("Frame")
    ground = page.locator(".gradio-container")
    for name in PAGES:
        page.emulate_media(color_scheme="light")
        page.goto(f"{studio.url}/{name}?project={project.id}")
        expect(page.locator(".tm-steps a")).to_have_count(len(PAGES))
        expect(page.locator(".block.tm-foot")).to_contain_text("base en-zh, frozen")
        expect(page.locator(".tm-title h1")).to_have_text(name.capitalize())
        page.wait_for_timeout(800)
        filled = page.locator(".tm-main button.primary:visible, .tm-main .tm-filled:visible")
        assert filled.count() <= 1
        expect(ground).to_have_css("background-color", "rgb(251, 250, 247)")
        page.emulate_media(color_scheme="dark")  # followed at once, as at night
        expect(ground).to_have_css("background-color", "rgb(23, 25, 29)")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} scrolls sideways"
    page.reload()
    expect(ground).to_have_css("background-color", "rgb(23, 25, 29)")


def test_served_pages_name_no_other_host(studio: Studio) -> None:
    for name in ("", *PAGES):
        with urllib.request.urlopen(f"{studio.url}/{name}") as answer:
            text = answer.read().decode()
            policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "http" not in policy
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=[\"']([^\"']+)", text)
        assert loaded
        assert [address for address in loaded if re.match(r"(?:https?:)?//", address) and "127.0.0.1" not in address] == []
