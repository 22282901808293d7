"""Residual adapters: equations 1 to 3 of the paper against plain arithmetic, sizes, layers, and what they leave alone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.errors import OptionError
from engine.methods import Artefacts, get_method
from engine.methods.data import Samples
from engine.methods.residual_adapter.config import ResidualAdapterConfig
from tests import layer_checks as checks
from tests.bases import tiny_base, tiny_pair
from tests.reference_transformer import FAMILIES, double_base, hidden_states, layer_norm, reference, scattered

NAME = "residual_adapter"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("strength", [1.0, 0.5])
@pytest.mark.parametrize("options", [{"bottleneck": 4}, {"bottleneck": 40, "bias": True}], ids=["4", "40 with biases"])
def test_it_is_equations_1_to_3_after_each_layer(family: str, strength: float, options: dict[str, int]) -> None:
    base = double_base(family)
    method, module = checks.make(NAME, base, **options)
    scattered(module)

    def change(side: str, layer: int, place: str, z: Tensor) -> Tensor:
        if place != "layer":
            return z
        part = module.get_submodule(f"{side}.{layer}.layer")
        normal = layer_norm(z, part.norm.weight, part.norm.bias)  # (1)
        h = torch.clamp(normal @ part.down.weight.T + (0 if part.down.bias is None else part.down.bias), min=0)  # (2)
        back = h @ part.up.weight.T + (0 if part.up.bias is None else part.up.bias)
        return strength * back + z  # (3)

    with method.attach(base, module, strength):
        result = hidden_states(base)
    assert torch.allclose(result, reference(base, change), atol=1e-9)
    assert not torch.allclose(result, hidden_states(base), atol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reference_is_the_base_where_nothing_is_changed(family: str) -> None:
    base = double_base(family)
    assert torch.allclose(reference(base, lambda side, layer, place, z: z), hidden_states(base), atol=1e-9)


@pytest.mark.parametrize("size", [1, 4, 4096])
def test_any_size_is_the_identity_and_has_the_weights_of_the_card(size: int) -> None:
    base = tiny_base(layers=2)
    before = hidden_states(base)
    method, module = checks.make(NAME, base, bottleneck=size)
    d, layers = base.d_model, 4
    assert sum(p.numel() for p in module.parameters()) == layers * (2 * d * size + 2 * d)
    assert len(module.state_dict()) == 4 * layers
    with method.attach(base, module):
        assert torch.equal(hidden_states(base), before)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decoder_layers": (2,)}, "decoder_layers: the base tiny has 2 decoder layers, numbered from 0 to 1"),
        ({"encoder_layers": (5,)}, "encoder_layers: the base tiny has 2 encoder layers"),
        ({"sides": ()}, "No layer is left"),
        ({"sides": ("encoder",), "encoder_layers": ()}, "No layer is left"),
    ],
)
def test_layers_that_are_not_there_are_refused_before_the_work(options: dict, words: str, tmp_path) -> None:
    method, config = get_method(NAME), ResidualAdapterConfig(**options)
    pair = tiny_pair(layers=2)
    samples = Samples(pair, [], [], tmp_path, load_settings())
    with pytest.raises(OptionError, match=words):
        method.prepare(samples, config, Progress())
    with pytest.raises(OptionError, match=words):
        method.build(pair.forward, Artefacts(), config)
