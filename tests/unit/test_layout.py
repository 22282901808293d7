"""Texts keep their lines and their blank space, whatever is translated within them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.layout import SPLITS, Layout

TEXT = "The rain stopped. He said nothing.\n\n  Nobody came, Mr. Smith.\r\nThe end \t\n"


def test_pieces_are_sentences_and_the_rest_stays() -> None:
    layout = Layout([TEXT, "", " \n "], "en", "zh")
    assert layout.pieces == ["The rain stopped.", "He said nothing.", "Nobody came, Mr. Smith.", "The end"]
    joined = layout.join(["雨停了。", "他什么也没说。", "没有人来。", "完"])
    assert joined == ["雨停了。他什么也没说。\n\n  没有人来。\r\n完 \t\n", "", " \n "]
    assert Layout(["One. Two."], "en", "de").join(["Eins.", "Zwei."]) == ["Eins. Zwei."]


def test_the_ways_of_splitting() -> None:
    text = "One is here. Two\nis there."
    assert Layout([text], "en", "zh", "0").pieces == ["One is here. Two", "is there."]
    assert Layout([text], "en", "zh", "nonewlines").pieces == ["One is here.", "Two is there."]


@pytest.mark.parametrize("split", SPLITS)
@given(texts=st.lists(st.text(alphabet=st.sampled_from("aB.。! \n\r\t雨「」\u2028'"), max_size=60), max_size=4))
def test_nothing_but_blank_space_is_lost(split: str, texts: list[str]) -> None:
    layout = Layout(texts, "en", "de", split)
    assert all(piece.strip() == piece and piece for piece in layout.pieces)
    joined = layout.join(layout.pieces)
    assert ["".join(text.split()) for text in joined] == ["".join(text.split()) for text in texts]
    if split != "nonewlines":
        assert [text.count("\n") for text in joined] == [text.count("\n") for text in texts]
