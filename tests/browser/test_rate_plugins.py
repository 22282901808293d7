"""Blind rating and plugins, as raters and owners of plugins meet them."""

from __future__ import annotations

import csv
import io
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.plugins import read_bundle_card
from engine.plugins.repack import amend
from engine.store import ProjectRow
from tests.browser.conftest import BASE, Studio

HOSTILE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=2</script>'


def comparison(studio: Studio, project: ProjectRow, count: int = 4) -> None:
    rows = [
        {
            "source": f"The rain had not stopped, {n}. {HOSTILE if n == 0 else ''}",
            "vanilla": f"雨还没有停，{n}。",
            "customized": f"雨竟还不曾停歇，{n}。" if n else f"雨竟还不曾停歇。{HOSTILE}",
            "plugin": "Secret system",
        }
        for n in range(count)
    ]
    studio.store.comparisons.create(project.id, "Rain", [*rows, {**rows[1], "customized": rows[1]["vanilla"]}])


def test_a_round_is_started_rated_blind_by_keys_and_summed_up(studio: Studio, page: Any, chromium: Any) -> None:
    project = studio.project("Rated")
    comparison(studio, project)
    page.goto(f"{studio.url}/rate?project={project.id}")
    expect(page.get_by_text("4 sentences")).to_be_visible()
    expect(page.get_by_text("1 is the same in both and is skipped")).to_be_visible()
    page.get_by_label("Raters", exact=True).fill("Mei <b>\nJan")
    page.get_by_role("button", name="Start the round").click()
    page.wait_for_url(re.compile(r"round=\d+"))
    link = page.get_by_label("Link of Mei <b>")
    address = link.input_value()
    assert re.fullmatch(re.escape(studio.url) + r"/rating/[\w-]{32}", address)

    rater = chromium.new_context(viewport={"width": 1280, "height": 800}).new_page()
    rater.goto(address)
    expect(rater.locator("#count")).to_have_text("0 of 4")
    for word in ("Secret system", "vanilla", "Rated", "Mei"):
        assert word not in rater.content()
    assert rater.locator("a, nav").count() == 0
    order = []
    for number in range(4):
        expect(rater.locator("#count")).to_have_text(f"{number} of 4")
        texts = [rater.locator(position).inner_text() for position in ("#a", "#b")]
        order.append(rater.locator("#source").inner_text())
        better = "1" if "不曾" in texts[0] else "3"
        for key in (better, "2", better):
            rater.keyboard.press(key)
        if number == 1:
            expect(rater.locator("#count")).to_have_text("2 of 4")
            rater.keyboard.press("u")
            expect(rater.locator("#count")).to_have_text("1 of 4")
            rater.reload()  # nothing is lost
            expect(rater.locator("#source")).to_have_text(order[1])
            pressed = rater.locator("#content [aria-pressed=true], #fluency [aria-pressed=true]")
            expect(pressed).to_have_count(2)
            rater.keyboard.press(better)
        if number == 2:
            rater.keyboard.press("s")
            expect(rater.get_by_role("heading", name="Thank you, all is rated.")).to_be_visible()
            expect(rater.get_by_text("You skipped one sentence.")).to_be_visible()
            rater.get_by_role("button", name="Rate them now").click()
    expect(rater.get_by_role("heading", name="Thank you, all is rated.")).to_be_visible()
    assert len(set(order)) == 4
    assert rater.evaluate("window.hacked") is None
    rater.context.close()

    average = page.locator("tr.tm-average td")
    expect(average.nth(0)).to_have_text("100.0 %")  # content: always the first system
    expect(average.nth(4)).to_have_text("100.0 %")  # fluency: always a tie
    expect(page.locator("table.tm-raters tbody tr").first).to_contain_text("4 of 4")
    expect(page.locator(".tm-steps a", has_text="Rate").locator("small")).to_have_text("4/8")
    page.reload()
    expect(average.nth(6)).to_have_text("100.0 %")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    assert [row["style"] for row in csv.DictReader(io.StringIO(text))] == ["win"] * 4
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(address[:-1] + ("A" if address[-1] != "A" else "B"))
    page.get_by_text("Close, remove, delete").click()
    page.get_by_role("button", name="Close the round").click()
    expect(page.get_by_text("The round is closed")).to_be_visible()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin of the shipped base that changes nothing yet."""
    from engine.base import BaseModel
    from engine.methods import Artefacts, get_method
    from engine.plugins import BundleContent, export_bundle

    base = BaseModel.load(BASE, "en", "zh", device="cpu")
    method = get_method("lhuc")
    config = method.config_class()
    module = method.build(base, Artefacts(), config)
    return export_bundle(
        tmp_path_factory.mktemp("plugins") / "manuals.zip",
        BundleContent(
            name="Manuals",
            base=base,
            method=method,
            config=config,
            module=module,
            files={},
            provenance={"sentences": 60},
            metrics={"bleu_vanilla": 9.1, "bleu": 12.4},
        ),
    )


def bring(page: Any, file: Path) -> None:
    page.locator("input[type=file]").first.set_input_files(str(file))


def test_a_plugin_is_imported_named_tagged_chosen_and_deleted(studio: Studio, page: Any, bundle: Path, tmp_path: Path) -> None:
    project = studio.project("Shelf")
    store = studio.store
    page.goto(f"{studio.url}/plugins?project={project.id}")
    expect(page.get_by_text("No plugins yet")).to_be_visible()
    bring(page, bundle)
    imported = page.locator(".tm-import")
    expect(imported).to_contain_text("Imported as Manuals.")
    expect(imported.locator("li.ok")).to_have_count(8)
    bring(page, Path(shutil.copy(bundle, tmp_path / "again.zip")))
    expect(imported).to_contain_text("Imported as version 2 of Manuals.")
    card = page.locator(".tm-plugin")
    expect(card).to_have_count(1)
    expect(card).to_contain_text("9.1 → 12.4")
    expect(card.get_by_text("1 older version")).to_be_visible()
    card.get_by_text("Change…").click()
    card.get_by_label("Name").fill("Client <b> manuals")
    card.get_by_role("button", name="Rename").click()
    expect(card.locator("h3")).to_contain_text("Client <b> manuals")
    card.get_by_text("Change…").click()
    card.get_by_label("Tags").fill("client A, draft")
    card.get_by_label("Tags").press("Enter")
    expect(card.locator("a.tm-tag")).to_have_count(2)
    page.get_by_label("Default plugin").select_option("the base alone")
    expect(card.locator("h3 .tm-tag")).to_have_count(0)
    page.reload()
    expect(page.get_by_label("Default plugin")).to_have_value("")
    expect(card.locator("h3")).to_contain_text("Client <b> manuals")
    assert store.defaults.get(project.id) is None
    page.goto(f"{studio.url}/plugins?project={project.id}&tag=nobody")
    expect(card).to_have_count(0)
    page.get_by_role("link", name="show all 1").click()
    card.get_by_text("Change…").click()
    with page.expect_download() as download:
        card.get_by_role("link", name="Download without phrases").click()
    download.value.save_as(tmp_path / "given.zip")
    assert read_bundle_card(tmp_path / "given.zip")["name"] == "Client <b> manuals"
    newest = store.plugins.list(project.id)[0]
    card.locator(".tm-manage-box summary", has_text="Delete…").click()
    assert store.plugins.list(project.id)[0] == newest, "not before it is confirmed"
    card.get_by_role("button", name="Permanently delete this version and its file").click()
    expect(card.get_by_text("1 older version")).to_have_count(0)
    assert len(store.plugins.list(project.id)) == 1
    assert not newest.exists


def test_an_import_stops_where_it_must_and_asks_where_it_should(studio: Studio, page: Any, bundle: Path, tmp_path: Path) -> None:
    project = studio.project("Imports")
    page.goto(f"{studio.url}/plugins?project={project.id}")
    imported = page.locator(".tm-import")
    amend(bundle, tmp_path / "other.zip", card={"base_fingerprint": "sha256:12", "base_model_name_or_path": "de-en"})
    bring(page, tmp_path / "other.zip")
    expect(imported).to_contain_text("The plugin was made for the base de-en (12)")
    expect(imported.locator("li.failed b")).to_have_text("Base")
    expect(imported).to_contain_text("Nothing was imported.")
    assert studio.store.plugins.list(project.id) == []
    amend(bundle, tmp_path / "licensed.zip", card={"name": "Licensed"})
    licensed(tmp_path / "licensed.zip")
    bring(page, tmp_path / "licensed.zip")
    accept = page.get_by_role("button", name="Accept and import")
    expect(accept).to_be_visible()
    page.reload()  # the question waits
    expect(imported).to_contain_text("CC BY-NC 4.0. Not for commercial use.")
    assert studio.store.plugins.list(project.id) == []
    accept.click()
    expect(page.get_by_text("Licensed is imported.")).to_be_visible()
    bring(page, bundle)
    expect(imported).to_contain_text("Imported as Manuals.")
    page.get_by_text("Blend two plugins").click()
    page.get_by_label("Weight of plugin two").fill("0.4")
    page.get_by_label("Name of the blend").fill("Both at once")
    page.get_by_role("button", name="Save the blend").click()
    expect(page.get_by_text("Both at once is saved")).to_be_visible()
    blend = page.locator(".tm-plugin", has_text="Both at once")
    expect(blend).to_contain_text("Blended from Licensed (lhuc, weight 0.7), Manuals (lhuc, weight 0.4)")
    blend.get_by_role("link", name="Compare").click()
    page.get_by_placeholder("One sentence per line").fill("He opened the door.")
    page.get_by_role("button", name="Translate").click()
    expect(page.get_by_text(re.compile(r"\d of 1 sentences differ"))).to_be_visible()


def licensed(path: Path) -> None:
    """Put a licence that restricts into the card of a bundle."""
    import hashlib
    import json
    import zipfile

    with zipfile.ZipFile(path) as old:
        texts = {name: old.read(name) for name in old.namelist()}
    data = texts["README.md"].replace(b"---\n", b"---\nlicense: cc-by-nc-4.0\n", 1)
    manifest = json.loads(texts["manifest.json"])
    manifest["files"]["README.md"] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    with zipfile.ZipFile(path, "w") as new:
        for name, text in {**texts, "README.md": data, "manifest.json": json.dumps(manifest).encode()}.items():
            new.writestr(name, text)
