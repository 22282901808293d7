"""The words that a model weighs at a position of a translation."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from engine.base import BaseModel
from engine.decoding.candidates import candidates
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from tests.bases import EN_ZH

SOURCE = "My father has gone to America."
GERMAN = "Mein Vater ist nach Amerika gegangen."


@pytest.fixture(scope="module")
def base() -> BaseModel:
    return BaseModel.load(str(EN_ZH), "en", "zh", device="cpu")


@pytest.fixture(scope="module")
def german() -> BaseModel:
    return BaseModel.load(str(EN_ZH.parent / "de-en"), "de", "en", device="cpu")


def test_the_likeliest_words_come_first_and_are_whole(german: BaseModel) -> None:
    ids = german.encode_target(["My father has gone to America."])[0]
    first = candidates(german, GERMAN, [])
    assert first[0].text == "My"
    assert [word.probability for word in first] == sorted((word.probability for word in first), reverse=True)
    assert sum(word.probability for word in first) <= 1
    assert len({word.text for word in first}) == len(first)
    assert "father" in [word.text for word in candidates(german, GERMAN, ids[:1])]
    assert len(candidates(german, GERMAN, ids[:1], count=2)) <= 2


@pytest.mark.slow
def test_probabilities_are_those_of_scoring(german: BaseModel) -> None:
    ids = german.encode_target(["My"])[0]
    after = {word.text: word.probability for word in candidates(german, GERMAN, ids[:1], count=1000)}
    begun = {word.text: word.probability for word in candidates(german, GERMAN, [])}
    total, _ = score(german, [(GERMAN, "My")])[0]
    together = math.log(begun["My"]) + math.log(after[""])
    assert total - 1e-3 < together <= 0, "at least this spelling's; other tokens may begin the same word"


def test_the_end_of_the_sentence_is_a_candidate(base: BaseModel) -> None:
    text = translate(base, [SOURCE])[0]
    ids = base.encode_target([text])[0]
    assert candidates(base, SOURCE, ids[:-1])[0].text == ""
    assert all(word.text for word in candidates(base, SOURCE, [])), "a lone space is no word"


def test_a_plugin_changes_them_and_at_strength_0_nothing(base: BaseModel, tmp_path: Path) -> None:
    from tests.unit.plugins.test_mixed_batch import plugin_for

    plugin = plugin_for(base, "residual_adapter", 3, tmp_path)
    alone = candidates(base, SOURCE, [])
    assert candidates(base, SOURCE, [], plugin) != alone
    assert candidates(base, SOURCE, [], plugin, strength=0.0) == alone
    assert candidates(base, SOURCE, []) == alone
