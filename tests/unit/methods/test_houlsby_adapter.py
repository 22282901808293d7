"""Houlsby adapters: where they stand, in post- and pre-norm layers, and the layer norms trained along."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.errors import OptionError
from engine.methods import get_method
from engine.methods.data import Samples
from engine.methods.houlsby_adapter.config import HoulsbyAdapterConfig
from tests import layer_checks as checks
from tests.bases import tiny_base, tiny_pair
from tests.reference_transformer import FAMILIES, double_base, hidden_states, layer_norm, reference, scattered

NAME = "houlsby_adapter"


def gelu(x: Tensor) -> Tensor:
    """x Φ(x) with the normal distribution's Φ."""
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("strength", [1.0, 0.5])
@pytest.mark.parametrize(
    "options", [{}, {"layer_norms": False, "activation": "relu", "places": ("self_attn", "feed_forward")}],
    ids=["default", "two places, relu, frozen norms"],
)  # fmt: skip
def test_an_adapter_works_on_each_sublayer_before_the_residual_sum(family: str, strength: float, options: dict) -> None:
    base = double_base(family)
    method, module = checks.make(NAME, base, bottleneck=6, **options)
    scattered(module)
    config = module.config
    f = gelu if config.activation == "gelu" else (lambda x: torch.clamp(x, min=0))

    def change(side: str, layer: int, place: str, h: Tensor) -> Tensor:
        if place not in config.places:
            return h
        part = module.get_submodule(f"{side}.{layer}.{'fc2' if place == 'feed_forward' else place}")
        down = f(h @ part.down.weight.T + part.down.bias)
        return h + strength * (down @ part.up.weight.T + part.up.bias)

    def normal(side: str, layer: int, name: str, x: Tensor) -> Tensor:
        stack = base.model.get_encoder() if side == "encoder" else base.model.get_decoder()
        norm = getattr(stack.layers[layer], name)
        if not config.layer_norms:
            return layer_norm(x, norm.weight, norm.bias)
        shift = module.get_submodule(f"{side}.{layer}.{name}")
        return layer_norm(x, norm.weight + strength * shift.weight, norm.bias + strength * shift.bias)

    with method.attach(base, module, strength):
        result = hidden_states(base)
    assert torch.allclose(result, reference(base, change, normal), atol=1e-9)
    assert not torch.allclose(result, hidden_states(base), atol=1e-3)


def test_it_has_the_weights_of_the_card() -> None:
    base = tiny_base(layers=3)
    d, m, encoder, decoder = base.d_model, 64, 2, 3
    adapter, norm = 2 * d * m + d + m, 2 * d
    _, module = checks.make(NAME, base)
    assert sum(p.numel() for p in module.parameters()) == (2 * encoder + 3 * decoder) * (adapter + norm)
    _, module = checks.make(NAME, base, layer_norms=False, places=("encoder_attn",))
    assert sum(p.numel() for p in module.parameters()) == decoder * adapter
    assert not get_method(NAME).changes_encoder(module)


@pytest.mark.parametrize("options", [{"places": ()}, {"places": ("encoder_attn",), "sides": ("encoder",)}])
def test_nothing_to_train_is_refused(options: dict, tmp_path) -> None:
    samples = Samples(tiny_pair(layers=2), [], [], tmp_path, load_settings())
    with pytest.raises(OptionError, match=r"^places: none of the named places"):
        get_method(NAME).prepare(samples, HoulsbyAdapterConfig(layer_norms=False, **options), Progress())
