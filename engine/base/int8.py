"""Linear layers in eight bits on a CPU (dynamic quantization), for a quarter less translation time (docs/performance.md).

Weights are quantized once, per output row. Inputs are quantized at each call, per token (ZeroQuant, Yao et al., 2022), so
that the result for a sentence does not depend on the other sentences in the batch. The base's weights do not change:
gradients, and weights with which a plugin replaces them, are computed in float32.
"""

from __future__ import annotations

import warnings
from typing import Any
from weakref import ref

import torch
from torch import Tensor

from engine.base.onednn import PackedLayout, cpuinfo

HALF = 127  # the largest magnitude of a quantized number
ZERO = 128  # inputs are unsigned; this value represents 0
LEAST = 1e-9  # smallest divisor, for inputs of zeros


def available() -> bool:
    """Whether this CPU multiplies 8-bit numbers without overflow, which takes AVX-512 VNNI."""
    return "fbgemm" in torch.backends.quantized.supported_engines and "avx512_vnni" in cpuinfo()


class Int8Layout(PackedLayout):
    """A weight (O, I) in eight bits, and the version of the weight that it was made from."""

    fewest_rows = 1  # every row, so that a token's result does not depend on the batch size

    @classmethod
    def of(cls, weight: Tensor) -> Int8Layout:
        return cls(_packed(weight.detach()), ref(weight), weight._version)

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """x Wᵀ + b for x (..., I): (..., O)."""
        rows = x.reshape(-1, x.shape[-1])  # (M, I)
        scale = rows.abs().amax(1, keepdim=True).clamp_(min=LEAST)  # (M, 1)
        result = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            rows / scale, 1 / HALF, ZERO, self.laid_out
        )  # (M, O)
        result.mul_(scale)
        if bias is not None:
            result.add_(bias)
        return result.view(*x.shape[:-1], -1)  # (..., O)


def _packed(weight: Tensor) -> Any:
    """The weight (O, I) packed for fbgemm, with one scale per output."""
    scale = weight.abs().amax(1).clamp(min=LEAST) / HALF  # (O,)
    zero = torch.zeros(len(weight), dtype=torch.long)  # (O,)
    engine = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tensors of this type are deprecated; only the packed weight is kept
            quantized = torch.quantize_per_channel(weight, scale, zero, 0, torch.qint8)
            return torch.ops.quantized.linear_prepack(quantized, None)
    finally:
        torch.backends.quantized.engine = engine  # type: ignore[assignment]
