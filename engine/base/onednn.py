"""Matrix products by oneDNN on a CPU, twice as fast where PyTorch's default library is slow (docs/performance.md).

PyTorch multiplies in float32 with Intel's MKL. On processors of other makers MKL leaves AVX-512 unused, and on Intel's it is
slow with few rows and a large weight, such as the output layer. oneDNN, which PyTorch also includes, multiplies by weights
that are packed for it once. For inference only: no gradient flows through.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ReferenceType, WeakKeyDictionary, ref

if TYPE_CHECKING:
    from torch import Tensor, nn

    from engine.base.model import BaseModel

LARGEST = 512 * 2**20  # bytes of weights that are kept twice; a larger base is not packed
LARGE = 2**21  # elements of a weight from which oneDNN is faster on Intel's processors too

_MADE: WeakKeyDictionary[Any, dict[int, PackedLayout]] = WeakKeyDictionary()  # by the model
_JOINED: WeakKeyDictionary[Any, Joined] = WeakKeyDictionary()  # by the first of the layers
_INSIDE: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # number of active blocks by the model
_ENTERING = threading.Lock()


@cache
def is_faster(numbers: int = 0) -> bool:
    """Whether oneDNN is faster here for a weight of this size: AVX-512 on a processor not made by Intel, or a large weight."""
    import torch

    if torch.backends.cpu.get_cpu_capability() != "AVX512" or not torch.backends.mkldnn.is_available():
        return False
    processor = cpuinfo()
    return bool(processor) and (numbers >= LARGE or "GenuineIntel" not in processor)


@cache
def cpuinfo() -> str:
    """The contents of /proc/cpuinfo on Linux; empty elsewhere."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class PackedLinear:
    """x Wᵀ + b for a constant matrix W (O, I), packed once, and b (O,); `then` may be "relu"."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, then: str = "none") -> None:
        self.weight = _laid_out(weight.contiguous())
        self.then = then
        self.bias = None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        """For x (..., I): (..., O)."""
        return _product(x, self.weight, self.bias, self.then)


def _laid_out(weight: Tensor) -> Any:
    import torch

    with torch.no_grad():
        return torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)


def _product(x: Tensor, laid_out: Any, bias: Tensor | None = None, then: str = "none") -> Any:
    import torch

    return torch.ops.mkldnn._linear_pointwise(x, laid_out, bias, then, [], "")


@contextlib.contextmanager
def fast_products(base: BaseModel) -> Iterator[None]:
    """Within the block, the base's linear layers use oneDNN where it is faster and no gradient is needed.

    A base held in int8 on a CPU uses 8-bit products. The layout is kept beside the base's weights, which do not change. Weights
    with which a plugin replaces the base's are multiplied as usual. Enter this block before a plugin is attached: layouts are
    made from the weights present at the first call.
    """
    layouts = _layouts(base)
    if not layouts:
        yield
        return
    linears = _linears(base)
    with _ENTERING:
        _INSIDE[base.model] = _INSIDE.get(base.model, 0) + 1
        for linear in linears:
            if (layout := layouts.get(id(linear.weight))) is not None:  # none: the weight is a plugin's
                linear.forward = partial(_forward, linear, layout)  # type: ignore[method-assign]
    try:
        yield
    finally:
        with _ENTERING:
            _INSIDE[base.model] -= 1
            if not _INSIDE[base.model]:
                for linear in linears:
                    linear.__dict__.pop("forward", None)


def _forward(linear: nn.Linear, layout: PackedLayout, x: Tensor) -> Tensor:
    """x Wᵀ + b for x (..., I): (..., O)."""
    import torch

    weight, bias = linear._parameters["weight"], linear._parameters["bias"]
    if x.numel() >= layout.fewest_rows * x.shape[-1] and not torch.is_grad_enabled() and layout.fits(weight):
        return layout.product(x, bias)
    return torch.nn.functional.linear(x, weight, bias)  # type: ignore[arg-type]


@dataclass(frozen=True)
class PackedLayout:
    """A weight packed for oneDNN, and the version of the weight that it was made from."""

    laid_out: Any
    weight: ReferenceType[Tensor]
    version: int

    fewest_rows: ClassVar[int] = 2  # a product with a single vector is no faster

    @classmethod
    def of(cls, weight: Tensor) -> PackedLayout:
        return cls(_laid_out(weight), ref(weight), weight._version)

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """x Wᵀ + b for x (..., I): (..., O)."""
        return _product(x, self.laid_out, bias)

    def fits(self, weight: Tensor | None) -> bool:
        """Whether it was made from this very tensor in its current version. Ids are not enough: they are reused."""
        return weight is not None and self.weight() is weight and weight._version == self.version


class Joined:
    """Several linear layers with the same input as one product: x (..., I) to (..., O1 + O2 + ...), the concatenated outputs."""

    def __init__(self, linears: Sequence[nn.Linear], make: type[PackedLayout]) -> None:
        import torch

        with torch.inference_mode(False), torch.no_grad():
            biases = [linear.bias for linear in linears if linear.bias is not None]
            self.parts = [(ref(tensor), tensor._version) for tensor in self._tensors(linears)]
            self.layout = make.of(torch.cat([linear.weight for linear in linears]))
            self.bias = torch.cat(tuple(biases)) if biases else None  # (O1 + O2 + ...,)

    def __call__(self, x: Tensor) -> Tensor:
        return self.layout.product(x, self.bias)

    @staticmethod
    def _tensors(linears: Sequence[nn.Linear]) -> list[Tensor]:
        return [tensor for linear in linears for tensor in (linear.weight, linear.bias) if tensor is not None]

    def fits(self, linears: Sequence[nn.Linear]) -> bool:
        """Whether it was made from these very weights in their current versions."""
        tensors = self._tensors(linears)
        return len(tensors) == len(self.parts) and all(
            reference() is now and version == now._version for (reference, version), now in zip(self.parts, tensors, strict=True)
        )


def joined(linears: Sequence[nn.Linear]) -> Joined | None:
    """The layers' products as one, cached; None if `fast_products` has no layouts for their weights or only some have a bias."""
    layouts = [_layout_of(linear) for linear in linears]
    if None in layouts or len({linear.bias is None for linear in linears}) > 1:
        return None
    cached = _JOINED.get(linears[0])
    if cached is None or not cached.fits(linears):
        cached = _JOINED[linears[0]] = Joined(linears, type(layouts[0]))  # type: ignore[arg-type]
    return cached


def _layout_of(linear: nn.Linear) -> PackedLayout | None:
    """The layout that the layer multiplies with inside `fast_products`."""
    forward = linear.__dict__.get("forward")
    layout = forward.args[1] if isinstance(forward, partial) and forward.func is _forward else None
    return layout if layout is not None and layout.fits(linear.weight) else None


def _linears(base: BaseModel) -> list[nn.Linear]:
    import torch

    return [module for module in base.model.modules() if type(module) is torch.nn.Linear]


def _layouts(base: BaseModel) -> dict[int, PackedLayout]:
    """{id of a weight: its layout}, made once for a base; empty where oneDNN is not faster."""
    import torch

    if (cached := _MADE.get(base.model)) is not None:
        return cached
    layouts: dict[int, PackedLayout] = {}
    weights = {id(linear.weight): linear.weight for linear in _linears(base)}
    if base.precision == "int8" and base.device.type == "cpu":
        from engine.base.int8 import Int8Layout

        layouts = {key: Int8Layout.of(weight) for key, weight in weights.items()}
    elif (
        all(weight.device.type == "cpu" and weight.dtype is torch.float32 for weight in weights.values())
        and sum(weight.numel() * weight.element_size() for weight in weights.values()) <= LARGEST
    ):
        layouts = {key: PackedLayout.of(weight) for key, weight in weights.items() if is_faster(weight.numel())}
    _MADE[base.model] = layouts
    return layouts
