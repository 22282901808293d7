"""The page Compare as a person meets it: plugins side by side, dials, words, files, links, exports, and what can go wrong."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.store import ProjectRow
from engine.workflows.compare.export import FORMATS
from tests.browser.conftest import BASE, SAMPLE, Studio
from tests.waiting import until

HOSTILE = '<img src=x onerror="window.hacked=1"> {{value}} ${window.hacked=2}'
PHRASES = [("停歇", "stopped"), ("不曾", "had not"), ("门", "the door"), ("一句话", "a word"), ("夜里", "at night")]
SLOW = 300_000  # milliseconds in which a worker translates a short file, with another job before it
RAIN = ["The rain had not stopped.", "He opened the door.", "Nobody said a word that night."]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two plugins of the shipped base with weights at random: one that reads phrases, one that reads nothing."""
    import torch

    from engine.base import BaseModel
    from engine.memory import PhrasePair, record, save_pairs
    from engine.methods import Artefacts, get_method
    from engine.plugins import BundleContent, export_bundle

    folder = tmp_path_factory.mktemp("compared")
    base = BaseModel.load(BASE, "en", "zh", device="cpu")
    layers = len(base.decoder_layers)
    pairs = [PhrasePair(layer, zh, en, len(zh), 1) for layer in range(layers) for zh, en in PHRASES]
    save_pairs(pairs, folder / "phrases.jsonl")
    memory = record(base, pairs, folder / "memory.safetensors")
    files = {name: folder / name for name in ("phrases.jsonl", "memory.safetensors")}
    paths = {}
    torch.manual_seed(3)
    for name, artefacts, size in (("memory_adapter", Artefacts(memory, files), 0.02), ("lhuc", Artefacts(), 1.5)):
        method = get_method(name)
        config = method.config_class()
        module = method.build(base, artefacts, config)
        for parameter in module.parameters():
            parameter.data += torch.randn_like(parameter) * size
        paths[name] = export_bundle(
            folder / f"{name}.zip",
            BundleContent(name=name, base=base, method=method, config=config, module=module, files=artefacts.files),
        )
    return paths


def start(studio: Studio, name: str, bundles: dict[str, Path]) -> ProjectRow:
    project = studio.store.projects.create(name, "en", "zh", str(BASE))
    for plugin, method in (("Client manuals", "lhuc"), ("Lu Xun <b>", "memory_adapter")):
        studio.store.plugins.create(project.id, plugin, method=method, path=str(bundles[method]))
    return project


def column(page: Any, system: int) -> list[str]:
    results: list[str] = page.locator(f'.tm-words[data-system="{system}"]').all_inner_texts()
    return results


def shows(page: Any, columns: list[list[str]]) -> None:
    """Waits until the systems' columns hold these texts."""
    for system, texts in enumerate(columns):
        expect(page.locator(f'.tm-words[data-system="{system}"]')).to_have_text(texts)


def done(page: Any, lines: int) -> None:
    expect(page.get_by_text(re.compile(rf"^\d+ of {lines} sentences differ$"))).to_be_visible()


def turn(page: Any, name: str, strength: str) -> None:
    dial = page.get_by_label(f"strength of {name}")
    dial.fill(strength)
    dial.dispatch_event("change")


def test_two_plugins_a_dial_a_word_a_link_and_files(studio: Studio, page: Any, chromium: Any, bundles: dict[str, Path]) -> None:
    project = start(studio, "Side by side", bundles)
    page.goto(f"{studio.url}/compare?project={project.id}")
    box = page.get_by_placeholder("One sentence per line")
    expect(box).not_to_have_value("")
    expect(page.locator(".token")).to_have_text("Lu Xun <b>")  # the project's default: the newest
    page.get_by_label("Plugins, up to three").click()
    page.get_by_role("option", name="Client manuals").click()
    box.fill("\n".join([*RAIN, HOSTILE]))
    page.get_by_role("button", name="Translate").click()
    expect(page.locator("table.tm-of-3 .tm-pending")).to_have_count(0)
    done(page, 4)
    page.wait_for_url(re.compile(r"comparison=\d+"))
    vanilla, reading, manuals = (column(page, system) for system in range(3))
    assert len(vanilla) == 4
    assert reading != vanilla
    assert manuals != vanilla
    expect(page.locator("td.source").nth(3)).to_have_text(HOSTILE)

    turn(page, "Lu Xun <b>", "0")  # a plugin at 0 is the base exactly; the others stay
    expect(page.get_by_label("strength of Lu Xun <b>")).to_have_value("0")
    shows(page, [vanilla, vanilla, manuals])
    turn(page, "Lu Xun <b>", "1")
    shows(page, [vanilla, reading, manuals])

    position = next(position for position, text in enumerate(reading[:3]) if re.search("[\u4e00-\u9fff]", text))
    words = page.locator(f'.tm-words[data-system="1"][data-line="{position}"]')
    words.click(position={"x": 6, "y": 10})  # on its first word
    panel = page.locator(".tm-reading")
    expect(panel.locator("[data-of] .tm-read:visible li").first).to_be_visible()
    texts = panel.locator("[data-of] .tm-read:visible li > div:first-child > span:first-child").all_inner_texts()
    assert set(texts) <= {zh for zh, _ in PHRASES}
    expect(panel.locator(".tm-candidates h4")).to_have_text(["Vanilla", "Lu Xun <b>"])
    expect(panel.locator(".tm-reading-foot:visible")).to_have_text(re.compile(r"read from memory|Gate −"))
    expect(page.locator(".tm-read-chart button")).to_have_count(4)  # a column a layer of the base
    page.wait_for_url(re.compile(rf"word={position}\.1\.0-\d+"))
    page.reload()
    expect(panel.locator("[data-of] .tm-read:visible li").first).to_be_visible()
    expect(words.locator(".w.chosen")).not_to_have_count(0)
    shows(page, [vanilla, reading, manuals])
    page.keyboard.press("Tab")
    words.focus()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    page.locator('.tm-words[data-system="2"]').first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(panel.get_by_text("reads nothing: what it has learned is in its weights")).to_be_visible()

    page.get_by_text("Share", exact=True).click()
    page.get_by_label("Name", exact=True).fill("Rain & <i>door</i>")
    page.get_by_role("button", name="Copy link").click()
    link = page.get_by_label("Address").input_value()
    number = int(re.search(r"comparison=(\d+)", link)[1])  # type: ignore[index]
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    other = chromium.new_context(viewport={"width": 834, "height": 1112}).new_page()
    other.goto(link)
    shows(other, [vanilla, reading, manuals])
    assert other.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "no page to be pushed sideways"
    turn(other, "Client manuals", "0")
    other.wait_for_url(re.compile(rf"comparison=(?!{number}\b)\d+"))  # what was shared does not change
    done(other, 4)
    selected = [" ".join(str(line.texts[2]).split()) for line in studio.store.sheets.page(number)]
    assert selected == [" ".join(text.split()) for text in manuals]
    other.get_by_text("History", exact=True).click()
    expect(other.get_by_role("link", name="Rain & <i>door</i>").first).to_be_visible()
    other.get_by_text("Delete this comparison").click()
    other.get_by_role("button", name="Delete permanently").click()
    other.wait_for_url(re.compile("comparison=new"))
    assert [comparison for comparison, *_ in studio.store.sheets.titles(project.id)] == [number]
    other.context.close()

    for name, file_format in FORMATS.items():
        page.get_by_text("Export", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("link", name=file_format.title).click()
        assert download.value.suggested_filename == f"Rain & i door i{file_format.ending}"
        check(name, Path(download.value.path()).read_bytes(), manuals[1])
        page.keyboard.press("Escape")
    assert page.evaluate("window.hacked") is None
    assert page.locator(".tm-shell img").count() == 0


def check(name: str, data: bytes, text: str) -> None:
    """A file in that format which holds the text."""
    from lxml import etree
    from openpyxl import load_workbook

    if name == "xlsx":
        rows = load_workbook(io.BytesIO(data))["Sentences"].iter_rows(values_only=True)
        assert any(text in row for row in rows)
        return
    if name == "tmx":
        etree.fromstring(data)
        return
    assert text in re.sub("</?mark[^>]*>", "", data.decode("utf-8-sig"))


@pytest.mark.slow
def test_a_file_is_a_job_that_is_cancelled_gone_on_with_and_sorted(
    studio: Studio, page: Any, bundles: dict[str, Path], tmp_path: Path
) -> None:
    project = start(studio, "Files", bundles)
    rows = [f"{text[:-1]} {'again ' * n}today.\t雨还没有停，{n}。" for n in range(15) for text in RAIN[:2]]
    (tmp_path / "rain <i>.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    page.goto(f"{studio.url}/compare?project={project.id}")
    expect(page.get_by_placeholder("One sentence per line")).not_to_have_value("")
    page.locator("input[type=file]").set_input_files(str(tmp_path / "rain <i>.tsv"))
    expect(page.locator(".tm-file")).to_contain_text("30 sentences, with references")
    page.get_by_role("button", name="Translate").click()
    cancel = page.locator("[data-cancel]")
    expect(cancel).to_be_visible()
    # It measures once all are translated; a page shows 25 of them.
    until(lambda: studio.store.sheets.count(sheet(page))[0] == 30)
    cancel.click()
    expect(page.get_by_text("Cancelled. Completed work is kept.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Cancelled. Completed work is kept.")).to_be_visible()
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    done(page, 30)
    page.get_by_label("sort by").select_option("difference")
    page.wait_for_url(re.compile("order=difference"))
    ordered = [line.place for line in studio.store.sheets.page(sheet(page), "difference", 0, 30)]
    assert ordered != sorted(ordered)
    places = page.locator("table.tm-compare tbody td.n")
    expect(places).to_have_text([str(position + 1) for position in ordered[:25]])
    # As where a poll that began before is answered after: the order of the next page is the one that was chosen.
    page.locator("[data-order]").evaluate("(menu) => { menu.value = 'place'; }")
    page.get_by_role("button", name="Next").click()
    expect(places).to_have_text([str(position + 1) for position in ordered[25:]])
    page.wait_for_url(re.compile("offset=25"))
    page.reload()
    expect(places).to_have_text([str(position + 1) for position in ordered[25:]])
    expect(page.locator(".tm-reference").first).to_contain_text("雨还没有停")
    expect(page.locator(".tm-score").first).to_have_text(re.compile(r"chrF \d+"))

    page.get_by_role("button", name="Terminology").click()
    terms = page.get_by_placeholder("source term = target term")
    write(page, terms, "rain = 雨 = 雨水")
    page.get_by_role("button", name="Save and measure").click()
    expect(page.get_by_test_id("toast-body").last).to_contain_text("The terms, line 1")
    write(page, terms, "rain = 雨")
    page.get_by_role("button", name="Save and measure").click()
    expect(page.get_by_text("1 term is kept.")).to_be_visible()
    expect(page.locator(".tm-figure", has_text="Terminology used")).to_be_visible(timeout=SLOW)
    page.get_by_text("All figures", exact=True).click()
    table = page.locator("table.tm-all-figures")
    for name in ("TER, lower is better", "Length over the reference", "Words copied from the source"):
        expect(table.get_by_role("cell", name=name).first).to_be_visible()
    if folder := os.environ.get("TAILORMT_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/figures.png", full_page=True)
    page.reload()
    page.get_by_role("button", name="Terminology").click()
    expect(terms).to_have_value("rain = 雨")


def write(page: Any, box: Any, text: str) -> None:
    """A box in a folder that has just been opened takes what was kept a moment later, in the place of what was typed until then."""
    for _ in range(10):
        box.fill(text)
        page.wait_for_timeout(400)
        if box.input_value() == text:
            return
    pytest.fail("the box does not keep what is typed")


def sheet(page: Any) -> int:
    # `page.url` is brought up to date by calls of Playwright only, so a loop that makes none would read the old address for ever.
    match = re.search(r"comparison=(\d+)", page.evaluate("window.location.search"))
    assert match
    return int(match[1])


def test_what_cannot_be_compared_is_said(studio: Studio, page: Any, bundles: dict[str, Path], tmp_path: Path) -> None:
    project = start(studio, "Mistakes", bundles)
    store = studio.store
    plugin = store.plugins.list(project.id)[0]
    old_sheet = store.sheets.create(
        project.id, "Old", [(RAIN[0], None)],
        [{"name": "vanilla", "plugin_id": None, "method": "", "strength": 1.0},
         {"name": plugin.name, "plugin_id": plugin.id, "method": plugin.method, "strength": 0.5}],
        texts={0: ["雨还没有停。"], 1: ["雨竟还不曾停歇。"]},
    )  # fmt: skip
    page.goto(f"{studio.url}/compare?project={project.id}&comparison={old_sheet.comparison_id}")
    expect(page.get_by_label("strength of Lu Xun <b>")).to_have_value("0.5")
    store.plugins.delete(plugin.id)
    turn(page, "Lu Xun <b>", "1")
    toast = page.get_by_test_id("toast-body")
    expect(toast.first).to_contain_text("Lu Xun <b> was deleted, so it cannot translate again.")
    page.reload()
    expect(page.get_by_text("deleted, strength 0.5")).to_be_visible()
    expect(page.locator("mark.new").first).to_be_visible()
    expect(page.locator("input[type=range]")).to_have_count(0)

    page.goto(f"{studio.url}/compare?project={project.id}&comparison=new")
    box = page.get_by_placeholder("One sentence per line")
    expect(box).not_to_have_value("")
    box.fill("a\n" * 501)
    page.get_by_role("button", name="Translate").click()
    expect(toast.first).to_contain_text("Up to 500 sentences can be typed here, and there are 501. Open them as a file.")
    expect(page.get_by_role("button", name="Translate")).to_be_enabled()
    (tmp_path / "essays.txt").write_text(SAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    page.locator("input[type=file]").set_input_files(str(tmp_path / "essays.txt"))
    expect(toast.filter(has_text="essays.txt is in Chinese. Choose a file in English").first).to_be_visible()
    expect(page.get_by_text("Reading essays.txt")).to_have_count(0)
    page.goto(f"{studio.url}/compare?project={project.id}&comparison=999999")
    expect(page.get_by_text("Comparison not found")).to_be_visible()
    bare = store.projects.create("No plugin", "en", "zh", str(BASE))
    page.goto(f"{studio.url}/compare?project={bare.id}")
    expect(page.get_by_text("There is no plugin yet, so only the base translates.")).to_be_visible()
    expect(page.get_by_label("Plugins, up to three")).not_to_be_visible()
    page.get_by_role("link", name="Train a plugin").click()
    page.wait_for_url(f"**/train?project={bare.id}")
