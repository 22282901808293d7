"""Colours that can be read, charts that say what the data say, a style sheet that fetches nothing."""

from __future__ import annotations

import html
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from studio.components.domain_figures import corpus_card
from studio.components.import_report import side_cards
from studio.components.phrase_map import map_figure
from studio.components.phrase_table import detail_card
from studio.components.plotly import domain_colours
from studio.components.plots import loss_curve
from studio.components.static_routes import add_static_routes
from studio.components.theme import (
    DOMAINS,
    FONTS,
    HAN,
    LATIN,
    ROLES,
    STATIC,
    build_theme,
    layer_colours,
    page_style,
    plain_style,
    style_sheet,
)


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = [int(colour[position : position + 2], 16) / 255 for position in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        ("ink", "paper"),
        ("ink", "card"),
        ("ink", "change"),
        ("ink-2", "paper"),
        ("ink-2", "card"),
        ("ink-2", "tag"),
        ("accent", "card"),
        ("accent", "accent-soft"),
        ("replaced-ink", "replaced"),
        ("done-ink", "done"),
    ],
)
def test_text_can_be_read(ink: str, ground: str, mode: int) -> None:
    assert contrast(ROLES[ink][mode], ROLES[ground][mode]) >= 4.3


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_filled_button_can_be_read(mode: int) -> None:
    assert contrast("#FFFFFF", ROLES["accent-fill"][mode]) >= 4.5


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_an_empty_tick_box_and_the_edge_of_every_layer_can_be_seen(mode: int) -> None:
    assert build_theme().checkbox_border_color == build_theme().checkbox_border_color_dark == "var(--tm-ink-2)"
    assert ".tm-hists rect:not(.tm-hit) { stroke: var(--tm-ink-2);" in style_sheet()
    assert contrast(ROLES["ink-2"][mode], ROLES["card"][mode]) >= 3.0


def test_nothing_is_fetched() -> None:
    theme = build_theme()
    everything = style_sheet() + theme._get_theme_css() + "".join(map(str, theme._stylesheets))
    # Gradio draws its check marks with data: addresses, whose SVG names its namespace.
    everything = re.sub(r"""url\((["'])data:.*?\1\)""", "", everything)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", everything, re.IGNORECASE)


def test_the_picture_of_the_first_page_is_dark_on_dark_pages() -> None:
    (inverted,) = re.findall(r"\.dark \.tm-welcome img \{ filter: invert\(([\d.]+)\)", style_sheet())
    white = f"{round(255 * (1 - float(inverted))):02X}"
    assert contrast(f"#{3 * white}", ROLES["card"][1]) < 1.1, "its ground is that of cards"


def test_latin_letters_and_quotes_take_a_latin_font_except_in_chinese() -> None:
    """A Chinese font draws the quotes of an English text as wide as a character."""
    assert FONTS.index(HAN[0]) > max(map(FONTS.index, LATIN))
    for sheet in (style_sheet(), plain_style()):
        chinese = re.search(r":lang\(zh\) \{--font:([^;]*)", sheet)
        other = re.search(r"\[lang\]:not\(:lang\(zh\)\) \{--font:([^;]*)", sheet)
        assert chinese
        assert chinese[1].startswith(f'"{HAN[0]}"')
        assert other
        assert other[1].startswith(LATIN[0])
    for name in ("door.css", "rating.css"):  # pages of their own, which are not to name fonts themselves
        assert not re.search(r"font(?:-family)?:[^;]*(?:Inter|sans-serif)", (STATIC / name).read_text(encoding="utf-8"))


def test_every_role_that_the_rules_use_is_defined() -> None:
    used = set(re.findall(r"var\(--tm-([\w-]+)\)", style_sheet()))
    assert used <= set(ROLES)


def test_a_browser_loads_the_style_sheet_once_and_no_step_carries_it() -> None:
    address, sheet = page_style()
    rules = sheet.decode()
    assert rules.count(".tm-hists rect:not(.tm-hit)") == 2, "alone, and with more weight than a component's"
    assert "\n.dark & .tm-welcome img" in rules, "the dark rules hold within pages too"
    app = FastAPI()
    add_static_routes(app)
    client = TestClient(app)
    for packing, kind in (("identity", None), ("gzip", "gzip")):
        answer = client.get(address, headers={"Accept-Encoding": packing})
        assert answer.text == rules
        assert answer.headers.get("content-encoding") == kind
        assert answer.headers["content-type"].startswith("text/css")
        assert "immutable" in answer.headers["cache-control"]


def test_layer_colours_go_from_light_to_dark() -> None:
    for count in (2, 4, 6, 12, 24):
        shades = [luminance(colour) for colour in layer_colours(count)]
        assert len(shades) == count
        assert shades == sorted(shades, reverse=True)
    assert layer_colours(1) == [layer_colours(6)[-1]]


def test_loss_curve_has_both_losses_and_marks_the_best() -> None:
    rows = [{"step": step, "loss": 9.0, "nll": 5 - step / 100} for step in range(0, 100, 10)]
    rows += [{"step": 50, "valid_loss": 4.7}, {"step": 80, "valid_loss": 4.2}, {"step": 100, "valid_loss": 4.4}]
    chart = loss_curve(rows, 200)
    names = {line.name: line for line in chart.data}
    assert list(names["training loss"].x) == list(range(0, 100, 10))
    assert list(names["validation loss"].y) == [4.7, 4.2, 4.4]
    assert list(names["best checkpoint"].x) == [80]
    assert tuple(chart.layout.xaxis.range) == (0, 200)
    assert [len(line.x) for line in loss_curve([]).data] == [0, 0]


def test_a_domain_has_the_same_colour_on_all_pages() -> None:
    """Samples shows domains by their number of sentences, Phrases, Proportions and the map each in an order of their own."""
    order = ["law", "", "IT", "general"]
    law, unnamed, it, general = domain_colours(order)
    assert len({law, unnamed, it, general}) == 4
    assert domain_colours(["general", "IT", "elsewhere", "samples", "law"], order) == [general, it, DOMAINS[3], unnamed, law]
    samples = side_cards({"domains": {"law": 20, "": 5, "IT": 300, "general": 1}})
    assert re.findall(r"<li><i style=\"background:(.*?)\"></i><span>(.*?)</span>", samples) == [
        (it, "IT"), (law, "law"), (unnamed, "no label"), (general, "general"),
    ]  # fmt: skip
    row: Any = SimpleNamespace(
        text="dose", source="", length=1, count=3, layer=0, ratio=None, excluded=False, own=1.0, words=9, general=0.0,
        general_words=9, low=0.0, high=0.0, per_domain=(("IT", 2, 9), ("law", 1, 9)),
    )  # fmt: skip
    assert re.findall(r"<li><i style=\"background:(.*?)\"", detail_card(row, [], "en", order)) == [it, law]
    proportions: Any = {"corpus": {}, "domains": ["IT", "law"]}
    assert re.findall(r"background:(.*?)\"", corpus_card(proportions, "decoder", 0, order)) == [it, law]
    project: Any = SimpleNamespace(id=1)
    (data,) = re.findall(r'data-figure="(.*?)"', map_figure(project, 1, 6, order))
    assert json.loads(html.unescape(data))["domain_colours"]["IT"] == it
