"""WebVTT: entities are read and written, every sort of tag is one, and times of words stand beside words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.translators import Words, identity, shout
from tests.unit.workflows.test_documents import through

VTT = "WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n"


@pytest.mark.parametrize(
    ("text", "asked", "expected"),
    [
        ("Use the &lt;b&gt; tag, Tom &amp; Jerry.", ["Use the <b> tag, Tom & Jerry."], "USE THE &lt;B&gt; TAG, TOM &amp; JERRY."),
        ("<v Mary Ann>Hello there", ["Hello there"], "<v Mary Ann>HELLO THERE"),
        ("The <c.yellow>dog</c> sleeps <00:01.500>now", ["The dog sleeps now"], "THE <c.yellow>DOG</c> SLEEPS <00:01.500>NOW"),
    ],
)
def test_what_a_cue_may_hold(tmp_path: Path, text: str, asked: list[str], expected: str) -> None:
    translator = shout()
    out, _ = through(tmp_path, "a.vtt", VTT.format(text), translator)
    assert [sentence for batch in translator.asked for sentence in batch] == asked
    assert out.decode() == VTT.format(expected)
    out, _ = through(tmp_path, "b.vtt", VTT.format(text), identity())
    assert out.decode() == VTT.format(text)


def test_chinese_has_no_spaces_beside_its_tags(tmp_path: Path) -> None:
    translator = Words(lambda words: [(1, "狗"), (2, "睡觉"), (4, "头盔。")], target="zh", joint="")
    text = "The <c.yellow>dog</c> sleeps <00:01.500>a helmet."
    out, _ = through(tmp_path, "a.vtt", VTT.format(text), translator)
    assert out.decode() == VTT.format("<c.yellow>狗</c>睡觉<00:01.500>头盔。")


def test_entities_of_other_subtitles_are_text(tmp_path: Path) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nTom &amp; Jerry < 3\n"
    out, _ = through(tmp_path, "a.srt", text, shout())
    assert out.decode() == text.replace("Tom &amp; Jerry", "TOM &AMP; JERRY")


def test_no_line_ends_in_an_entity_or_a_tag(tmp_path: Path) -> None:
    translator = Words(lambda words: [(0, "甲&乙<丙>" * 6)], target="zh", joint="")
    out, _ = through(tmp_path, "a.vtt", VTT.format("Some words"), translator, subtitle_width=12)
    lines = out.decode().splitlines()[3:]
    assert len(lines) > 3
    assert "".join(lines) == "甲&amp;乙&lt;丙&gt;" * 6
    assert not any(line.count("&") != line.count(";") for line in lines)
