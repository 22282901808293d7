"""When a run trains without replay: where a domain filter leaves general text to the base anyway."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from engine.training import TrainingOptions
from engine.workflows.customize import domain_filter
from engine.workflows.customize.domain_filter import settle_replay


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The replay of a run whose filter accepts some of ten general sentences, and whether it gets that filter."""

    def replay(accepted: int = 0, *, automatic: bool = True, asked: Any = (), **training: Any) -> tuple[float, str]:
        accepts = SimpleNamespace(accepts=lambda base, texts: [i < accepted for i in range(len(texts))])
        monkeypatch.setattr(domain_filter, "learned", lambda run: accepts)
        monkeypatch.setattr(domain_filter, "general_pairs", lambda *args, **kwargs: [("a", "b")] * 10)
        run: Any = SimpleNamespace(
            training=TrainingOptions(replay=0.3, **training), automatic=automatic, settings=None,
            request=SimpleNamespace(training_options=dict(asked)), corpus=SimpleNamespace(segments=[]),
            pair=SimpleNamespace(forward=None, backward=None),
        )  # fmt: skip
        settle_replay(run)
        return run.training.replay, run.training.domain_filter

    return replay


def test_a_filter_that_leaves_general_text_to_the_base_takes_the_place_of_replay(settled: Any) -> None:
    assert settled(1) == (0, "on"), "what is trained without replay is not to be used without the filter"
    assert settled(0, domain_filter="on", automatic=False) == (0, "on")
    assert settled(2) == (0.3, "auto"), "too much of it would be changed"


def test_replay_stays_where_there_may_be_no_filter_or_it_was_asked_for(settled: Any) -> None:
    assert settled(0, domain_filter="off") == (0.3, "off")
    assert settled(0, automatic=False) == (0.3, "auto")
    assert settled(0, asked={"replay": 0.3}) == (0.3, "auto")
