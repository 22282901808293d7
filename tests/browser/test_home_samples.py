"""Home and Samples as a person meets them: cards, single sentences, and files that are refused."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.corpora import Corpus, Decisions, SampleFiles, import_to
from engine.corpora.leakage import check_leaks
from engine.jobs import stop_background_worker
from engine.store import ProjectRow, Store
from tests.browser.conftest import ROOT, Studio, free_settings, served
from tests.documents import docx, tmx, word_paragraph

DIRTY = [ROOT / "assets" / "samples" / "reviews-zh" / name for name in ("export.csv", "notes.txt")]
LETTERS = ROOT / "assets" / "samples" / "letters-de-en" / "letters.tsv"


@pytest.fixture
def untidy(studio: Studio) -> ProjectRow:
    """A project with the untidy sample, read as a job reads it."""
    project = studio.project("Untidy")
    folder = studio.workspace(project)
    shutil.rmtree(folder / "samples")
    (folder / "samples").mkdir()
    for file in DIRTY:
        shutil.copy(file, folder / "samples")
    import_to(folder, SampleFiles(DIRTY, "zh"))
    return project


def test_a_studio_without_projects_says_what_it_is_and_starts_with_a_sample(tmp_path: Path, page: Any) -> None:
    settings = free_settings(tmp_path)
    try:
        with served(settings) as (url, _):
            page.goto(f"{url}/?lang=zh")
            expect(page.get_by_role("heading", level=1)).to_have_text("让翻译模型学会您的风格")
            page.goto(f"{url}/?lang=en")
            expect(page.get_by_role("heading", level=1)).to_have_text("Teach a translation model your style")
            expect(page.get_by_text("It is for translators and teams")).to_be_visible()
            picture = page.get_by_role("img", name=re.compile("^A comparison"))
            expect(picture).to_be_visible()
            assert picture.evaluate("image => image.complete && image.naturalWidth") == 735
            page.get_by_role("button", name="Start with a sample text").click()
            terms = page.get_by_role("dialog")
            expect(terms).to_contain_text("Small English-Chinese base")
            terms.get_by_role("button", name="Create the project").click()
            expect(terms).to_be_visible()  # the terms have to be accepted
            terms.get_by_label("I accept these terms").check()
            terms.get_by_role("button", name="Create the project").click()
            page.wait_for_url("**/samples?project=*")
            (project,) = Store(settings.store_url).projects.list()
            assert (project.name, project.target) == ("Literary Chinese", "zh")
            page.goto("about:blank")
    finally:
        stop_background_worker(settings)


def test_a_project_is_renamed_and_deleted_with_a_question(studio: Studio, page: Any) -> None:
    project = studio.project("A name with a <b>misprint</b>")
    folder = studio.workspace(project)
    page.goto(studio.url)
    card = page.locator(".tm-home", has_text="misprint")
    card.get_by_role("button", name="Rename").click()
    field = page.get_by_label("Name", exact=True)
    expect(field).to_have_value("A name with a <b>misprint</b>")
    field.fill("  A   better name ")
    field.press("Enter")
    card = page.locator(".tm-home", has_text="A better name")
    expect(card).to_contain_text("English to Chinese")
    assert studio.store.projects.get(project.id).name == "A better name"
    card.get_by_role("button", name="Delete").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Delete A better name?")
    expect(question).to_contain_text("1 file of samples")
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    assert folder.exists()
    card.get_by_role("button", name="Delete").click()
    question.get_by_role("button", name="Delete").click()
    expect(card).to_have_count(0)
    assert not folder.exists()
    assert project.id not in [row.id for row in studio.store.projects.list()]


def test_skipped_lines_are_a_click_away_and_have_an_address(studio: Studio, page: Any, untidy: ProjectRow) -> None:
    page.goto(f"{studio.url}/samples?project={untidy.id}")
    rows = page.locator("table.tm-sentences tbody tr")
    expect(rows).to_have_count(10)
    page.locator("details.tm-more", has_text="Skipped").first.locator("summary").click()
    page.get_by_role("link", name="garbled: a wrong encoding (5)").click()
    expect(rows).to_have_count(5)
    page.wait_for_url(re.compile("view=skipped.*reason=garbled"))
    page.reload()
    expect(rows).to_have_count(5)
    page.get_by_label("Reason").select_option("duplicate")
    expect(rows).to_have_count(9)  # of this file
    page.get_by_label("Any file").click()
    expect(rows).to_have_count(10)
    page.get_by_role("link", name=re.compile("^Near-duplicates")).click()
    expect(rows).to_have_count(8)
    expect(rows.first).to_contain_text(re.compile(r"similar to export\.csv \d+:"))
    page.get_by_role("link", name=re.compile("^All")).click()
    expect(rows).to_have_count(25)
    page.get_by_role("searchbox", name="Search the sentences").fill("<img src=x>")
    page.get_by_role("searchbox", name="Search the sentences").press("Enter")
    expect(page.get_by_text("No sentence matches.")).to_be_visible()


def test_sentences_are_excluded_and_taken_back(studio: Studio, page: Any, untidy: ProjectRow) -> None:
    folder = studio.workspace(untidy)
    page.goto(f"{studio.url}/samples?project={untidy.id}&view=kept")
    row = page.locator("table.tm-sentences tbody tr").nth(2)
    text = row.locator("td > div").first.inner_text()
    row.get_by_role("button", name="Exclude").click()
    expect(row).to_contain_text("excluded")
    assert list(Decisions.load(folder).excluded.values()) == [text]
    expect(page.get_by_text("Your decisions take effect at the next import or training.")).to_be_visible()
    page.goto(f"{studio.url}/samples?project={untidy.id}&view=near")
    page.get_by_role("button", name="Exclude all 8").click()
    expect(page.get_by_role("button", name="Undo: exclude 8 sentences")).to_be_visible()
    report = import_to(folder, SampleFiles(DIRTY, "zh"), decisions=Decisions.load(folder))
    assert report.skipped["excluded by you"] == 9
    assert text not in Corpus.load(folder).texts()
    page.reload()
    expect(page.get_by_text("Your decisions have been applied.")).to_be_visible()
    page.get_by_role("button", name="Undo: exclude 8 sentences").click()
    expect(page.get_by_role("button", name="Undo: exclude 1 sentence")).to_be_visible()
    assert len(Decisions.load(folder).excluded) == 1


def test_all_sentences_in_another_language_are_excluded_by_one_button(studio: Studio, page: Any, untidy: ProjectRow) -> None:
    folder = studio.workspace(untidy)
    page.goto(f"{studio.url}/samples?project={untidy.id}&view=noticed")
    page.get_by_role("button", name="Exclude all 9 in another language").click()
    undo = page.get_by_role("button", name="Undo: exclude 9 sentences")
    expect(undo).to_be_visible()
    expect(page.locator("table.tm-sentences tbody tr.tm-out").first).to_contain_text("another language")
    expect(page.get_by_label("Reason")).to_have_value("")  # the view is the same
    assert len(Decisions.load(folder).excluded) == 9
    undo.click()
    expect(undo).to_have_count(0)
    assert not Decisions.load(folder).excluded


def test_what_stands_in_a_test_file_is_shown_and_excluded(studio: Studio, page: Any, untidy: ProjectRow) -> None:
    folder = studio.workspace(untidy)
    texts = [text for text in Corpus.load(folder).texts() if len(text) > 12][:3]
    (folder / "test_files").mkdir()
    (folder / "test_files" / "test.zh.txt").write_text("\n".join(["完全不同的一句话在这里。", *texts]), encoding="utf-8")
    check_leaks(folder, "zh", "en")
    page.goto(f"{studio.url}/samples?project={untidy.id}")
    page.get_by_role("link", name=re.compile(r"\d of 4 are in the samples")).click()
    expect(page.locator("table.tm-sentences tbody tr").first).to_contain_text("in test.zh.txt")
    page.get_by_role("button", name=re.compile("Exclude all")).click()
    expect(page.locator("table.tm-sentences")).to_contain_text("excluded")
    assert set(texts) <= set(Decisions.load(folder).excluded.values())


def test_files_chosen_for_a_new_project_are_there_again_after_another_page(studio: Studio, page: Any) -> None:
    page.goto(f"{studio.url}/samples?project=new")
    expect(page.locator(".tm-corpus").first).to_be_visible()
    page.locator(".tm-drop:visible input[type=file]").set_input_files(str(LETTERS))
    name = page.get_by_role("textbox", name="Project")
    expect(name).to_have_value("letters")
    for _ in range(2):  # also where they are left once more
        page.locator('.tm-brand a[href="/"]').click()
        page.locator('a[href="/samples?project=new"]:visible').click()
        expect(page.locator(".tm-drop:visible tr.file")).to_contain_text("letters")
        expect(name).to_have_value("letters")
    page.locator(".tm-drop:visible").get_by_label("Clear").click()
    expect(page.locator(".tm-drop:visible tr.file")).to_have_count(0)
    page.locator('.tm-brand a[href="/"]').click()
    page.locator('a[href="/samples?project=new"]:visible').click()
    expect(page.locator(".tm-corpus").first).to_be_visible()
    expect(page.locator(".tm-drop:visible tr.file")).to_have_count(0)


def test_a_document_that_would_fill_the_disk_is_refused_at_once(studio: Studio, page: Any, tmp_path: Path) -> None:
    before = len(studio.store.projects.list())
    page.goto(f"{studio.url}/samples?project=new")
    page.locator("input[type=file]").first.set_input_files(str(docx(word_paragraph("x" * 9_000_000), tmp_path / "b.docx")))
    expect(page.get_by_role("textbox", name="Project")).to_have_value("b")
    page.get_by_role("button", name="Read samples").click()
    expect(page.get_by_text(re.compile("b.docx would unpack to 9 MiB"))).to_be_visible()
    assert len(studio.store.projects.list()) == before


@pytest.mark.slow
def test_a_memory_by_its_path_and_one_that_is_damaged(studio: Studio, page: Any, tmp_path: Path) -> None:
    pairs = [line.split("\t") for line in LETTERS.read_text(encoding="utf-8").splitlines()[1:60]]
    good = tmp_path / "letters.tmx"
    good.write_text(tmx([(en, f"第{i}封信：{'很好。' * (1 + i % 3)}走了。") for i, (_, en) in enumerate(pairs)]), encoding="utf-8")
    page.goto(f"{studio.url}/samples?project=new")
    page.get_by_placeholder(re.compile("a path on this machine")).first.fill(str(good))
    page.get_by_role("button", name="Read samples").click()
    page.wait_for_url(re.compile(r"project=\d+"))
    expect(page.get_by_text("It contains English 59, Chinese 59.")).to_be_visible(timeout=300_000)
    bad = tmp_path / "bad.tmx"
    bad.write_text(tmx([("a", "b")]).replace('SYSTEM "tmx14.dtd"', '[<!ENTITY x "y">]'), encoding="utf-8")
    page.locator(".tm-more-files input[type=file]").set_input_files(str(bad))
    expect(page.get_by_text(re.compile(r"bad\.tmx, line 2: it declares an XML entity"))).to_be_visible(timeout=300_000)
    expect(page.get_by_text("It contains English 59, Chinese 59.")).to_be_visible()  # what was read before is still there
    page.get_by_role("button", name="Remove bad.tmx").click()
    expect(page.get_by_text("Not read yet")).to_have_count(0)
    expect(page.get_by_text(re.compile("declares an XML entity"))).to_have_count(0, timeout=300_000)


def test_the_buttons_of_a_list_of_files_cover_none_of_it(studio: Studio, page: Any, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.txt" for number in range(7)]
    for file in files:
        file.write_text("雨停了。\n", encoding="utf-8")
    page.goto(f"{studio.url}/samples?project=new")
    expect(page.locator(".tm-corpus").first).to_be_visible()
    page.locator(".tm-drop:visible input[type=file]").set_input_files([str(file) for file in files])
    rows = page.locator(".tm-drop:visible tr.file")
    expect(rows).to_have_count(len(files))
    buttons = page.locator(".tm-drop:visible .icon-button-wrapper").bounding_box()
    holder = page.locator(".tm-drop:visible .file-preview-holder").bounding_box()
    first, last = rows.first.bounding_box(), rows.last.bounding_box()
    assert first["y"] >= buttons["y"] + buttons["height"]
    assert last["y"] + last["height"] <= holder["y"] + holder["height"], "the last row is whole"
    rows.first.get_by_label("Remove this file").click()
    expect(rows).to_have_count(len(files) - 1)
