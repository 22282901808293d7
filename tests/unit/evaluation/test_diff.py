"""The differences of two translations: complete, and in runs that a person can read."""

from __future__ import annotations

import difflib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.evaluation import diff, word_diff

TEXT = st.text(max_size=60) | st.text(st.sampled_from("the moon's down, 天黑了。好 e\u0301’-\n"), max_size=60)
LANGUAGES = st.sampled_from(["en", "zh", "ja", "th", "de", "hi"])


@given(TEXT, TEXT, LANGUAGES)
def test_both_texts_come_back_to_the_letter(vanilla: str, customized: str, language: str) -> None:
    ops = word_diff(vanilla, customized, language)
    assert "".join(a for _, a, _ in ops) == vanilla
    assert "".join(b for _, _, b in ops) == customized
    for op, a, b in ops:
        assert {"equal": a == b != "", "replace": bool(a and b), "delete": a != b == "", "insert": b != a == ""}[op]
    # Neighbours are never of one kind: runs are merged.
    assert all((before[0] == "equal") != (after[0] == "equal") for before, after in pairwise(ops))


@given(TEXT, LANGUAGES)
def test_equal_texts_have_no_difference(text: str, language: str) -> None:
    assert word_diff(text, text, language) == ([("equal", text, text)] if text else [])


@pytest.mark.parametrize(
    ("language", "vanilla", "customized", "changes"),
    [
        ("en", "The moon has gone down.", "The moon is down.", [("replace", "has gone", "is")]),
        ("en", "I do not know.", "I know not.", [("replace", "do", "know"), ("delete", " know", "")]),
        ("en", "He is here, she is there.", "He is here.", [("delete", ", she is there", "")]),
        ("en", "It's mine", "It isn't mine", [("replace", "It's", "It isn't")]),
        ("en", "one old thing", "two new thing", [("replace", "one old", "two new")]),
        ("zh", "他终于走了过来。", "他便走了过来。", [("replace", "终于", "便")]),
        ("zh", "他有10本Python书。", "他有12本Python书。", [("replace", "10", "12")]),
        ("zh", "甲乙丙丁", "子乙丑丁", [("replace", "甲乙丙", "子乙丑")]),
        ("de", "Er ging nach Hause", "Er ging heim", [("replace", "nach Hause", "heim")]),
        ("hi", "वह घर गया", "वह स्कूल गया", [("replace", "घर", "स्कूल")]),
    ],
)
def test_runs_read_well(language: str, vanilla: str, customized: str, changes: list[tuple[str, str, str]]) -> None:
    assert [item for item in word_diff(vanilla, customized, language) if item[0] != "equal"] == changes


def test_long_texts_differ_as_a_whole_and_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = "一二三" * 4000, "三二一四" * 4000
    assert len(left) * len(right) > diff.WORK
    monkeypatch.delattr(difflib, "SequenceMatcher")
    assert word_diff(left, right, "zh") == [("replace", left, right)]
