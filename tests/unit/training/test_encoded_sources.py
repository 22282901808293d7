"""The frozen encoder's output is computed once for sentences that are trained on several times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.core.progress import Progress
from engine.methods import get_method
from engine.methods.batches import Pairs
from engine.methods.interface import Artefacts
from engine.training.batches import EncodedSources, make_batch, worth_holding
from engine.training.loop import Trainer
from engine.training.options import TrainingOptions
from tests.bases import SENTENCES, tiny_base


@pytest.fixture(scope="module")
def base() -> Any:
    return tiny_base()


@pytest.fixture(scope="module")
def pairs(base: Any) -> Pairs:
    return Pairs.encode(base, SENTENCES)


def test_each_sentence_has_the_states_that_it_has_in_any_batch(base: Any, pairs: Pairs) -> None:
    held = EncodedSources(base, pairs, 64, torch.float32, Progress())
    for rows in ([0, 1, 2, 3], [5, 2], [7]):
        sources = base.pad_batch([pairs.sources[row] for row in rows])
        with torch.no_grad():
            plain = base.encoder_states(sources)
        real = base.mask(sources).bool()
        torch.testing.assert_close(held.batch(rows)[real], plain[real], rtol=1e-4, atol=1e-5)
        assert not held.batch(rows)[~real].any()


def test_a_batch_has_the_held_states(base: Any, pairs: Pairs) -> None:
    method = get_method("extreme")
    module = method.build(base, Artefacts(), method.config_class())
    held = EncodedSources(base, pairs, 64, torch.float32, Progress())
    batch = make_batch(base, method, module, pairs, [3, 0], 5, held)
    assert batch.encoded is not None
    assert torch.equal(batch.encoded, held.batch([3, 0]))
    assert batch.step == 5


def test_states_are_held_where_sentences_come_often_enough(base: Any, pairs: Pairs) -> None:
    once = sum(pairs.lengths)
    assert worth_holding(base, pairs, 2 * once)
    assert not worth_holding(base, pairs, once)


@pytest.mark.parametrize(("name", "held"), [("extreme", True), ("houlsby_adapter", False)])
def test_training_encodes_once_what_the_method_leaves_as_it_is(
    base: Any, pairs: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, held: bool
) -> None:
    method = get_method(name)
    module = method.build(base, Artefacts(), method.config_class())
    options = TrainingOptions(max_updates=6, tokens_per_batch=64, validate_every=3, warmup=2, learning_rate=1e-3)
    trainer = Trainer(base, method, module, pairs, pairs, options, tmp_path)
    encoded: list[int] = []
    plain = type(base).encoder_states
    monkeypatch.setattr(type(base), "encoder_states", lambda self, sources: encoded.append(len(sources)) or plain(self, sources))
    result = trainer.run()
    assert result.updates == 6
    assert result.best_loss < result.first_loss
    assert (sum(encoded) == 2 * len(pairs)) == held
