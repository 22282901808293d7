"""Sources that were written for earlier samples are not written again, and never taken from another model's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.core.progress import Progress
from engine.core.step_cache import StepCache
from engine.corpora import Segment
from engine.workflows.customize.steps import make_pairs

SAMPLES = [f"第{n}封信收到了，他什么也不曾说。" for n in range(6)]


class Stand:
    """A stand-in for a loaded base."""

    target = "zh"

    def __init__(self, name: str) -> None:
        self.name = name

    def fingerprint(self) -> str:
        return self.name


class Direction:
    def __init__(self, forward: str = "forward", backward: str = "backward") -> None:
        self.forward, self.backward = Stand(forward), Stand(backward)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The texts that were given to the reverse model, call by call."""
    calls: list[list[str]] = []

    def write_back(base: Any, texts: Sequence[str], partial: Path, progress: Progress) -> list[str]:
        calls.append(list(texts))
        return [f"{base.name}: {text}" for text in texts]

    monkeypatch.setattr("engine.decoding.back_translation.write_back", write_back)
    return calls


def pairs(folder: Path, texts: Sequence[str], pair: Any = None, *, shared: bool = False) -> list[tuple[str, str]]:
    """Sentence pairs of these samples, the last two held out, by a run that begins with what the folder holds."""
    cache = StepCache(folder, shared=shared)
    cache.mark_done("samples", "+".join(texts))
    segments = [Segment(text) for text in texts]
    parts = make_pairs(segments[:-2], segments[-2:], pair or Direction(), None, cache, Progress())
    return [(row.source, row.target) for row in [*parts["train"], *parts["valid"]]]


def test_a_damaged_file_of_earlier_sources_is_written_again(tmp_path: Path, asked: list[list[str]]) -> None:
    pairs(tmp_path, SAMPLES[:5])
    file = tmp_path / "pairs.jsonl"
    file.write_text(file.read_text(encoding="utf-8")[:-10], encoding="utf-8")
    assert pairs(tmp_path, SAMPLES) == [(f"backward: {text}", text) for text in SAMPLES]
    assert asked == [SAMPLES[:5], SAMPLES]


def test_one_sentence_more_is_one_sentence_to_translate(tmp_path: Path, asked: list[list[str]]) -> None:
    pairs(tmp_path, SAMPLES[:5])
    assert pairs(tmp_path, SAMPLES) == [(f"backward: {text}", text) for text in SAMPLES]
    assert asked == [SAMPLES[:5], SAMPLES[5:]]
    assert not (tmp_path / "sources.jsonl").exists()


def test_fewer_sentences_are_none_to_translate(tmp_path: Path, asked: list[list[str]]) -> None:
    pairs(tmp_path, SAMPLES)
    assert [target for _, target in pairs(tmp_path, SAMPLES[1:])] == SAMPLES[1:]
    assert asked[1:] == [[]]


def test_another_reverse_model_writes_its_own(tmp_path: Path, asked: list[list[str]]) -> None:
    pairs(tmp_path, SAMPLES)
    other = Direction(backward="other")
    assert pairs(tmp_path, SAMPLES[1:], other) == [(f"other: {text}", text) for text in SAMPLES[1:]]
    assert pairs(tmp_path, SAMPLES) == [(f"backward: {text}", text) for text in SAMPLES]
    assert asked == [SAMPLES, SAMPLES[1:], SAMPLES]


def test_another_forward_model_takes_them_over(tmp_path: Path, asked: list[list[str]]) -> None:
    first = pairs(tmp_path, SAMPLES, shared=True)
    assert pairs(tmp_path, SAMPLES, Direction(forward="other"), shared=True) == first
    assert asked == [SAMPLES, []]


def test_a_run_that_ended_before_its_pairs_leaves_no_wrong_sources(
    tmp_path: Path, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs(tmp_path, SAMPLES)
    with monkeypatch.context() as patch:
        patch.setattr("engine.workflows.customize.steps.write_pairs", _stopped_after_sources)
        with pytest.raises(KeyboardInterrupt):
            pairs(tmp_path, SAMPLES[1:], Direction(backward="other"))
    again = pairs(tmp_path, SAMPLES[2:], Direction(backward="other"))
    assert again == [(f"other: {text}", text) for text in SAMPLES[2:]]


def _stopped_after_sources(train: Any, valid: Any, pair: Any, cache: StepCache, progress: Progress) -> Any:
    from engine.workflows.customize.steps import write_sources

    write_sources([*train, *valid], pair, cache, progress)
    raise KeyboardInterrupt
