"""The device that models run on, its fast arithmetic and its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.core.cores import usable_cores
from engine.errors import OptionError

if TYPE_CHECKING:
    import torch

PRECISIONS = ("float32", "float16", "bfloat16", "int8")  # formats in which a base's weights can be held


def pick_device(name: str = "auto") -> torch.device:
    """The requested device, or for `auto` the best available one: CUDA, then MPS, then CPU.

    Raises OptionError if the requested device is not available.
    """
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise OptionError("{name} is not a device. Use auto, cpu, cuda, cuda:1 or mps.", name=name) from None
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        raise OptionError(
            "There is no device {name} here ({cuda} CUDA devices). Use auto or cpu.", name=name, cuda=torch.cuda.device_count()
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise OptionError("There is no device mps here. Use auto or cpu.")
    if device.type == "cuda":
        # In half precision cuDNN's attention makes a plan for each shape, and decoding has a new shape at every step.
        torch.backends.cuda.enable_cudnn_sdp(False)
    return device


def fast_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 matrix products are faster than float32 ones on this device (GPU; CPU with AMX or AVX-512 BF16)."""
    import torch

    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    if device.type == "cpu":
        able = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
        return bool(able.get("amx_bf16") or able.get("avx512_bf16"))
    return False


def pick_precision(name: str, device: torch.device) -> torch.dtype:
    """The dtype for training: the requested one, or for `auto` bfloat16 where it is fast."""
    import torch

    if name == "auto":
        return torch.bfloat16 if fast_bfloat16(device) else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


class Device(NamedTuple):
    """A device's name, and its memory in bytes."""

    name: str
    total: int
    free: int


def describe_device(device: torch.device) -> Device:
    """The device in a form to show to the user."""
    import psutil
    import torch

    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return Device(torch.cuda.get_device_name(device), total, free)
    memory = psutil.virtual_memory()
    cores = usable_cores()
    name = "CPU" if device.type == "cpu" else "Apple GPU"
    return Device(f"{name}, {cores} core{'s' * (cores != 1)}", memory.total, memory.available)
