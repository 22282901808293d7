"""Cards in the studio: rendered without harm, licences before use, accepted once; domain labels of files."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.model_card import ModelCard, parse_card
from engine.corpora.bundled import bundled_samples
from engine.errors import InputError
from engine.plugins.library import by_name
from studio.components.choosers import base_terms, sample_cards
from studio.components.import_report import files_card, side_cards
from studio.components.model_cards import card_fold, license_line, render_markdown
from studio.components.plugin_cards import card_data, plugin_cards
from studio.i18n.translate import speaking, translate_message
from studio.services.service import Service

ROOT = Path(__file__).resolve().parents[3]
BASE = ROOT / "assets" / "models" / "en-zh"
GOLDEN = ROOT / "tests" / "golden" / "format-1" / "plugin.zip"
ALLOWED = "a p h3 h4 h5 h6 em strong s code pre ul ol li blockquote hr br table thead tbody tr th td span"


class Elements(HTMLParser):
    """What a browser would make of the HTML: elements with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def harmless(html: str) -> bool:
    for tag, attributes in Elements(html).found:
        if tag not in ALLOWED.split() or set(attributes) - {"href", "target", "rel", "class", "start", "style"}:
            return False
        if not re.match(r"https?://", attributes.get("href") or "https://"):
            return False
        if not re.fullmatch(r"text-align:\w+", attributes.get("style") or "text-align:left"):
            return False
    return True


PIECES = st.sampled_from(
    [
        "<script>", "<img src=x onerror=alert(1)>", "![x](https://e.org/p.png)", "[a](javascript:alert(1))", "](", "![",
        "<a href='", '[b](https://e.org/" onclick="x)', "[c](data:text/html;base64,PHN2Zz4=)", "[r]: javascript:x\n\n[r]",
        "| a | b |\n|:-:|--|\n| 1 | <b> |\n", "`<i>`", "```html\n<svg onload=x>\n```\n", "# Title\n", "<https://e.org>",
        "&lt;script&gt;", "\n\n", "> quote\n", "* item\n", "**", "<!-- ", "-->",
    ]
)  # fmt: skip


@given(st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=12).map("".join))
def test_no_card_can_bring_its_own_html_pictures_or_addresses(text: str) -> None:
    assert harmless(render_markdown(text)), text


def test_markdown_becomes_what_it_means() -> None:
    html = render_markdown("## Data\n\nSee [the page](https://e.org) and [a file](../x.md).\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert "<h4>Data</h4>" in html
    assert '<a href="https://e.org" target="_blank" rel="noopener noreferrer nofollow">the page</a>' in html
    assert "<a>a file</a>" in html
    assert "<td>2</td>" in html
    assert "[logo]" in render_markdown("![logo](https://e.org/logo.png)")


def test_every_bundled_card_is_shown_with_its_licence() -> None:
    corpora = [corpus for corpus in bundled_samples(ROOT / "assets") if corpus.kind != "general"]
    page = sample_cards(corpora)
    assert page.count("licence CC0 1.0") == len(corpora) == 6
    assert page.count('class="tm-card-fold"') == 6
    assert "Load together with Patient information (two domains)" in page
    assert "German to English · 305 pairs" in page
    assert sample_cards([]) == ""


def test_restrictions_stand_out_and_missing_licences_are_named() -> None:
    restricted = parse_card("---\nlicense: cc-by-nc-4.0\n---\n# <Base>\n\nText.\n")
    assert "tm-restricted" in license_line(restricted)
    assert "Not for commercial use." in base_terms(restricted)
    assert "Licence: not stated." in base_terms(ModelCard("x"))
    assert "tm-restricted" not in base_terms(ModelCard("x"))
    assert "<details" not in card_fold(ModelCard("x"), "About")
    assert base_terms(None) == ""


def test_a_licence_is_accepted_once_and_again_when_its_terms_change(service: Service, tmp_path: Path) -> None:
    card = parse_card("---\nlicense: cc-by-nc-4.0\n---\n")
    assert service.catalog.accepted(ModelCard("free", "mit"), tmp_path)
    assert not service.catalog.accepted(card, tmp_path / "base")
    service.catalog.accept(card, tmp_path / "base")
    assert service.catalog.accepted(card, tmp_path / "base")
    assert service.catalog.accepted(card, tmp_path / "x" / ".." / "base")
    assert not service.catalog.accepted(card, tmp_path / "other")
    assert not service.catalog.accepted(parse_card("---\nlicense: cc-by-nc-nd-4.0\n---\n"), tmp_path / "base")


def test_the_base_that_knows_the_languages_is_taken(service: Service) -> None:
    assert service.catalog.base_for(str(BASE), "zh", "en") == str(BASE)
    assert service.catalog.base_for("gone", "zh", "en") == str(BASE)
    with pytest.raises(InputError, match="No base here supports Thai and Hebrew") as refused, speaking("zh"):
        service.catalog.base_for(str(BASE), "th", "he")
    with speaking("zh"):
        assert translate_message(refused.value.message).startswith("这里没有支持泰语和希伯来语的基础模型。")


def test_files_keep_their_domain_labels(service: Service) -> None:
    project = service.create_project("Domains", "zh", "en", str(BASE))
    corpora = {corpus.name: corpus for corpus in service.catalog.samples()}
    files = [*corpora["it-help-en"].files, *corpora["patient-info-en"].files]
    assert "domains" not in service.request(project)
    job = service.add_samples(project, files, {"it-help.txt": "IT help"})
    assert job.arguments["domains"] == ["IT help", ""]
    job = service.label_sample(project, "patient-info.txt", "  health \n care " + "x" * 99)
    assert job.arguments["domains"][1].startswith("health care x")
    assert len(job.arguments["domains"][1]) == 40
    assert service.label_sample(project, "it-help.txt", " ").arguments["domains"][0] == "it-help"
    with pytest.raises(InputError, match="no longer a file of this project"):
        service.label_sample(project, "../x.txt", "a")
    removal = service.remove_sample(project, "it-help.txt")
    assert removal is not None
    assert len(removal.arguments["domains"]) == 1


def test_domains_are_counted_and_can_be_edited() -> None:
    shares = side_cards({"domains": {"IT": 300, "medicine <b>": 100}})
    assert shares.count("<li>") == 2
    assert "75&nbsp;%" in shares
    assert "<b>" not in re.sub(r"<b>\d+</b>", "", shares)
    assert "<li>" not in side_cards({"domains": {"IT": 300}}) + side_cards({"domains": {}})
    file = {"name": "a.txt", "encoding": "utf-8", "lines": 3, "kept": 3, "skipped": {}}
    assert "data-domain" not in files_card({"files": [file]})
    two = files_card({"files": [file, file | {"name": 'b".txt'}]}, "", {"a.txt": 'x" onfocus="y'})
    assert 'value="x&#34; onfocus=&#34;y"' in two
    assert 'value="b&#34;"' in two


def test_what_is_worth_a_look_is_folded_below_its_file() -> None:
    dirty_corpus = next(corpus for corpus in bundled_samples(ROOT / "assets") if corpus.kind == "dirty")
    from engine.corpora import import_corpus

    report = json.loads(json.dumps(import_corpus(dirty_corpus.files, "zh").report.to_mapping()))
    html = files_card(report)
    assert "Imported with warnings <b>43</b>: half-width punctuation 10, another language 9" in html
    assert "3 more reasons" in html
    assert "tags, removed (3)" in html
    assert "强烈推荐" in html
    assert "Too smoky for my taste" in html


def test_a_plugin_shows_its_card_and_the_licence_of_its_base(service: Service, tmp_path: Path) -> None:
    project = service.create_project("Plugins", "en", "zh", str(BASE))
    bundle = tmp_path / "p.zip"
    shutil.copy(GOLDEN, bundle)
    row = service.store.plugins.create(project.id, "Golden", method="memory_adapter", path=str(bundle))
    card = service.plugin_card(row)
    assert card.title == "Golden"
    page = plugin_cards(by_name([row]), {row.id: card_data(row)}, project, service.catalog.base_card(project.base))
    assert "Licence of the base: research and evaluation only." in page
    assert "<td>memory_adapter</td>" in page
    bundle.unlink()
    assert service.plugin_card(row).body == ""
