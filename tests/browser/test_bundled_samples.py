"""Bundled samples, their cards and the base's licence, as a person meets them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.core.model_card import read_card_file
from studio.services.catalog import ACCEPTED, Catalog
from tests.browser.conftest import BASE, Studio

READ = 300_000  # milliseconds in which samples are read, with another job before them


@pytest.fixture(autouse=True)
def terms_are_open(studio: Studio) -> Iterator[None]:
    """Each test here meets the base's licence for the first time."""
    accepted = studio.settings.home_dir / ACCEPTED
    cached = accepted.read_bytes()
    accepted.unlink()
    yield
    accepted.write_bytes(cached)


def start(studio: Studio, page: Any) -> None:
    page.goto(f"{studio.url}/samples?project=new")
    expect(page.locator(".tm-corpus")).to_have_count(6)


def test_the_licence_of_the_base_is_shown_before_its_use_and_accepted_once(studio: Studio, page: Any) -> None:
    card = read_card_file(BASE)
    assert card.restricted
    before = len(studio.store.projects.list())
    start(studio, page)
    expect(page.get_by_text(card.license_line)).to_be_visible()
    tick = page.get_by_label("I accept these terms")
    expect(tick).to_be_visible()
    page.get_by_role("button", name=re.compile("^Literary Chinese")).click()
    expect(page.get_by_text(f"is for {card.license_name}")).to_be_visible()
    assert len(studio.store.projects.list()) == before
    tick.check()
    page.get_by_role("button", name=re.compile("^Literary Chinese")).click()
    page.wait_for_url(re.compile(r"project=\d+"))
    assert len(studio.store.projects.list()) == before + 1
    assert Catalog(studio.settings).accepted(card, BASE)
    start(studio, page)  # remembered: the line stays, the question does not come again
    expect(page.get_by_text(card.license_line)).to_be_visible()
    expect(page.get_by_label("I accept these terms")).to_have_count(0)


def test_a_card_opens_and_fetches_nothing(studio: Studio, page: Any) -> None:
    start(studio, page)
    base = page.locator(".tm-fields details.tm-card-fold")
    base.locator("summary").click()
    expect(base.locator(".tm-doc")).to_be_visible()
    card = page.locator(".tm-corpus", has_text="Noisy tea reviews")
    expect(card).to_contain_text("Chinese · 274 lines · licence CC0 1.0")
    expect(card.locator(".tm-doc")).to_be_hidden()
    card.locator("summary").click()
    expect(card.get_by_role("cell", name="skipped: garbled: a wrong encoding")).to_be_visible()
    assert page.locator(".tm-doc img, .tm-doc script").count() == 0
    assert page.url.endswith("project=new"), "reading a card loads nothing"


@pytest.mark.slow
def test_two_domains_become_one_project_with_labels_that_can_be_changed(studio: Studio, page: Any) -> None:
    start(studio, page)
    page.get_by_label("I accept these terms").check()
    page.get_by_role("button", name="Load together with Patient information (two domains)").click()
    page.wait_for_url(re.compile(r"project=\d+"))
    legend = page.locator(".tm-legend")
    expect(legend).to_contain_text("IT help", timeout=READ)
    expect(legend).to_contain_text("365")
    expect(legend).to_contain_text("Patient information")
    expect(page.get_by_text("Chinese to English")).to_be_visible()
    field = page.get_by_label("Domain of patient-info.txt")
    field.fill("medicine <b>")
    field.press("Enter")
    expect(legend).to_contain_text("medicine <b>", timeout=READ)
    expect(legend).not_to_contain_text("Patient information")
    page.reload()
    expect(page.get_by_label("Domain of patient-info.txt")).to_have_value("medicine <b>")


@pytest.mark.slow
def test_the_untidy_sample_shows_its_faults_and_a_further_sample_can_be_added(studio: Studio, page: Any) -> None:
    start(studio, page)
    page.get_by_label("I accept these terms").check()
    page.get_by_role("button", name=re.compile("^Noisy tea reviews")).click()
    page.wait_for_url(re.compile(r"project=\d+"))
    result = page.locator("details.tm-more", has_text="Imported with warnings")
    expect(result).to_contain_text("another language 9", timeout=READ)
    result.locator("summary").click()
    expect(result.get_by_text("near-duplicate (8)")).to_be_visible()
    expect(result.get_by_text("(like line 19)")).to_be_visible()
    expect(page.locator(".tm-legend")).to_have_count(0)  # two files, one domain
    page.get_by_role("button", name="Add a bundled sample").click()
    page.get_by_role("button", name=re.compile("^Literary Chinese")).click()
    expect(page.locator(".tm-legend")).to_contain_text("Literary Chinese", timeout=READ)
    expect(page.locator(".tm-legend")).to_contain_text("238")
