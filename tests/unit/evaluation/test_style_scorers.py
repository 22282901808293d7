"""The style's own scorers: probabilities that are some, figures that tell styles apart, files that come back as they were."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.corpora.general_text import general_sentences
from engine.errors import CorpusError, InputError
from engine.evaluation import bootstrap as resampling
from engine.evaluation import evaluate
from engine.evaluation.classifier import StyleClassifier
from engine.evaluation.evaluate import ExtraMetrics
from engine.evaluation.ngrams import END, Ngrams
from engine.evaluation.perplexity import FILE, StyleLanguageModel
from engine.evaluation.style_scorers import StyleScorers, learn_style, load_style
from tests.properties import few

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "assets" / "samples"


def lines_of(name: str) -> list[str]:
    return [line for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines() if line.strip()]


ZH, GENERAL_ZH = lines_of("literary-zh/literary-zh.txt"), lines_of("general-zh/general-zh.txt")
EN, GENERAL_EN = lines_of("elizabethan-en/elizabethan-en.txt"), lines_of("general-en/general-en.txt")


@given(st.lists(st.lists(st.integers(2, 6), max_size=12), min_size=1, max_size=12), st.integers(1, 4))
@example([[]], 3)
@few
def test_after_any_context_the_chances_of_all_tokens_sum_to_one(sentences: list[list[int]], order: int) -> None:
    size = 7
    model = Ngrams.count(sentences, size, order)
    for context in ([], [2], [3, 2], [6, 6, 6]):
        # The end's chance closes a sentence; another token's is what the sentence costs more than its context does.
        before = model.surprise([context])[0]
        end = before - _cost(model, context)
        others = [_cost(model, [*context, token]) - _cost(model, context) for token in range(size) if token != END]
        total = math.exp(-end) + sum(math.exp(-value) for value in others)
        assert total == pytest.approx(1.0, abs=1e-4)


def _cost(model: Ngrams, tokens: list[int]) -> float:
    """What the tokens cost without an end: nothing is predicted after them."""
    from engine.evaluation import ngrams

    original = ngrams.joined

    def open_ended(sentences: Any, start: int) -> Any:
        flat, depth = original(sentences, start)
        return flat[:-1], depth[:-1]

    ngrams.joined = open_ended
    try:
        return model.surprise([tokens])[0]
    finally:
        ngrams.joined = original


@pytest.mark.parametrize(("style", "general", "language"), [(ZH, GENERAL_ZH, "zh"), (EN, GENERAL_EN, "en")])
def test_the_styles_own_sentences_surprise_less_than_general_text(
    style: list[str], general: list[str], language: str, tmp_path: Path
) -> None:
    model = StyleLanguageModel.learn(style[40:], language)
    assert model.perplexity(style[:40]) < 0.8 * model.perplexity(general)
    assert model.unit == ("character" if language == "zh" else "word")
    scrambled = ["".join(reversed(line)) for line in style[:40]]
    assert model.perplexity(style[:40]) < 0.5 * model.perplexity(scrambled)
    model.save(tmp_path)
    again = StyleLanguageModel.load(tmp_path)
    assert again.score(general) == model.score(general)
    assert (again.signature, again.letters) == (model.signature, model.letters)
    assert model.score(["", "  "])[0] == model.score(["", "  "])[1]


def test_a_language_model_needs_sentences_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="needs at least 20 different sentences; there are 2"):
        StyleLanguageModel.learn(["雨停了。"] * 50 + ["他来了。"], "zh")
    (tmp_path / FILE).write_bytes(b"not safetensors")
    with pytest.raises(InputError, match="not a language model of this version"):
        StyleLanguageModel.load(tmp_path)


def test_blocks_draw_what_one_draw_would(monkeypatch: pytest.MonkeyPatch) -> None:
    indices = np.concatenate(list(resampling.index_blocks(37, 120, 5)))
    monkeypatch.setattr(resampling, "BLOCK", 37 * 7)
    parts = list(resampling.index_blocks(37, 120, 5))
    assert len(parts) == 18
    assert (np.concatenate(parts) == indices).all()
    assert (indices == np.random.default_rng(5).choice(37, size=(120, 37), replace=True)).all()


@pytest.fixture(scope="module")
def base() -> Any:
    from engine.base import BaseModel

    return BaseModel.load(ROOT / "assets" / "models" / "en-zh", "en", "zh", device="cpu")


@pytest.fixture(scope="module")
def quick() -> Any:
    """The real scorers with less to learn, so that the tests take seconds."""
    from engine.evaluation import classifier
    from engine.evaluation import style_scorers as style

    patch = pytest.MonkeyPatch()
    patch.setattr(classifier, "EPOCHS", 5)
    patch.setattr(classifier, "FOLDS", 2)
    patch.setattr(classifier, "MOST", 250)
    patch.setattr(style, "REWORDED", 60)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def scorers(base: Any, quick: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[StyleScorers, Path]:
    folder = tmp_path_factory.mktemp("style")
    backward = base.for_direction("zh", "en")
    return learn_style(ZH[60:], base, folder, ROOT / "assets", backward=backward), folder


@pytest.mark.slow
def test_the_classifier_knows_the_style_and_says_how_sure_it_can_be(scorers: tuple[StyleScorers, Path]) -> None:
    result, _ = scorers
    assert result.classifier is not None
    accuracy = result.classifier.accuracy
    assert accuracy.all > 80
    assert accuracy.general is not None
    assert accuracy.reworded is not None
    styled, plain = result.classifier.score(ZH[:60]), result.classifier.score(GENERAL_ZH[:60])
    assert sum(value > 0.5 for value in styled) > 45
    assert sum(styled) > 2 * sum(plain)
    assert result.classifier.score([""]) == [0.0]


def test_scorers_are_learnt_once_and_come_back_the_same(
    scorers: tuple[StyleScorers, Path], base: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, folder = scorers
    monkeypatch.setattr(StyleClassifier, "learn", lambda *args, **more: pytest.fail("learnt again"))
    again = learn_style(ZH[60:], base, folder, ROOT / "assets")
    assert again.to_mapping() == result.to_mapping()
    assert again.classifier is not None
    assert result.classifier is not None
    assert again.classifier.score(ZH[:20]) == result.classifier.score(ZH[:20])
    assert load_style(ZH, base, folder) is None, "other samples, other scorers"
    assert all(file.suffix in (".safetensors", ".json") for file in folder.iterdir())
    assert load_style(ZH[60:], base.for_direction("zh", "en"), folder) is None


def test_an_evaluation_by_the_style_alone_has_intervals_and_p(scorers: tuple[StyleScorers, Path]) -> None:
    result, _ = scorers
    systems = {"vanilla": GENERAL_ZH[:50], "customized": ZH[:50]}
    report = evaluate(systems, None, language="zh", baseline="vanilla", samples=200, further=ExtraMetrics(style=result))
    plain, customized = report["vanilla"], report["customized"]
    assert plain.bleu is None
    assert plain.perplexity is not None
    assert customized.perplexity is not None
    assert plain.classifier is not None
    assert customized.classifier is not None
    assert customized.perplexity.high < plain.perplexity.low
    assert customized.classifier.low > plain.classifier.high
    assert customized.classifier.p is not None
    assert customized.classifier.p < 0.05
    assert "perplexity [95 % interval, lower is better]" in report.table()
    assert "BLEU" not in report.table()
    again = type(report).from_mapping(json.loads(json.dumps(report.to_mapping())))
    assert again == report
    both = evaluate(systems, ZH[:50], language="zh", baseline="vanilla", samples=100, further=ExtraMetrics(style=result))
    assert list(both.signatures) == ["BLEU", "chrF2", "perplexity", "classifier"]
    with pytest.raises(InputError, match="nothing to score against"):
        evaluate(systems, None, language="zh")


def test_without_general_text_and_rewording_there_is_no_classifier_but_a_reason(base: Any, tmp_path: Path) -> None:
    result = learn_style(ZH[:60], base, tmp_path, tmp_path)
    assert result.classifier is None
    assert "20 that are not in it" in result.note
    again = load_style(ZH[:60], base, tmp_path)
    assert again is not None
    assert again.to_mapping() == result.to_mapping()


def test_general_sentences_are_those_of_the_language() -> None:
    assert len(general_sentences(ROOT / "assets", "zh")) > 250
    assert general_sentences(ROOT / "assets", "fr") == []
