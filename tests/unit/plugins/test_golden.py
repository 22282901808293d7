"""A bundle made by an earlier version loads and translates as it did then, to the letter (see tests/golden/make.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.base import BaseModel
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.plugins import Plugin, verify_bundle
from tests.bases import SENTENCES

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "format-1"


@pytest.fixture(scope="module")
def expected() -> dict:
    return json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def golden() -> BaseModel:
    return BaseModel.load(GOLDEN / "base", "en", "zh", device="cpu")


def test_the_base_has_the_fingerprint_it_had(golden: BaseModel, expected: dict) -> None:
    """Were it another, every plugin out there would be refused."""
    assert golden.fingerprint() == expected["fingerprint"]


def test_the_plugin_translates_as_it_did(golden: BaseModel, expected: dict, tmp_path: Path) -> None:
    assert verify_bundle(GOLDEN / "plugin.zip")["format_version"] == 1
    plugin = Plugin.load(GOLDEN / "plugin.zip", golden, cache=tmp_path)
    rows = expected["translations"]
    sources = [row["source"] for row in rows]
    assert translate(golden, sources) == [row["base"] for row in rows]
    assert translate(golden, sources, plugin) == [row["plugin"] for row in rows]
    assert translate(golden, sources, plugin, strength=0.6) == [row["strength_0.6"] for row in rows]
    assert any(row["base"] != row["plugin"] for row in rows), "the plugin does something"
    scores = [score for score, _ in score(golden, SENTENCES, plugin)]
    assert scores == pytest.approx(expected["scores"], abs=0.01)


@pytest.mark.parametrize("version", [2, 3])
def test_the_plugins_of_later_formats_translate_as_they_did(
    golden: BaseModel, expected: dict, tmp_path: Path, version: int
) -> None:
    folder = GOLDEN.parent / f"format-{version}"
    assert verify_bundle(folder / "plugin.zip")["format_version"] == version
    plugin = Plugin.load(folder / "plugin.zip", golden, cache=tmp_path)
    data = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    sources = [row["source"] for row in data["translations"]]
    assert translate(golden, sources, plugin) == [row["plugin"] for row in data["translations"]]
    assert [score for score, _ in score(golden, SENTENCES, plugin)] == pytest.approx(data["scores"], abs=0.01)
    assert data["scores"] != expected["scores"], "it is another plugin than the one inside"


def test_the_plugin_tells_what_it_reads(golden: BaseModel, tmp_path: Path) -> None:
    plugin = Plugin.load(GOLDEN / "plugin.zip", golden, cache=tmp_path)
    rows = plugin.attributions(golden, "The rain stopped.", "雨停了。", top=2)
    assert {(row["layer"], row["place"]) for row in rows} == {(i, p) for i in (0, 1) for p in ("self_attn", "encoder_attn")}
    for row in rows:
        assert len(row["items"]) == 2
        assert all(item["text"] and 0 <= item["weight"] <= 1 for item in row["items"])
