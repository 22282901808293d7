"""A base loads without torch's compiler; what is loaded is transformers' to the bit, and the compiler works afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from engine.base.load import sinusoids
from engine.base.quick_imports import without_first_weights

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import sys
from engine.base import BaseModel
base = BaseModel.load(sys.argv[1], "en", "zh", device="cpu", precision="float32")
print(*(name in sys.modules for name in ("torch._dynamo", "torch.distributed.tensor", "sympy")))
import torch
print(torch.compile(lambda x: 2 * x + 1, backend="eager")(torch.ones(2)).tolist(), torch.distributed.is_available())
import transformers.models.bart
from transformers import MarianMTModel
library = MarianMTModel.from_pretrained(sys.argv[1], dtype=torch.float32).state_dict()
print(all(torch.equal(weight, library[name]) for name, weight in base.model.state_dict().items()))
"""


@pytest.mark.slow
def test_a_base_loads_without_the_compiler_and_as_transformers_loads_it() -> None:
    model = str(ROOT / "assets" / "models" / "en-zh")
    done = subprocess.run([sys.executable, "-c", SCRIPT, model], capture_output=True, text=True, cwd=ROOT, check=False, timeout=120)
    assert done.stdout.splitlines() == ["False False False", "[3.0, 3.0] True", "True"], done.stderr


BESIDE_OTHERS = """
import sys
from engine.base import BaseModel
from engine.base.quick_imports import quick_imports
BaseModel.load(sys.argv[1], "en", "zh", device="cpu", precision="float32")
print("torchvision" in sys.modules, "torch._dynamo" in sys.modules)
with quick_imports():
    import asks_for_the_compiler
import torch
import torch._dynamo.utils
print(asks_for_the_compiler.counters is torch._dynamo.utils.counters)
print(torch.compile(lambda x: 2 * x + 1, backend="eager")(torch.ones(2)).tolist())
"""


@pytest.mark.slow
def test_packages_that_need_the_compiler_are_left_alone_or_get_it(tmp_path: Path) -> None:
    """torchvision, which transformers imports where it is installed, needs it; another may."""
    (tmp_path / "torchvision").mkdir()
    for file in ("torchvision/__init__.py", "asks_for_the_compiler.py"):
        (tmp_path / file).write_text("from torch._dynamo.utils import counters\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_OTHERS, str(ROOT / "assets" / "models" / "en-zh")],
        capture_output=True, text=True, cwd=ROOT, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["False False", "True", "[3.0, 3.0]"], done.stderr


@pytest.mark.parametrize(("count", "d"), [(512, 256), (64, 384), (10, 33)])
def test_positions_are_those_of_transformers(count: int, d: int) -> None:
    embedding = MarianSinusoidalPositionalEmbedding(count, d)
    embedding.weight.data = sinusoids(embedding)
    positions = torch.arange(count)[:, None] / 10000 ** (2 * torch.arange((d + 1) // 2, dtype=torch.float64) / d)  # (P, d/2)
    torch.testing.assert_close(embedding.weight[:, : (d + 1) // 2], positions.sin().float())
    assert embedding.weight.shape == (count, d)


def test_modules_with_memory_of_their_own_draw_their_first_weights() -> None:
    torch.manual_seed(1)
    usual = torch.nn.Linear(4, 3)
    torch.manual_seed(1)
    with without_first_weights():
        inside = torch.nn.Linear(4, 3)
    assert torch.equal(inside.weight, usual.weight)
    assert torch.nn.Linear.reset_parameters.__qualname__ == "Linear.reset_parameters"
