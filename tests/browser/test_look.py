"""How the whole studio looks and reads: accessible on every page in light and dark, wholly in Chinese where that is asked."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from docs.make_pictures import FADED
from engine.store import ProjectRow, tables
from studio.components.layout import PAGES
from studio.i18n.translate import COOKIE, messages
from tests.browser.conftest import BASE, Studio

HAN = re.compile("[\u4e00-\u9fff]")
EVERYWHERE = ["/", "/samples?project=new", *(f"/{name}?project={{project}}" for name in (*PAGES, "cat-tools"))]
# Texts that are shown, but for those of users, cards and code: what stands in a field or has a language of its own.
SHOWN = """() => {
  const found = [];
  const walk = document.createTreeWalker(document.querySelector('.tm-shell'), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const box = walk.currentNode.parentElement;
    if (box.closest('script, style, [lang]:not(html), .tm-doc, code, pre') || !box.checkVisibility()) continue;
    const text = walk.currentNode.textContent.replace(/\\s+/g, ' ').trim();
    if (text) found.push(text);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def full(studio: Studio) -> ProjectRow:
    """A project with something on every page: samples, phrases, runs, a plugin, a comparison."""
    project = studio.project("Look")
    rows = [{"source": f"Rain {n}.", "vanilla": f"雨{n}。", "customized": f"雨竟{n}。", "plugin": "One"} for n in range(3)]
    studio.store.comparisons.create(project.id, "Rain", rows)
    metrics = {"bleu_vanilla": 6.9, "bleu": 7.9, "bleu_p": 0.003, "general_bleu_vanilla": 21.9, "general_bleu": 21.7}
    studio.store.plugins.create(project.id, "One", method="memory_adapter", path=str(BASE / "config.json"), metrics=metrics)
    with studio.store.write() as session:
        for state, error in (("failed", "There was no memory left."), ("succeeded", "")):
            options = {"method": "memory_adapter", "budget": "quick"}
            now = tables.now()
            session.add(
                tables.Job(
                    kind="customize", project_id=project.id, arguments=options, state=state, started=now, finished=now, error=error
                )
            )
    return project


def opened(page: Any, address: str) -> None:
    page.goto(address)
    expect(page.locator(".tm-steps a")).to_have_count(len(PAGES))
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(700)  # what the page loads after it was opened


def test_no_page_scrolls_sideways_or_has_a_serious_violation_of_accessibility(studio: Studio, page: Any, full: ProjectRow) -> None:
    from axe_playwright_python.base import AXE_SCRIPT

    wide, violations = [], []
    for position in EVERYWHERE:
        page.set_viewport_size({"width": 390, "height": 800})
        opened(page, studio.url + position.format(project=full.id))
        for width in (390, 834, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_timeout(200)  # what is drawn anew
            if page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)") > width:
                wide.append((position, width))
            if position.startswith("/compare"):
                expect(page.get_by_role("button", name="Translate", exact=True)).to_be_in_viewport(ratio=1)
                for cell in page.locator("table.tm-compare td").all():  # nor does the table inside the page
                    box = cell.bounding_box()
                    assert box["x"] >= 0
                    assert box["x"] + box["width"] <= width
        # On a busy machine Gradio may show what is to be hidden, in what comes later.
        page.evaluate("document.querySelectorAll('.tm-unseen').forEach(one => one.classList.remove('hidden'))")
        expect(page.locator(".tm-unseen:visible")).to_have_count(0)
        page.evaluate(AXE_SCRIPT)
        for scheme in ("light", "dark"):
            page.evaluate("dark => document.body.classList.toggle('dark', dark)", scheme == "dark")
            page.evaluate(FADED)
            report = page.evaluate("axe.run({resultTypes: ['violations']})")
            violations += [
                f"{position} ({scheme}) {violation['id']}: {node['html'][:160]}"
                for violation in report["violations"]
                if violation["impact"] in ("serious", "critical")
                for node in violation["nodes"]
            ]
    assert wide == []
    assert violations == []


def test_every_page_opens_in_chinese(studio: Studio, page: Any, full: ProjectRow) -> None:
    translations = messages("zh")
    names = {project.name for project in studio.store.projects.list()}  # other tests' projects are shown too
    english = {text for text, message in translations.items() if message != text and not HAN.search(text)} - names
    left = []
    for position in EVERYWHERE:
        address = studio.url + position.format(project=full.id)
        opened(page, address + ("&" if "?" in address else "?") + "lang=zh")
        assert page.locator("html").get_attribute("lang") == "zh-CN"
        expect(page.get_by_role("heading", level=1)).to_have_text(HAN)
        left += [f"{position}: {text}" for text in page.evaluate(SHOWN) if text in english]
    assert left == []


def test_the_language_is_chosen_in_the_frame_and_remembered(studio: Studio, page: Any, full: ProjectRow) -> None:
    opened(page, f"{studio.url}/phrases?project={full.id}&low=2")
    assert page.locator("html").get_attribute("lang") == "en"
    page.get_by_role("link", name="中文").click()
    expect(page.get_by_role("heading", name="短语", exact=True)).to_be_visible()
    page.wait_for_url(lambda url: "low=2" in url and "lang=" not in url)
    expect(page.get_by_placeholder("搜索")).to_be_visible()
    page.locator(".tm-steps a", has_text="样本").click()  # the next page is in the same language
    expect(page.get_by_role("heading", name="样本", exact=True)).to_be_visible()
    page.goto(f"{studio.url}/samples?project=new")
    page.get_by_role("button", name="读取样本").click()
    expect(page.get_by_test_id("toast-body").first).to_contain_text("请至少选择一个包含句子的文件")
    page.get_by_role("link", name="EN", exact=True).click()
    expect(page.get_by_role("button", name="Read samples")).to_be_visible()
    assert {cookie["value"] for cookie in page.context.cookies() if cookie["name"] == COOKIE} == {"en"}


def test_a_browser_that_wants_chinese_gets_it(studio: Studio, chromium: Any) -> None:
    context = chromium.new_context(locale="zh-CN")
    page = context.new_page()
    page.goto(f"{studio.url}/samples?project=new")
    expect(page.get_by_text("将句子文件拖到这里，或从内置样本开始")).to_be_visible()
    expect(page.get_by_text("点击上传")).to_be_visible()  # Gradio's own words as well
    context.close()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_quotes_are_as_wide_as_the_language_of_the_text_wants_them(studio: Studio, page: Any, language: str) -> None:
    opened(page, f"{studio.url}/samples?project=new&lang={language}")
    page.evaluate("dark => document.body.classList.toggle('dark', dark)", language == "zh")
    widths = page.evaluate("""() => ['', 'en', 'zh'].map(language => {
      const text = document.createElement('span');
      if (language) text.lang = language;
      text.style.cssText = 'position: absolute; min-width: 0; font-size: 100px';
      text.textContent = '“”';
      document.querySelector('.tm-shell').append(text);
      return text.getBoundingClientRect().width;
    })""")
    assert [width < 120 for width in widths] == [language == "en", True, False], widths
