"""A glossary's terms stand in translations, and nothing else changes."""

from __future__ import annotations

import pytest

from engine.base import BaseModel
from engine.corpora.terminology import Term, called_for, usage
from engine.decoding.translate import translate
from tests.bases import EN_ZH

SENTENCES = [
    "The committee will publish its report tomorrow.",
    "My brother bought a new car last week.",
    "We need more water for the garden.",
    "The doctor came to the house in the evening.",
    "It is raining.",
]


def terms(*pairs: tuple[str, str], ways: tuple[str, str] = ("en", "zh")) -> list[Term]:
    return [Term(target, ways[1], source, ways[0]) for source, target in pairs]


@pytest.fixture(scope="module")
def base() -> BaseModel:
    return BaseModel.load(str(EN_ZH), "en", "zh", device="cpu")


def test_terms_that_a_translation_lacks_are_in_it_with_a_glossary(base: BaseModel) -> None:
    glossary = terms(("committee", "理事会"), ("car", "座驾"), ("garden", "园圃"), ("doctor", "郎中"))
    before = translate(base, SENTENCES)
    after = translate(base, SENTENCES, terms=glossary)

    assert usage(glossary, SENTENCES, before)[0] < 4
    assert usage(glossary, SENTENCES, after) == (4, 4)
    assert after[-1] == before[-1]  # no term is called for
    assert all(2 * len(line) < 5 * len(old) for line, old in zip(after, before, strict=True))  # no loops


def test_two_terms_of_one_sentence(base: BaseModel) -> None:
    glossary = terms(("committee", "理事会"), ("report", "呈文"))
    assert all(word in translate(base, SENTENCES[:1], terms=glossary)[0] for word in ("理事会", "呈文"))


def test_a_translation_that_has_its_terms_stays(base: BaseModel) -> None:
    (before,) = translate(base, ["The weather is good today."])
    assert translate(base, ["The weather is good today."], terms=terms(("weather", before[:2]))) == [before]


def test_whole_words_where_the_language_has_spaces() -> None:
    german = BaseModel.load(str(EN_ZH.with_name("de-en")), "de", "en", device="cpu")
    glossary = terms(("Wagen", "automobile"), ("Haus", "domicile"), ways=("de", "en"))
    lines = ["Der Wagen steht vor der Tür.", "Die Farbe des Hauses ist rot."]
    assert usage(glossary, lines, translate(german, lines, terms=glossary)) == (2, 2)


def test_an_acronym_is_not_the_word_of_its_letters() -> None:
    glossary = terms(("IT", "信息技术"), ("aids", "辅助工具"))
    assert [term.target for term in called_for(glossary, "It was IT.")] == ["信息技术"]
    assert called_for(glossary, "it was there.") == []
    assert [term.target for term in called_for(glossary, "AIDS and Aids")] == ["辅助工具"]


def test_a_term_with_capitals_is_wanted_as_it_is_written() -> None:
    apple, car = Term("Apple", "en", "Apfel", "de"), Term("car", "en", "Wagen", "de")
    assert apple.in_target.search("An Apple a day") is not None
    assert apple.in_target.search("AN APPLE A DAY") is not None, "headings are in capitals"
    assert apple.in_target.search("An apple a day") is None
    assert car.in_target.search("Car and driver") is not None, "a sentence begins with a capital"


def test_terms_are_called_for_inflected_and_the_longest_first() -> None:
    glossary = terms(("machine", "机器"), ("washing machine", "洗衣机"), ("art", "艺术"))
    assert [term.target for term in called_for(glossary, "Washing machines are machines.")] == ["洗衣机", "机器"]
    assert called_for(glossary, "Start the party.") == []
