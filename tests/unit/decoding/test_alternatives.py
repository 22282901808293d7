"""Other translations of a sentence: n-best of the beam, with and without a beginning, with and without a plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.base import BaseModel
from engine.decoding.alternatives import alternatives
from engine.decoding.translate import translate
from engine.errors import InputError
from tests.bases import EN_ZH
from tests.unit.plugins.test_mixed_batch import plugin_for

GERMAN = "Mein Vater ist nach Amerika gegangen, weil es regnete."
ENGLISH = "The rain had not stopped when he opened the door."


@pytest.fixture(scope="module")
def german() -> BaseModel:
    return BaseModel.load(str(EN_ZH.parent / "de-en"), "de", "en", device="cpu")


@pytest.fixture(scope="module")
def chinese() -> BaseModel:
    return BaseModel.load(str(EN_ZH), "en", "zh", device="cpu")


def test_the_translation_comes_first_and_all_are_different(german: BaseModel) -> None:
    result = alternatives(german, GERMAN, count=4)
    assert result.sentences[0] == translate(german, [GERMAN], decoding=german.decoding().replace(beam=4))[0]
    assert 1 < len(result.sentences) <= 4
    assert len(set(result.sentences)) == len(result.sentences)
    assert "My" in [word.text for word in result.words]


def test_a_beginning_is_kept_and_its_last_word_is_whole(german: BaseModel, chinese: BaseModel) -> None:
    result = alternatives(german, GERMAN, prefix="Because it")
    assert result.sentences
    assert all(sentence.startswith("Because it ") for sentence in result.sentences)
    assert "rained" in [word.text for word in result.words]
    begun = alternatives(chinese, ENGLISH, prefix="雨没有停")
    assert begun.sentences
    assert all(sentence.startswith("雨没有停") for sentence in begun.sentences)


@pytest.mark.parametrize("name", ["residual_adapter", "memory_adapter", "by_sentence"])
def test_a_plugin_gives_its_own(chinese: BaseModel, name: str, tmp_path: Path) -> None:
    plugin = plugin_for(chinese, name, 3, tmp_path, size=0.02)
    wide = chinese.decoding().replace(beam=5, guard=False)
    result = alternatives(chinese, ENGLISH, plugin, decoding=wide)
    assert result.sentences[0] == translate(chinese, [ENGLISH], plugin, decoding=wide)[0]
    assert alternatives(chinese, ENGLISH, plugin, strength=0, decoding=wide) == alternatives(chinese, ENGLISH, decoding=wide)


def test_nothing_has_none_and_what_is_too_long_is_refused(german: BaseModel) -> None:
    assert alternatives(german, " \n").sentences == []
    with pytest.raises(InputError, match="longer than the base's maximum length"):
        alternatives(german, "Wort " * 2000)
    with pytest.raises(InputError, match="longer than the base's maximum length"):
        alternatives(german, GERMAN, prefix="word " * 2000)
