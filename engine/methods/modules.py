"""Networks of methods that work inside a base's layers: small parts at given positions; see `engine.methods.layer_hooks`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.methods.layer_hooks import LayerOptions


def own_precision(states: Tensor, weight: Tensor) -> bool:
    """Whether a part must compute in the type of its weights: it is trained over a half-precision base without autocast."""
    return states.dtype != weight.dtype and not torch.is_autocast_enabled(states.device.type)


def in_precision_of(weight: Tensor, part: Callable[..., Tensor], *states: Tensor) -> Tensor:
    """The part's output for the states, in the type of the states. It is computed in the type of `weight` if `own_precision`."""
    if not own_precision(states[0], weight):
        return part(*states)
    return part(*(state.to(weight.dtype) for state in states)).to(states[0].dtype)


def submodule(module: nn.Module, path: Iterable[str]) -> nn.Module:
    """The submodule at a path; missing modules on the path are created empty."""
    for name in path:
        if name not in module._modules:
            module.add_module(name, nn.Module())
        module = module._modules[name]  # type: ignore[assignment]
    return module


class LayerModules(nn.Module):
    """The parts of a method. Keys of the state_dict have the form `encoder.0.self_attn.…`: side, layer, position."""

    def __init__(self, config: LayerOptions | None) -> None:
        super().__init__()
        self.config: Any = config

    def put(self, side: str, number: int, position: str, part: nn.Module) -> None:
        submodule(self, (side, str(number))).add_module(position, part)

    def placed(self) -> list[tuple[str, int, str, Any]]:
        """(side, layer, position, part), in order of insertion."""
        return [
            (side, int(number), position, part)
            for side, layers in self.named_children()
            for number, layer in layers.named_children()
            for position, part in layer.named_children()
        ]

    @property
    def changes_encoder(self) -> bool:
        return "encoder" in self._modules


class Bottleneck(nn.Module):
    """z + s · W_up f(W_down LN(z)): two projections around a nonlinearity, and a residual connection.

    W_up is initialised to zero, so the untrained part is exactly the identity.
    """

    def __init__(self, d: int, size: int, *, normalise: bool, bias: bool, activation: str = "relu") -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d) if normalise else None
        self.down = nn.Linear(d, size, bias=bias)
        self.up = nn.Linear(size, d, bias=bias)
        self.activation = F.gelu if activation == "gelu" else F.relu
        nn.init.zeros_(self.up.weight)
        for linear in (self.down, self.up):
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def forward(self, states: Tensor, strength: float = 1.0) -> Tensor:
        """The changed states (B, T, d); `strength` scales the change."""
        inputs = states.to(self.up.weight.dtype) if own_precision(states, self.up.weight) else states  # (B, T, d)
        return (states + strength * self.change(inputs)).to(states.dtype)  # (B, T, d)

    def change(self, states: Tensor) -> Tensor:
        normal = states if self.norm is None else self.norm(states)  # (B, T, d)
        hidden = self.activation(self.down(normal))  # (B, T, b)
        return self.up(hidden)  # (B, T, d)


class NormShift(nn.Module):
    """Trained offsets to the weight and bias of one of the base's layer norms; zero before training."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(d))
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, norm: nn.LayerNorm, states: Tensor, strength: float = 1.0) -> Tensor:
        """The layer norm of states (B, T, d) with γ + s Δγ and β + s Δβ instead of the base's γ and β."""
        kind = self.weight.dtype
        weight = norm.weight.to(kind) + strength * self.weight  # (d,)
        bias = norm.bias.to(kind) + strength * self.bias  # (d,)
        return F.layer_norm(states.to(kind), norm.normalized_shape, weight, bias, norm.eps)  # (B, T, d)
