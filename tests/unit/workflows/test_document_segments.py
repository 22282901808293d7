"""Tags of a segment whose translation was edited: beside the words that they stood beside."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.corpora.formats.tagged_text import Tag, TaggedText, text_of
from engine.workflows.document_segments import with_text

BOLD: TaggedText = ["A ", Tag("open", 1), "big dog", Tag("close", 1), " ran."]
KINDS: tuple[Literal["open", "close", "alone"], ...] = ("open", "close", "alone")


def shown(parts: TaggedText) -> str:
    return "".join({"open": "[", "close": "]", "alone": "|"}[part.kind] if isinstance(part, Tag) else part for part in parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A big dog ran.", "A [big dog] ran."),
        ("The big dog ran fast.", "The [big dog] ran fast."),
        ("A huge brown dog ran.", "A [huge brown dog] ran."),
        ("A big doggy ran.", "A [big doggy] ran."),
        ("A big dog.", "A [big dog]."),
        ("big", "[big]"),
    ],
)
def test_tags_stay_beside_their_words(text: str, expected: str) -> None:
    assert shown(with_text(BOLD, text)) == expected


def test_what_was_all_in_a_tag_stays_in_it() -> None:
    assert shown(with_text([Tag("open", 1), "雨停了", Tag("close", 1)], "大雨停了。")) == "[大雨停了。]"
    assert shown(with_text(["他打开", Tag("alone", 1), "门"], "他慢慢打开了门")) == "他慢慢打开|了门"


@given(st.lists(st.one_of(st.text("ab 雨。", max_size=6), st.sampled_from(KINDS)), max_size=8), st.text("abc 雨门。", max_size=20))
def test_no_tag_is_lost_or_moved_past_another(parts: list[str], text: str) -> None:
    tagged = [Tag(part, i) if part in KINDS else part for i, part in enumerate(parts)]  # type: ignore[arg-type]
    result = with_text(tagged, text)
    assert text_of(result) == text
    assert [part for part in result if isinstance(part, Tag)] == [part for part in tagged if isinstance(part, Tag)]
