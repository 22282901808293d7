"""The proportion layers, the experts of all linear maps, and the hooks that apply them in the base's layers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from engine.base import BaseModel
from engine.methods.domain_mixing.config import DomainMixingConfig
from engine.methods.domain_mixing.input_hooks import encoder_layers, watching
from engine.methods.domain_mixing.layers import MixedDelta, ProportionLayer, mix, word_losses
from engine.methods.domain_mixing.model import PARTS, ProportionModel

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")
FEED_FORWARD = ("fc1", "fc2")


def maps_of(base: BaseModel, feed_forward: bool) -> list[tuple[str, int, str, nn.Module]]:
    """(side, layer, name such as "self_attn.q_proj", linear map of the base), from the bottom up."""
    results = []
    for side, layers in (("encoder", encoder_layers(base)), ("decoder", base.decoder_layers)):
        blocks = ("self_attn",) if side == "encoder" else ("self_attn", "encoder_attn")
        names = [f"{block}.{name}" for block in blocks for name in PROJECTIONS]
        for i, layer in enumerate(layers):
            for name in [*names, *(FEED_FORWARD if feed_forward else ())]:
                results.append((side, i, name, layer.get_submodule(name)))
    return results


def reads_the_encoder(name: str) -> bool:
    """Whether a map reads the encoder's output instead of the states of its layer."""
    return name in ("encoder_attn.k_proj", "encoder_attn.v_proj")


class MixingModule(nn.Module):
    """R of each layer and ΔW_j of each map; the state_dict contains exactly the trained weights.

    All maps of a layer share D, computed from the layer's input. The keys and values of the cross-attention belong to the
    encoder's words, so their D is computed from the encoder's output and is the same for all decoder layers.
    """

    def __init__(self, base: BaseModel, start: ProportionModel, config: DomainMixingConfig) -> None:
        super().__init__()
        self.config = config
        self.domains = start.domains
        self.epsilon, self.ridge = start.epsilon, start.ridge
        self.base_fingerprint = start.base_fingerprint
        k = len(self.domains)
        self.proportions = nn.ModuleDict(
            {side: nn.ModuleList([ProportionLayer(base.d_model, k) for _ in layers])
             for side, layers in sorted(start.layers.items())}
        )  # fmt: skip
        experts: dict[str, nn.ModuleDict] = {}
        for side, layer, name, linear in maps_of(base, config.feed_forward):
            inputs, outputs = sizes(linear)
            group = experts.setdefault(f"{side}_{layer}", nn.ModuleDict())
            group[name.replace(".", "_")] = MixedDelta(inputs, outputs, k, config.rank)
        self.experts = nn.ModuleDict(experts)
        self.register_buffer("domain_weights", torch.tensor(start.weights), persistent=False)
        self.recorded: dict[tuple[str, int], Tensor] | None = None  # logits R x, recorded to compute L_mix
        for side, layers in start.layers.items():
            for new_layer, start_layer in zip(self.proportion_layers(side), layers, strict=True):
                for part in PARTS:
                    getattr(new_layer, part).data.copy_(getattr(start_layer, part))

    def proportion_layers(self, side: str) -> Any:
        """The proportion layers of a side, from the bottom up."""
        return self.proportions[side]

    def expert(self, side: str, layer: int, name: str) -> Any:
        return self.experts[f"{side}_{layer}"][name.replace(".", "_")]  # type: ignore[index]

    def proportion_model(self) -> ProportionModel:
        """The trained proportion layers, for use with the module attached."""
        return ProportionModel(
            list(self.domains), self.epsilon, {side: list(self.proportion_layers(side)) for side in ("encoder", "decoder")},
            self.domain_weights.tolist(), self.ridge, base_fingerprint=self.base_fingerprint,  # type: ignore[operator]
        )  # fmt: skip

    def shares(self, side: str, layer: int, states: Tensor) -> Tensor:
        """D (B, T, k) of states (B, T, d), detached: L_gen has no gradient for R, and L_mix none for the layers below R."""
        if self.recorded is None:
            with torch.no_grad():
                return mix(self.proportion_layers(side)[layer](states), self.epsilon)  # (B, T, k)
        logits = self.proportion_layers(side)[layer](states.detach())  # (B, T, k)
        self.recorded[side, layer] = logits
        return mix(logits.detach(), self.epsilon)  # (B, T, k)

    @contextlib.contextmanager
    def hooked(self, base: BaseModel, strength: float) -> Iterator[None]:
        """Hook the base's layers and linear maps for the duration of the block."""
        now: dict[tuple[str, int], Tensor] = {}
        last = len(self.proportion_layers("encoder")) - 1

        def observe(side: str, layer: int, states: Tensor) -> None:
            now[side, layer] = self.shares(side, layer, states)  # (B, T, k)

        with watching(base, observe), contextlib.ExitStack() as hooks:
            for side, layer, name, linear in maps_of(base, self.config.feed_forward):
                position = ("encoder", last) if reads_the_encoder(name) else (side, layer)
                expert = self.expert(side, layer, name)
                change = self.changed(expert, position, now, reads_the_encoder(name), strength)
                hooks.enter_context(linear.register_forward_hook(change))
            yield

    def changed(
        self, expert: MixedDelta, position: tuple[str, int], now: dict[tuple[str, int], Tensor], recompute: bool, strength: float
    ) -> Any:
        """A forward hook that adds Σ_j D_j(x) ΔW_j x to the output of a map of the base for the input x."""

        def hook(linear: nn.Module, args: Any, output: Tensor) -> Tensor:
            x = args[0]  # (B, T, in)
            # The encoder's output was repeated for beams since it was observed, so its shares are computed from the input.
            shares = now[position] if not recompute else self.again(position, x)  # (B, T, k)
            return output + (strength * expert(x, shares)).to(output.dtype)  # (B, T, out)

        return hook

    def again(self, position: tuple[str, int], states: Tensor) -> Tensor:
        with torch.no_grad():
            return mix(self.proportion_layers(position[0])[position[1]](states), self.epsilon)  # (B, T, k)

    def mixing_loss(self, real: dict[str, Tensor], domain: Tensor) -> Tensor:
        """L_mix of the recorded logits: -log D_J per word and layer, weighted by domain, plus the ridge penalty.

        `real` (B, T) marks the words of each side; `domain` (B,) is the index J of each sentence's domain, -1 if unknown.
        """
        assert self.recorded is not None
        weights: Tensor = self.domain_weights  # type: ignore[assignment]
        losses = []
        for side, all_words in real.items():
            words = all_words & (domain >= 0)[:, None]  # (B, T)
            labels = domain[:, None].expand_as(words)[words]  # (n,)
            share = weights.to(torch.float32)[labels]  # (n,)
            for index, layer in enumerate(self.proportion_layers(side)):
                logits = self.recorded[side, index][words]  # (n, k)
                each = word_losses(logits, labels, self.epsilon)  # (n,)
                losses.append((share * each).sum() / max(1, len(labels)) + self.ridge / 2 * layer.weight.square().sum())
        return torch.stack(losses).mean()  # ()


def sizes(linear: Any) -> tuple[int, int]:
    """The numbers of inputs and outputs of a linear map, which may be quantised."""
    if hasattr(linear, "in_features"):
        return int(linear.in_features), int(linear.out_features)
    outputs, inputs = linear.weight.shape
    return int(inputs), int(outputs)
