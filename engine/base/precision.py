"""The number format of a base's weights: float32, half precision (float16, bfloat16) or 8-bit integers.

    float32    4 bytes per weight; exact; the default
    bfloat16   2 bytes; float32's range with 8 bits of precision; allows training
    float16    2 bytes; 11 bits of precision; for translating only: gradients through its layers underflow
    int8       on a CUDA GPU 1 byte for the layers' matrices (LLM.int8, Dettmers et al., 2022, by bitsandbytes), half for the
               other weights; on a CPU 5 bytes: float32 plus 8-bit matrices for translating (engine/base/int8.py)
A plugin's tensors are cast to the base's floating-point type when it is loaded.
"""

from __future__ import annotations

import importlib.util
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from engine.base.model import BaseModel
from engine.errors import MissingError, OptionError

if TYPE_CHECKING:
    import torch

NEEDED = ("bitsandbytes", "accelerate")


def loading_arguments(precision: str, device: torch.device) -> dict[str, object]:
    """Arguments of `from_pretrained` for holding weights in that precision on that device.

    Raises OptionError if the device does not support int8, MissingError if its packages are not installed.
    """
    import torch

    if precision != "int8":
        return {"dtype": {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}[precision]}
    if device.type == "cpu":
        from engine.base.int8 import available

        if not available():
            raise OptionError(
                "int8 on a CPU needs AVX-512 VNNI instructions, which this one does not have. Set base_precision to "
                "float32, or to bfloat16 to halve the memory."
            )
        return {"dtype": torch.float32}
    if device.type != "cuda":
        raise OptionError(
            "int8 needs a CUDA GPU or a CPU, and the base is to run on {type}. Set base_precision to float32, or to "
            "bfloat16 to halve the memory.",
            type=device.type,
        )
    for package in NEEDED:
        if importlib.util.find_spec(package) is None:
            raise MissingError(
                "int8 needs the package {package}, which is not installed: pip install 'tailor-mt[gpu]', or set "
                "base_precision to bfloat16.",
                package=package,
            )
    from transformers import BitsAndBytesConfig

    # The output layer shares its weights with the embeddings and stays in half precision.
    return {
        "dtype": torch.float16,
        "quantization_config": BitsAndBytesConfig(load_in_8bit=True, llm_int8_skip_modules=["lm_head"]),
        "device_map": {"": str(device)},
    }


def held_in_integers(base: BaseModel) -> bool:
    """Whether the base's matrices are stored as 8-bit integers only, as on a GPU; on a CPU the float32 weights are kept as well."""
    return base.precision == "int8" and base.device.type != "cpu"


def check_trainable(base: BaseModel) -> None:
    """Raise OptionError if a plugin cannot be trained on the base in its precision."""
    if base.precision == "float16" or held_in_integers(base):
        raise OptionError(
            "A plugin cannot be trained on a base held in {precision}: its gradients are too coarse. Set "
            "base_precision to bfloat16 or float32; the plugin then works with any precision.",
            precision=base.precision,
        )


def quick_arithmetic(base: BaseModel) -> AbstractContextManager[object]:
    """bfloat16 where the processor computes it faster than float32: for ranking and comparing, not for output shown to the user."""
    import torch

    from engine.base.onednn import fast_products
    from engine.core.devices import fast_bfloat16

    if base.dtype == torch.float32 and fast_bfloat16(base.device):
        return torch.autocast(base.device.type, dtype=torch.bfloat16)
    return fast_products(base)
