"""In what numbers a base is held. The 8-bit path needs a CUDA GPU: here it is asked for with a stand-in for its packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.base import BaseModel
from engine.base.precision import check_trainable, loading_arguments
from engine.core.devices import PRECISIONS
from engine.core.settings import Settings, load_settings
from engine.errors import MissingError, OptionError

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 1)


def test_each_precision_has_its_type() -> None:
    for name in PRECISIONS[:3]:
        assert loading_arguments(name, CPU) == {"dtype": getattr(torch, name)}


def test_eight_bits_need_a_gpu(tiny: Path) -> None:
    with pytest.raises(OptionError, match=r"int8 needs a CUDA GPU, and the base is to run on cpu\. Set base_precision"):
        BaseModel.load(tiny, "en", "zh", device="cpu", precision="int8")


def test_eight_bits_need_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match=r"needs the package bitsandbytes.*pip install 'tailor-mt\[gpu\]'"):
        loading_arguments("int8", CUDA)


def test_eight_bits_leave_the_output_layer_in_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    given: dict[str, Any] = loading_arguments("int8", CUDA)
    assert given["quantization_config"].load_in_8bit
    assert given["quantization_config"].llm_int8_skip_modules == ["lm_head"]
    assert given["device_map"] == {"": "cuda:1"}
    assert given["dtype"] == torch.float16


def test_what_can_be_trained_on() -> None:
    for precision in ("float32", "bfloat16"):
        check_trainable(SimpleNamespace(precision=precision))  # type: ignore[arg-type]
    for precision in ("float16", "int8"):
        with pytest.raises(OptionError, match=f"cannot be trained on a base held in {precision}"):
            check_trainable(SimpleNamespace(precision=precision))  # type: ignore[arg-type]


def test_the_setting_is_one_and_reaches_the_base(tiny: Path) -> None:
    assert (
        load_settings({"TAILORMT_BASE_PRECISION": "bfloat16", "TAILORMT_HOME": "/nowhere"}).base_precision == "bfloat16"
    )
    with pytest.raises(OptionError, match="float64"):
        Settings(base_precision="float64")
    base = BaseModel.load(tiny, "en", "zh", settings=load_settings().replace(base_precision="float16"))
    assert (base.precision, base.dtype) == ("float16", torch.float16)
