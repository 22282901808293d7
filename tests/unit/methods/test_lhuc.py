"""LHUC: the gate 2σ(a) on hidden units, at each place, against plain arithmetic."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.errors import OptionError
from engine.methods import get_method
from engine.methods.batches import Pairs
from engine.methods.data import Samples
from engine.methods.lhuc.config import UNITS, LhucConfig
from engine.training.loop import Trainer, learning_rate
from engine.training.metrics_log import read_metrics
from engine.training.options import TrainingOptions
from tests import layer_checks as checks
from tests.bases import SENTENCES, tiny_base, tiny_pair
from tests.reference_transformer import FAMILIES, double_base, hidden_states, reference, scattered

NAME = "lhuc"
STANDS = {"hidden": "feed_forward", "self_attn": "attention", "encoder_attn": "attention", "layer": "layer"}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("places", [UNITS, ("feed_forward",), ("attention",), ("layer",)], ids="-".join)
def test_each_unit_is_multiplied_by_its_gate(family: str, places: tuple[str, ...]) -> None:
    base = double_base(family)
    method, module = checks.make(NAME, base, places=places)
    scattered(module, 1.0)

    def change(side: str, layer: int, place: str, h: Tensor) -> Tensor:
        if STANDS.get(place) not in places:
            return h
        a = module.get_submodule(f"{side}.{layer}.{place}").a
        return h * (2 / (1 + torch.exp(-a)))

    with method.attach(base, module):
        result = hidden_states(base)
    assert torch.allclose(result, reference(base, change), atol=1e-9)
    assert not torch.allclose(result, hidden_states(base), atol=1e-3)


def test_it_has_the_weights_of_the_card() -> None:
    base = tiny_base(layers=3)
    d, f, encoder, decoder = base.d_model, 2 * base.d_model, 2, 3
    _, module = checks.make(NAME, base)
    assert sum(p.numel() for p in module.parameters()) == encoder * (d + f) + decoder * (2 * d + f)


def test_no_place_is_refused(tmp_path) -> None:
    samples = Samples(tiny_pair(layers=2), [], [], tmp_path, load_settings())
    with pytest.raises(OptionError, match=r"^places"):
        get_method(NAME).prepare(samples, LhucConfig(places=()), Progress())


def test_training_runs_at_the_methods_speed(tmp_path) -> None:
    base = tiny_base(layers=2)
    pairs = Pairs.encode(base, SENTENCES)
    options = TrainingOptions(max_updates=10, learning_rate=1e-3, warmup=4, validate_every=5, tokens_per_batch=256, patience=0)
    method, module = checks.make(NAME, base, speed=7.0)
    Trainer(base, method, module, pairs, pairs, options, tmp_path, precision="float32").run()
    rates = [row["lr"] for row in read_metrics(tmp_path / "metrics.jsonl") if "lr" in row]
    assert rates == [pytest.approx(7 * learning_rate(9, options, 10))]
    moved = max(p.abs().max().item() for p in module.parameters())
    assert 7 * 1e-3 < moved <= 7 * 1e-3 * 10
