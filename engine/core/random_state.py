"""The state of the random generators that training on a device draws from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, device


def random_state(where: device) -> dict[str, Tensor]:
    """The state of the CPU's generator as "cpu" and, where the device is a GPU, that of this GPU's as "cuda"."""
    import torch

    state = {"cpu": torch.get_rng_state()}
    return state | ({"cuda": torch.cuda.get_rng_state(where)} if where.type == "cuda" else {})


def set_random_state(state: Mapping[str, Tensor], where: device) -> None:
    """Go on from a state; that of a GPU is passed over on another device."""
    import torch

    torch.set_rng_state(state["cpu"])
    if "cuda" in state and where.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"], where)
