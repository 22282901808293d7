"""The pages Phrases and Proportions as a person meets them: one phrase in all places, what is left out, words and their shares."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from engine.jobs import enqueue
from engine.phrases.exclusions import Exclusions
from tests.browser.conftest import SAMPLE, Studio


def test_phrases_can_be_searched_and_filtered(studio: Studio, page: Any) -> None:
    project = studio.project("Phrases")
    page.goto(f"{studio.url}/phrases?project={project.id}")
    rows = page.locator("table.tm-phrases tbody tr")
    expect(rows).to_have_count(25)
    first = rows.first.get_attribute("data-key")
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.get_by_text(re.compile(r"^26–50 of"))).to_be_visible()
    page.get_by_placeholder("Search").fill(first)
    expect(page.get_by_text(re.compile(r"^1–"))).to_be_visible()
    assert all(first in text for text in page.locator("td.tm-phrase").all_inner_texts())
    page.wait_for_url(re.compile("words="))
    page.reload()
    expect(page.get_by_placeholder("Search")).to_have_value(first)
    expect(rows.first.locator("td.tm-phrase")).to_contain_text(first)
    page.get_by_placeholder("Search").fill("<nothing has this>")
    expect(page.get_by_text("No phrase matches.")).to_be_visible()


def test_tree_bars_table_and_address_show_the_same_phrase(studio: Studio, page: Any) -> None:
    project = studio.project("Same phrase")
    page.goto(f"{studio.url}/phrases?project={project.id}")
    tree = page.locator(".tm-tree svg")
    expect(tree).to_be_visible()  # this project's sentences were never parsed
    bar = page.get_by_role("button", name=re.compile("^2 tokens: "))
    bar.click()  # a bar: its phrases in the table, the first of them chosen
    chosen = page.locator("table.tm-phrases tr[aria-selected]")
    expect(chosen).to_have_count(1)
    expect(bar).to_have_attribute("aria-pressed", "true")
    phrase = chosen.get_attribute("data-key")
    expect(page.locator(".tm-detail h2")).to_have_text(phrase)
    expect(page.locator(".tm-detail .tm-example b").first).to_have_text(phrase)
    assert page.locator(".tm-detail .tm-example").first.inner_text() in SAMPLE.read_text(encoding="utf-8").splitlines()
    expect(tree.locator(".tm-under-phrase")).to_be_visible()
    page.wait_for_url(re.compile("phrase="))
    page.reload()
    expect(chosen).to_have_attribute("data-key", phrase)
    expect(tree.locator(".tm-under-phrase")).to_be_visible()
    page.get_by_role("button", name=re.compile("^2 tokens: ")).click()  # again: all phrases
    node = tree.locator('[role="treeitem"][tabindex="0"]')
    node.focus()
    page.keyboard.press("End")  # the tree by keyboard alone
    while not (other := page.evaluate("document.activeElement.dataset.key")):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator(".tm-detail h2")).to_have_text(other)
    button = page.locator(".tm-detail").get_by_role("button", name="Back-translate")
    button.click()
    expect(page.locator(".tm-detail .tm-card-head + .tm-quiet")).to_be_visible(timeout=60_000)  # below the phrase
    expect(button).to_have_count(0)


def test_a_phrase_is_left_out_and_taken_back(studio: Studio, page: Any) -> None:
    project = studio.project("Left out")
    page.goto(f"{studio.url}/phrases?project={project.id}&low=4&order=times")
    rows = page.locator("table.tm-phrases tbody tr")
    expect(rows.first).to_be_visible()
    phrase = rows.first.get_attribute("data-key")
    undo = page.get_by_role("button", name=re.compile("^Undo: exclude"))
    rows.first.get_by_role("checkbox").click()
    expect(rows.first).not_to_have_attribute("data-key", phrase)
    assert not Exclusions.load(studio.workspace(project)).with_sentences, "the phrase alone, unless asked otherwise"
    undo.click()
    expect(rows.first).to_have_attribute("data-key", phrase)
    page.get_by_label("Also exclude sentences containing them").check()
    rows.first.get_by_role("checkbox").click()
    expect(page.get_by_text(re.compile(r"\d+ excluded, along with \d+ sentence"))).to_be_visible()
    expect(rows.first).not_to_have_attribute("data-key", phrase)
    expect(rows.first.get_by_role("checkbox")).to_be_checked()
    assert phrase in Exclusions.load(studio.workspace(project))
    page.reload()
    expect(page.get_by_text(re.compile("excluded, along with"))).to_be_visible()
    undo.click()
    expect(rows.first).to_have_attribute("data-key", phrase)
    expect(page.get_by_text(re.compile("excluded, along with"))).not_to_be_visible()
    assert phrase not in Exclusions.load(studio.workspace(project))


def test_proportions_word_by_word_and_layer_by_layer(studio: Studio, page: Any) -> None:
    project = studio.project("Shares")
    enqueue(studio.store, "proportions", {}, project_id=project.id)
    page.goto(f"{studio.url}/proportions?project={project.id}")
    figures = page.locator(".tm-fig .main-svg")
    expect(figures.first).to_be_visible(timeout=300_000)
    expect(page.get_by_text("lean towards their own domain").first).to_be_visible()
    expect(page.locator(".tm-fig[data-kind=words]")).to_have_count(2)
    slider = page.locator("section.tm-plots").first.get_by_role("slider")
    before = page.locator(".tm-fig[data-kind=words]").first.evaluate("(figure) => figure.data[0].y")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("section.tm-plots").first.locator("output")).to_have_text("layer 1")
    page.wait_for_url(re.compile("encoder=1"))
    assert page.locator(".tm-fig[data-kind=words]").first.evaluate("(figure) => figure.data[0].y") != before
    page.get_by_placeholder("A sentence in English").fill("The old garden was quiet.")
    page.keyboard.press("Enter")
    words = page.locator(".tm-fig[data-kind=words]").first
    expect(words.locator(".xtick", has_text="garden")).to_be_visible()
    shares = words.evaluate("(figure) => figure.data[0].x.map((_, i) => figure.data.reduce((sum, one) => sum + one.y[i], 0))")
    assert all(abs(share - 1) < 0.01 for share in shares)
    page.reload()
    expect(words.locator(".xtick", has_text="garden")).to_be_visible()
    expect(page.locator("section.tm-plots").first.locator("output")).to_have_text("layer 1")
    chip = page.locator(".tm-aside .tm-chip").first
    word = chip.inner_text()
    chip.click()
    expect(page.locator(".tm-word-rows b").first).to_have_text(word)
    page.wait_for_url(re.compile("word="))


def test_the_map_is_drawn_and_its_points_are_phrases(studio: Studio, page: Any) -> None:
    project = studio.project("Map")
    page.goto(f"{studio.url}/phrases?project={project.id}")
    page.get_by_role("button", name="Draw the map").click()
    points = page.locator('.tm-fig[data-kind="map"]')
    expect(points.locator("canvas").first).to_be_visible(timeout=300_000)
    expect(page.get_by_role("button", name="Draw again")).to_be_enabled()
    names = points.evaluate("(figure) => figure.data.filter((one) => one.type === 'scattergl').map((one) => one.x.length)")
    assert sum(names) > 1000
    page.locator("table.tm-phrases tbody tr").nth(2).click()
    phrase = page.locator("table.tm-phrases tbody tr").nth(2).get_attribute("data-key")
    page.wait_for_function(
        "(phrase) => document.querySelector('.tm-fig[data-kind=map]').data.at(-1).text[0] === phrase", arg=phrase
    )
