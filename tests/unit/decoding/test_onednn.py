"""oneDNN's products while decoding: the same translations, and nothing else that is computed with the base changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import linear

from engine.base import BaseModel
from engine.base import onednn as products
from engine.base.onednn import fast_products
from engine.decoding.translate import translate
from engine.methods import get_method
from engine.methods.interface import Artefacts
from engine.plugins import Plugin

ASSETS = Path(__file__).resolve().parents[3] / "assets"
LINES = (ASSETS / "samples" / "demo.en.txt").read_text(encoding="utf-8").splitlines()[:24]


@pytest.fixture(scope="module")
def base() -> BaseModel:
    return BaseModel.load(ASSETS / "models" / "en-zh", "en", "zh", device="cpu", precision="float32")


@pytest.fixture(autouse=True)
def paying(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a processor where they are faster; they give the same elsewhere."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch has no oneDNN")
    monkeypatch.setattr(products, "is_faster", lambda numbers=0: True)
    products._MADE.clear()
    yield
    products._MADE.clear()


def test_translations_are_the_same(base: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = translate(base, LINES)
    assert products._MADE[base.model], "the layouts were used"
    products._MADE.clear()
    monkeypatch.setattr(products, "is_faster", lambda numbers=0: False)
    assert translate(base, LINES) == fast
    assert products._MADE[base.model] == {}


@pytest.mark.parametrize(
    ("maker", "capability", "small", "large"),
    [
        ("AuthenticAMD", "AVX512", True, True),
        ("GenuineIntel", "AVX512", False, True),
        ("GenuineIntel", "AVX2", False, False),
        ("", "AVX512", False, False),
    ],
)
def test_which_weights_it_multiplies_faster_depends_on_the_processor(
    maker: str, capability: str, small: bool, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the real rule, of another processor
    monkeypatch.setattr(products, "cpuinfo", lambda: maker)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    products.is_faster.cache_clear()
    try:
        assert (products.is_faster(256 * 256), products.is_faster(products.LARGE)) == (small, large)
    finally:
        products.is_faster.cache_clear()


def test_products_are_those_of_the_weights_up_to_rounding_and_outside_nothing_changes(base: BaseModel) -> None:
    layer = base.model.model.decoder.layers[0].fc1
    x = torch.randn(3, 5, layer.in_features)
    with torch.inference_mode():
        before = layer(x)
        with fast_products(base):
            inside = layer(x)
            single = layer(x[:1, :1])  # (1, 1, O): a vector alone takes the usual way
        assert torch.equal(layer(x), before)
        assert torch.equal(single, layer(x[:1, :1]))
    torch.testing.assert_close(inside, before, rtol=1e-5, atol=1e-5)


def test_blocks_within_and_beside_each_other_leave_nothing_behind(base: BaseModel) -> None:
    layer = base.model.model.decoder.layers[0].fc1
    x = torch.randn(4, layer.in_features)
    with torch.inference_mode():
        before = layer(x)
        with fast_products(base):
            with fast_products(base):
                fast = layer(x)
            assert torch.equal(layer(x), fast)
        assert torch.equal(layer(x), before)
    assert not [module for module in base.model.modules() if "forward" in vars(module)]


def test_with_a_gradient_the_products_are_the_usual_ones(base: BaseModel) -> None:
    layer = base.model.model.decoder.layers[0].fc1
    x = torch.randn(4, layer.in_features, requires_grad=True)
    with fast_products(base):
        layer(x).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, layer.weight.sum(0).expand_as(x))


def test_the_layouts_are_of_the_base_though_a_plugin_that_swaps_weights_comes_first(base: BaseModel) -> None:
    method = get_method("fine_tuning")
    module = method.build(base, Artefacts(), method.config_class())
    translate(base, LINES[:2], Plugin(method, module, {}))
    weight_ids = {id(layer.weight) for layer in base.model.modules() if type(layer) is nn.Linear}
    assert products._MADE[base.model].keys() == weight_ids


def test_a_weight_in_the_place_of_the_bases_is_taken(base: BaseModel) -> None:
    layer = base.model.model.decoder.layers[0].fc1
    x, weight = torch.randn(4, layer.in_features), layer.weight
    other = nn.Parameter(torch.randn_like(weight), requires_grad=False)
    with fast_products(base), torch.inference_mode():
        try:
            layer._parameters["weight"] = other
            assert torch.equal(layer(x), linear(x, other, layer.bias))
        finally:
            layer._parameters["weight"] = weight


def test_a_weight_that_was_written_to_is_taken_as_it_is(base: BaseModel) -> None:
    layer = base.model.model.decoder.layers[0].fc1
    x, selected = torch.randn(4, layer.in_features), layer.weight.detach().clone()
    with torch.no_grad(), fast_products(base):
        try:
            layer.weight.mul_(2.0)
            torch.testing.assert_close(layer(x), linear(x, 2.0 * selected, layer.bias))
        finally:
            layer.weight.copy_(selected)


def test_a_large_base_is_left_as_it_is(base: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "LARGEST", 1000)
    translate(base, LINES[:1])
    assert products._MADE[base.model] == {}


def test_layouts_go_with_their_base() -> None:
    base = BaseModel.load(ASSETS / "models" / "en-zh", "en", "zh", device="cpu", precision="float32")
    with fast_products(base):
        pass
    assert len(products._MADE) == 1
    del base
    import gc

    gc.collect()
    assert len(products._MADE) == 0
