"""The bases that come along: they load, translate both ways into words one can read, and are small."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.base import BaseModel, read_card
from engine.core.model_card import read_card_file
from engine.decoding.translate import translate
from tests.bases import ROOT

MODELS = ROOT / "assets" / "models"
EXAMPLES = [
    ("en-zh", "en", "zh", "I waited for a letter.", "信"),
    ("en-zh", "zh", "en", "他没有来。", "come"),
    ("de-en", "de", "en", "Ich habe gestern meinen alten Lehrer getroffen.", "teacher"),
    ("de-en", "en", "de", "The street was empty in the morning.", "leer"),
]


@pytest.mark.parametrize(("name", "source", "target", "text", "word"), EXAMPLES)
def test_it_translates(name: str, source: str, target: str, text: str, word: str) -> None:
    assert word in translate(BaseModel.load(MODELS / name, source, target, device="cpu"), [text])[0]


@pytest.mark.parametrize("name", ["en-zh", "de-en"])
def test_it_is_small_and_says_what_it_is(name: str) -> None:
    card = read_card(MODELS / name)
    assert set(card["languages"]) == set(name.split("-"))
    assert card["bytes"] <= 50_000_000
    card_file = read_card_file(MODELS / name)
    assert card_file.restricted
    assert "BLEU" in card_file.body


def test_all_assets_together_are_small() -> None:
    assert sum(file.stat().st_size for file in (ROOT / "assets").rglob("*") if file.is_file()) <= 150_000_000


def test_no_pickled_weights() -> None:
    assert not [file for file in MODELS.rglob("*") if Path(file).suffix in (".bin", ".pt", ".pkl")]
