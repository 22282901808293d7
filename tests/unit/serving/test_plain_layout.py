"""Texts keep their lines and their blank space, whatever is translated within them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.progress import Progress
from engine.corpora.formats.documents.model import Result
from engine.corpora.formats.plain_layout import SPLITS, PlainTextLayout
from engine.serving.units.translate import TranslationCache, translate_units
from tests.translators import Words, identity, shout

TEXT = "The rain stopped. He said nothing.\n\n  Nobody came, Mr. Smith.\r\nThe end \t\n"


def through(texts: list[str], translator: Words, split: str = "1") -> list[str]:
    layout = PlainTextLayout(texts, split)
    return layout.join(translate_units(layout.units, translator, TranslationCache(None, ""), Progress()))


def test_lines_are_translated_and_the_rest_stays() -> None:
    layout = PlainTextLayout([TEXT, "", " \n "])
    assert [unit.text for unit in layout.units] == ["The rain stopped. He said nothing.", "Nobody came, Mr. Smith.", "The end"]
    joined = layout.join([Result([text]) for text in ("雨停了。他什么也没说。", "没有人来。", "完")])
    assert joined == ["雨停了。他什么也没说。\n\n  没有人来。\r\n完 \t\n", "", " \n "]
    assert through(["One. Two."], shout()) == ["ONE. TWO."]


def test_the_ways_of_splitting() -> None:
    text = "One is here. Two\nis there."

    def asked(split: str) -> list[str]:
        translator = shout()
        through([text], translator, split)
        return [sentence for part in translator.asked for sentence in part]

    assert asked("1") == ["One is here.", "Two", "is there."]
    assert asked("0") == ["One is here. Two", "is there."]
    assert asked("nonewlines") == ["One is here.", "Two is there."]


def test_placeholders_come_through() -> None:
    assert through(["Write to me@example.org about {name}, %s."], shout()) == ["WRITE TO me@example.org ABOUT {name}, %s."]


@pytest.mark.parametrize(
    ("text", "shouted"),
    [
        ('Click <a href="x.html">here</a> & wait.', 'CLICK <a href="x.html">HERE</a> & WAIT.'),
        ("We <b>never</b> sleep.<br>Really.", "WE <b>NEVER</b> SLEEP.<br>REALLY."),
        ('Run <code class="sh">make test</code> now.', 'RUN <code class="sh">make test</code> NOW.'),
        ("Is a <b and b> c? Press <Enter>.", "IS A <B AND B> C? PRESS <ENTER>."),
    ],
)
def test_written_tags_come_through_as_they_are(text: str, shouted: str) -> None:
    assert through([text], shout()) == [shouted]


@pytest.mark.parametrize("split", SPLITS)
@given(texts=st.lists(st.text(alphabet=st.sampled_from("aB.。! \n\r\t雨「」\u2028'"), max_size=60), max_size=4))
def test_nothing_but_blank_space_is_lost(split: str, texts: list[str]) -> None:
    joined = through(texts, identity(), split)
    assert ["".join(text.split()) for text in joined] == ["".join(text.split()) for text in texts]
    if split != "nonewlines":
        assert [text.count("\n") for text in joined] == [text.count("\n") for text in texts]
