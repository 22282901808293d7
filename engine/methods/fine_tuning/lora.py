"""Low-rank updates W + s α/r B A of the base's linear maps (Hu et al., 2022), with PEFT's layers.

PEFT wraps each linear map in a layer. Here the wrappers are created outside of the base and replace its linear maps only for the
duration of a block. The module registers only their A and B, under the base's names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from engine.base import BaseModel
from engine.errors import MissingError, OptionError
from engine.methods.fine_tuning.config import FineTuningConfig
from engine.methods.modules import submodule
from engine.methods.weight_groups import part_of

NAME = "default"  # name of the adapter in PEFT's wrappers


class LowRank(nn.Module):
    """A and B of every target map. B is initialised to zero, so the untrained module does not change the base."""

    def __init__(self, base: BaseModel, config: FineTuningConfig) -> None:
        super().__init__()
        self.config = config
        # The wrappers contain the base's linear maps, so they must not be registered as submodules.
        self.slots: list[tuple[nn.Module, str, Any, float]] = []
        result = targets(base, config)
        self.changes_encoder = any("encoder" in full.split(".") for full, _, _ in result)
        lora_wrappers = wrappers([parent._modules[name] for _, parent, name in result], config)
        for (full, parent, name), wrapper in zip(result, lora_wrappers, strict=True):
            self.slots.append((parent, name, wrapper, float(wrapper.scaling[NAME])))
            self.put(full, wrapper)

    def put(self, full: str, wrapper: Any) -> None:
        at = submodule(self, full.split("."))
        at.add_module("lora_A", wrapper.lora_A[NAME].float())  # float32, even over a half-precision base
        at.add_module("lora_B", wrapper.lora_B[NAME].float())
        at.add_module("dropout", wrapper.lora_dropout[NAME])  # has no weights; follows train() and eval()

    @contextlib.contextmanager
    def exchanged(self, strength: float = 1.0) -> Iterator[None]:
        """Put the wrappers into the base for the duration of the block; no-op at strength 0."""
        if strength == 0.0:
            yield
            return
        before: list[tuple[nn.Module, str, Any]] = []
        try:
            for parent, name, wrapper, scaling in self.slots:
                now = parent._modules[name]
                before.append((parent, name, now))
                wrapper._modules["base_layer"] = now  # possibly another plugin's wrapper
                wrapper.scaling[NAME] = strength * scaling
                parent._modules[name] = wrapper
            yield
        finally:
            for (parent, name, old), (_, _, wrapper, scaling) in reversed(list(zip(before, self.slots, strict=False))):
                parent._modules[name] = old
                wrapper.scaling[NAME] = scaling

    @torch.no_grad()
    def shrink(self, share: float) -> None:
        """Scale all updates by `share`, in place."""
        if share != 1.0:
            for _, _, wrapper, _ in self.slots:
                wrapper.lora_B[NAME].weight.mul_(share)


def targets(base: BaseModel, config: FineTuningConfig) -> list[tuple[str, nn.Module, str]]:
    """(full name, parent, name in the parent) of the linear maps to update. Raises OptionError if there are none."""
    inside = {"all": ("encoder", "decoder"), "encoder": ("encoder",), "decoder": ("decoder",)}
    part = part_of(config.which)
    if part not in (*inside, "cross_attention"):
        raise OptionError(
            "which: low-rank updates apply to linear maps only, and {which} are not linear maps. Choose all or a side.", which=part
        )
    results = []
    for prefix, parent in base.model.named_modules():
        parts = prefix.split(".")
        if part == "cross_attention":
            right = "encoder_attn" in parts
        else:
            right = any(side in parts for side in inside[part])
        if right and "layers" in parts:
            for name in config.target_modules:
                if isinstance(parent._modules.get(name), nn.Linear):
                    results.append((f"{prefix}.{name}", parent, name))
    if not results:
        raise OptionError(
            "target_modules: the base {base} has none of {target_modules} there.",
            base=base.name,
            target_modules=", ".join(config.target_modules),
        )
    return results


def wrappers(linears: list[Any], config: FineTuningConfig) -> list[Any]:
    """PEFT's wrappers of the linear maps, in order. PEFT inserts them into a temporary module, so that the base does not change.
    Raises MissingError if PEFT is not installed.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise MissingError("kind=lora needs the package peft, which is not installed: pip install 'peft>=0.17'.") from None
    holder = nn.Module()
    for number, linear in enumerate(linears):
        holder.add_module(f"map{number}", linear)
    lora_config = LoraConfig(
        r=config.rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules=[f"map{number}" for number in range(len(linears))],
    )
    changed = inject_adapter_in_model(lora_config, holder, adapter_name=NAME)
    return [changed._modules[f"map{number}"] for number in range(len(linears))]
