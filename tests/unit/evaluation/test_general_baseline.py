"""What plugins are compared with on general text: the base alone, translated once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.evaluation.general_text import general_pairs
from engine.workflows.compare.evaluate import EvalContext, measure_general
from engine.workflows.compare.systems import SystemTranslator, systems_of
from engine.workflows.customize.evaluate import general_baseline
from tests.bases import tiny_base, tiny_pair


def test_general_text_by_the_base_alone_is_translated_once_for_all_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, calls = tiny_base(), list[Sequence[str]]()

    def translated(base: Any, texts: Sequence[str], **more: Any) -> list[str]:
        calls.append(texts)
        return [f"{text}!" for text in texts]

    monkeypatch.setattr("engine.decoding.translate.translate", translated)
    settings, texts = Settings(home=str(tmp_path)), ["One.", "Two."]
    assert general_baseline(base, texts, settings, Progress()) == ["One.!", "Two.!"]
    assert general_baseline(base, texts, settings, Progress()) == ["One.!", "Two.!"]
    assert calls == [texts]
    general_baseline(base, ["Three."], settings, Progress())
    assert len(calls) == 2, "other sentences are other work"


def test_plugins_and_comparisons_are_measured_on_the_same_general_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.evaluation.general_text.MOST", 8)
    pair, settings = tiny_pair(), Settings(home=str(tmp_path / "home"))
    pairs = general_pairs(pair.backward, settings)
    monkeypatch.setattr("engine.decoding.greedy_search.back_translate", None)  # what a base has is not made again
    assert pairs == general_pairs(pair.backward, settings)
    excluded = [pairs[0][1]]
    sources = [source for source, _ in general_pairs(pair.backward, settings, exclude=excluded)]
    assert len(sources) == len(pairs) - 1
    translations = general_baseline(pair.forward, sources, settings, Progress())

    ground = EvalContext(tmp_path, settings, texts=excluded, backward=pair.backward)
    monkeypatch.setattr(SystemTranslator, "__call__", None)  # nor what the base makes of it
    result = measure_general(
        systems_of([]), SystemTranslator(pair.forward, lambda system: pytest.fail("there is no plugin")), ground, Progress()
    )
    assert result is not None
    assert result["lines"] == len(translations) == len(sources)
