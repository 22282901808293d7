"""General text that is replayed: the base translates it once, whatever the samples are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.workflows.customize import replay
from engine.workflows.customize.replay import general_translations


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The texts that the base was given, call by call; it has no translation for an empty one."""
    requests: list[list[str]] = []

    def back_translate(base: Any, texts: Sequence[str], *, progress: Progress) -> list[str]:
        requests.append(list(texts))
        return [text and f"{base.name}: {text}" for text in texts]

    monkeypatch.setattr("engine.decoding.greedy_search.back_translate", back_translate)
    monkeypatch.setattr(replay, "general_sources", lambda run: run.general)
    return requests


def run(home: Path, base: str, general: Sequence[str]) -> Any:
    forward = SimpleNamespace(name=base, source="en", target="zh", fingerprint=lambda: base)
    settings = Settings(home=str(home))
    return SimpleNamespace(pair=SimpleNamespace(forward=forward), settings=settings, progress=Progress(), general=general)


def test_general_text_is_translated_once_for_a_base(tmp_path: Path, calls: list[list[str]]) -> None:
    first = general_translations(run(tmp_path, "small", ["The rain.", "", "A letter."]))
    assert first == [("The rain.", "small: The rain."), ("A letter.", "small: A letter.")]
    assert general_translations(run(tmp_path, "small", ["The rain.", "", "A letter."])) == first
    assert len(calls) == 1


def test_another_base_and_other_sentences_are_translated_anew(tmp_path: Path, calls: list[list[str]]) -> None:
    general_translations(run(tmp_path, "small", ["The rain."]))
    assert general_translations(run(tmp_path, "large", ["The rain."])) == [("The rain.", "large: The rain.")]
    general_translations(run(tmp_path, "small", ["The rain.", "A letter."]))
    assert [len(texts) for texts in calls] == [1, 1, 2]
