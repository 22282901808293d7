"""A machine with a CUDA device that there is not: tensors of the CPU, some of which pass for tensors on `cuda:0`.

Their numbers are real, so that work whose course hangs on them (a search, a retrieval, a training) goes through to its end. What
CUDA refuses is refused here: an operation on tensors of both devices, a random generator of the CPU for a tensor on the GPU, such
a tensor as an array of numpy. What it cannot show: what kernels compute, memory, speed, two GPUs, the inside of a function of
torch (a backward pass with it), and whatever else goes on in C++. On a machine with a GPU nothing is simulated: the same tests
run on it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["PretendCuda", "is_on_gpu", "pretend_cuda"]

GPU = torch.device("cuda", 0)
REAL = torch.cuda.is_available()
ONLY_THERE = {Tensor.numpy, Tensor.__array__}
MOVES = {Tensor.to, Tensor.cpu, Tensor.cuda}
# Operations that take tensors of two devices.
ACROSS = {
    Tensor.copy_, Tensor.data.__set__, torch._has_compatible_shallow_copy_type,  # type: ignore[attr-defined]
}  # fmt: skip
# A number of the CPU (a tensor without dimensions) may meet tensors on a GPU, but for these.
NO_NUMBERS = {
    torch.cat, torch.stack, torch.gather, torch.index_select, torch.matmul, torch.bmm, torch.mm, Tensor.matmul,
    Tensor.__matmul__, Tensor.gather, Tensor.index_select, Tensor.index_add, Tensor.index_add_, Tensor.index_fill,
    Tensor.scatter, Tensor.scatter_, Tensor.scatter_add, Tensor.scatter_add_, torch.isin, torch.equal, Tensor.equal,
}  # fmt: skip


def leaves(value: Any) -> list[Any]:
    """What lists, tuples and dictionaries within one another hold. Torch's own walk knows more kinds, and takes longer than most
    operations that are looked at here.
    """
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in (leaves(item) if isinstance(item, tuple | list | dict) else (item,))]
    return leaves(list(value.values())) if isinstance(value, dict) else [value]


def is_on_gpu(tensor: Tensor) -> bool:
    """Whether it is on the GPU, or passes for one: its storage is marked, and with it all views of it."""
    if REAL:
        return tensor.is_cuda
    return not tensor.is_mkldnn and getattr(tensor.untyped_storage(), "pretend", False)


class PretendCuda(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in PROPERTIES:
            return PROPERTIES[func](args[0])
        kwargs = dict(kwargs or {})
        arguments = leaves((args, kwargs))
        tensors = [leaf for leaf in arguments if isinstance(leaf, Tensor)]
        there = any(map(is_on_gpu, tensors))
        if there and func in ONLY_THERE:
            raise TypeError(f"can't convert {GPU} device type tensor to numpy. Use Tensor.cpu() first")
        if func in MOVES:
            return move(func, args, kwargs)
        device = kwargs.get("device")
        if device is not None:
            there = torch.device(device).type == "cuda"
            kwargs["device"] = "cpu" if there else device
        elif len(tensors) > 1:
            check(func, args, tensors)
        if there and torch.Generator in map(type, arguments):
            raise RuntimeError(f"{name_of(func)}: expected a 'cuda' device type for generator but found 'cpu'")
        result = func(*args, **kwargs)
        if there:  # what has the storage of an argument is on that one's device
            mark(leaf for leaf in leaves(result) if isinstance(leaf, Tensor) and not any(shared(leaf, other) for other in tensors))
        return result


def shared(tensor: Tensor, other: Tensor) -> bool:
    return tensor.untyped_storage()._cdata == other.untyped_storage()._cdata


def mark(tensors: Iterable[Tensor]) -> None:
    for tensor in tensors:
        tensor.untyped_storage().pretend = True  # type: ignore[attr-defined]


def name_of(func: Any) -> str:
    return str(getattr(func, "__qualname__", None) or getattr(func, "__name__", func))


def device_of(tensor: Tensor) -> torch.device:
    return GPU if is_on_gpu(tensor) else tensor.device


PROPERTIES: dict[Any, Callable[[Tensor], Any]] = {
    Tensor.device.__get__: device_of,  # type: ignore[attr-defined]
    Tensor.is_cuda.__get__: is_on_gpu,  # type: ignore[attr-defined]
    Tensor.is_cpu.__get__: lambda tensor: not is_on_gpu(tensor),  # type: ignore[attr-defined]
    Tensor.get_device: lambda tensor: 0 if is_on_gpu(tensor) else -1,
}


def move(func: Any, args: Any, kwargs: dict[str, Any]) -> Tensor:
    """The tensor on the device asked for: a copy where that is another one."""
    tensor, *others = args
    here = there = is_on_gpu(tensor)
    if func is not Tensor.to:
        there = func is Tensor.cuda
        return moved(tensor, here, there)
    for name, value in [*enumerate(others), ("device", kwargs.get("device"))]:
        if isinstance(value, str | torch.device):
            there = torch.device(value).type == "cuda"
            if there and name == "device":
                kwargs["device"] = "cpu"
            elif there:
                others[name] = "cpu"  # type: ignore[index]
        elif isinstance(value, Tensor):
            there = is_on_gpu(value)
    return moved(tensor.to(*others, **kwargs), here, there, tensor)


def moved(result: Tensor, here: bool, there: bool, tensor: Tensor | None = None) -> Tensor:
    tensor = result if tensor is None else tensor
    if here != there and shared(result, tensor):
        result = result.clone()
    if there:
        mark([result])
    return result


def check(func: Any, args: Any, tensors: list[Tensor]) -> None:
    """Raises RuntimeError where CUDA would: on tensors of both devices."""
    if func in ACROSS:
        return
    if func in (Tensor.__getitem__, Tensor.__setitem__):
        # Places may be on the CPU, and so may what a slice is set to, which is copied.
        places = args[1] if isinstance(args[1], tuple) else (args[1],)
        many = [index for index in leaves(places) if isinstance(index, Tensor) and index.dim()]
        if not is_on_gpu(args[0]) and any(map(is_on_gpu, many)):
            raise RuntimeError(f"{name_of(func)}: indices on {GPU} for a tensor on the CPU")
        listed = many or any(isinstance(index, list) for index in places)
        tensors = [args[0], args[2]] if listed and len(args) > 2 and isinstance(args[2], Tensor) else []
    sides = {is_on_gpu(tensor) for tensor in tensors if tensor.dim() or is_on_gpu(tensor) or func in NO_NUMBERS}
    if len(sides) > 1:
        shapes = ", ".join(f"{tuple(tensor.shape)} on {device_of(tensor)}" for tensor in tensors)
        raise RuntimeError(f"{name_of(func)}: expected all tensors to be on the same device, but found two: {shapes}")


@contextlib.contextmanager
def pretend_cuda() -> Iterator[None]:
    """Within the block there is a device `cuda`, and torch says so: the machine's own, where it has one."""
    if REAL:
        yield
        return
    real = torch.autocast
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "is_bf16_supported": lambda *_: True,
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "set_rng_state": lambda *_: None,
        "empty_cache": lambda: None,
        "mem_get_info": lambda *_: (1 << 33, 1 << 34),
        "get_device_name": lambda *_: "no GPU",
    }
    with pytest.MonkeyPatch.context() as patch, PretendCuda():
        for name, value in answers.items():
            patch.setattr(torch.cuda, name, value)
        # bfloat16 where a GPU would have it.
        patch.setattr(torch, "autocast", lambda kind, **options: real("cpu" if kind == "cuda" else kind, **options))
        start = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

        def bootstrap(thread: threading.Thread) -> None:
            with PretendCuda():  # a mode is one thread's own
                start(thread)

        patch.setattr(threading.Thread, "_bootstrap_inner", bootstrap)
        yield
