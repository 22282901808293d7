"""In what numbers a base is held. The 8-bit path of a GPU is asked for with a stand-in for its packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.base import BaseModel
from engine.base.int8 import available
from engine.base.onednn import fast_products
from engine.base.precision import check_trainable, loading_arguments
from engine.core.devices import PRECISIONS
from engine.core.settings import Settings, load_settings
from engine.decoding.translate import translate
from engine.errors import MissingError, OptionError
from engine.methods.weight_swap import TunedWeights

vnni = pytest.mark.skipif(not available(), reason="this processor has no AVX-512 VNNI")
TEXTS = ["The cat sat on the mat.", "He walked home through the rain, late at night.", "Yes."]
CPU, CUDA = torch.device("cpu"), torch.device("cuda", 1)


def test_each_precision_has_its_type() -> None:
    for name in PRECISIONS[:3]:
        assert loading_arguments(name, CPU) == {"dtype": getattr(torch, name)}


def test_eight_bits_need_a_processor_that_can(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.base.int8.available", lambda: False)
    with pytest.raises(OptionError, match=r"AVX-512 VNNI instructions, which this one does not have\. Set base_precision"):
        BaseModel.load(tiny, "en", "zh", device="cpu", precision="int8")
    with pytest.raises(OptionError, match=r"a CUDA GPU or a CPU, and the base is to run on mps\. Set base_precision"):
        loading_arguments("int8", torch.device("mps"))


@vnni
def test_eight_bits_on_a_cpu_are_near_and_do_not_depend_on_the_batch(tiny: Path) -> None:
    exact, base = (BaseModel.load(tiny, "en", "zh", device="cpu", precision=precision) for precision in ("float32", "int8"))
    assert base.fingerprint() == exact.fingerprint()
    translate(base, TEXTS[:1])
    torch.manual_seed(1)
    linears = [layer for layer in base.model.modules() if type(layer) is torch.nn.Linear]
    with fast_products(base), torch.no_grad():
        for layer in linears:
            x = torch.randn(3, 5, layer.in_features) * torch.tensor([0.01, 1.0, 100.0])[:, None, None]  # (B, T, I)
            x[0, 0] = 0.0
            result, expected = layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias)  # (B, T, O) each
            for row in range(3):
                assert float((result[row] - expected[row]).norm() / expected[row].norm()) < 0.02
                assert torch.equal(layer(x[row, 2:3]), result[row, 2:3]), "as in the batch"
    together = translate(base, TEXTS)
    assert together == [translate(base, [text])[0] for text in TEXTS]


@vnni
def test_over_eight_bits_on_a_cpu_a_plugin_is_trained_in_float32_and_off_changes_nothing(tiny: Path) -> None:
    exact, base = (BaseModel.load(tiny, "en", "zh", device="cpu", precision=precision) for precision in ("float32", "int8"))
    check_trainable(base)
    linear = next(layer for layer in base.model.modules() if type(layer) is torch.nn.Linear)
    same = next(layer for layer in exact.model.modules() if type(layer) is torch.nn.Linear)
    x = torch.randn(4, linear.in_features, requires_grad=True)  # (M, I)
    with fast_products(base):
        assert torch.equal(linear(x), same(x)), "with a gradient, the base's own weights"
        linear(x).sum().backward()
    assert x.grad is not None
    plain = translate(base, TEXTS)
    tuned = TunedWeights(base, "decoder")
    with torch.no_grad():
        for parameter in tuned.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    with tuned.exchanged(1.0):
        changed = translate(base, TEXTS)
    assert changed != plain
    assert translate(base, TEXTS) == plain


def test_eight_bits_need_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match=r"needs the package bitsandbytes.*pip install 'tailor-mt\[gpu\]'"):
        loading_arguments("int8", CUDA)


def test_eight_bits_leave_the_output_layer_in_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    arguments: dict[str, Any] = loading_arguments("int8", CUDA)
    assert arguments["quantization_config"].load_in_8bit
    assert arguments["quantization_config"].llm_int8_skip_modules == ["lm_head"]
    assert arguments["device_map"] == {"": "cuda:1"}
    assert arguments["dtype"] == torch.float16


def test_what_can_be_trained_on() -> None:
    for precision, device in (("float32", CUDA), ("bfloat16", CUDA), ("int8", CPU)):
        check_trainable(SimpleNamespace(precision=precision, device=device))  # type: ignore[arg-type]
    for precision in ("float16", "int8"):
        with pytest.raises(OptionError, match=f"cannot be trained on a base held in {precision}"):
            check_trainable(SimpleNamespace(precision=precision, device=CUDA))  # type: ignore[arg-type]


def test_the_setting_is_one_and_reaches_the_base(tiny: Path) -> None:
    assert load_settings({"TAILORMT_BASE_PRECISION": "bfloat16", "TAILORMT_HOME": "/nowhere"}).base_precision == "bfloat16"
    with pytest.raises(OptionError, match="float64"):
        Settings(base_precision="float64")
    base = BaseModel.load(tiny, "en", "zh", settings=load_settings().replace(base_precision="float16"))
    assert (base.precision, base.dtype) == ("float16", torch.float16)
