"""The state of the random generators used in training on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, device


def random_state(where: device) -> dict[str, Tensor]:
    """The state of the CPU's generator as "cpu" and, if the device is a GPU, of that GPU's generator as "cuda"."""
    import torch

    state = {"cpu": torch.get_rng_state()}
    return state | ({"cuda": torch.cuda.get_rng_state(where)} if where.type == "cuda" else {})


def set_random_state(state: Mapping[str, Tensor], where: device) -> None:
    """Restore a state; that of a GPU is ignored on another device."""
    import torch

    torch.set_rng_state(state["cpu"])
    if "cuda" in state and where.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"], where)
