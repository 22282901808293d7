"""Products with matrices that stay as they are, as oneDNN wants them: on processors with AVX-512 that are not Intel's,
PyTorch's own library leaves half of their speed or more (docs/performance.md). For inference: no gradient goes through them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Product"]


class Product:
    """x Wᵀ + b for a matrix W (O, I) and b (O,), laid out once; `then` may be "relu"."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, then: str = "none") -> None:
        import torch

        with torch.no_grad():
            self.weight: Any = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
        self.then = then
        self.bias = None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        """For x (..., I): (..., O)."""
        import torch

        found: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, self.then, [], "")
        return found
