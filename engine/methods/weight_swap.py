"""Tuned copies of a base's weights that replace the base's weights for the duration of a block.

A tuned weight replaces a Parameter object in every module that holds it (tied weights are held by several). Afterwards the
same object is put back, not a copy, so that the base is restored exactly.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from engine.base import BaseModel
from engine.base.precision import held_in_integers
from engine.core.eight_bits import from_eight_bits, to_eight_bits
from engine.errors import OptionError
from engine.methods.interface import Batch
from engine.methods.losses import likelihood
from engine.methods.modules import submodule
from engine.methods.weight_groups import WHICH

# Key suffixes of weights that a bundle stores as w1 - w0; matrices are stored in eight bits with one exponent per row.
CHANGE, EXPONENTS = ".change", ".exponents"
LEAST = 2.0**-17  # relative to the largest weight of a row: a smaller step of the change would be lost in w0 + change
# A weight belongs to a part if one of its names matches. Tied weights have several names: "decoder" and "encoder" require all
# names to match, since the other side would change with them.
NAMES = {
    "all": r"",
    "decoder": r"\bdecoder\.",
    "encoder": r"\bencoder\.",
    "cross_attention": r"\bdecoder\.(?:(?!decoder\.).)*\.encoder_attn\.",
    "embeddings": r"(\bshared\.|\bembed_tokens\.|\blm_head\.)",
    "layer_norms": r"(layer_norm|layernorm_embedding)\.(weight|bias)$",
    "biases": r"\.bias$",
}


def parameter_holders(model: nn.Module) -> dict[int, list[tuple[str, nn.Module, str]]]:
    """{id of a Parameter: [(full name, module that holds it, its name in the module)]}, in the model's order."""
    result: dict[int, list[tuple[str, nn.Module, str]]] = {}
    for prefix, module in model.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                full = f"{prefix}.{name}" if prefix else name
                result.setdefault(id(parameter), []).append((full, module, name))
    return result


def chosen(names: Sequence[str], which: str) -> bool:
    """Whether the weight with these names belongs to the part `which`."""
    if any("embed_positions" in name for name in names):
        return False  # computed in most families; and a few sentences teach nothing about positions
    if which in ("decoder", "encoder"):
        return all(re.search(NAMES[which], name) for name in names)
    return any(re.search(NAMES[which], name) for name in names)


class TunedWeights(nn.Module):
    """Trained copies of a part of a base's weights, with the names of the base (the first name of tied weights).

    `exchanged` with strength s applies w0 + s (w1 - w0), with base weight w0 and tuned weight w1; exactly w1 for s = 1.
    """

    def __init__(self, base: BaseModel, which: str = "all") -> None:
        super().__init__()
        if which not in WHICH:
            raise OptionError("which: {which!r} is not one of {choices}.", which=which, choices=", ".join(WHICH))
        if held_in_integers(base):
            raise OptionError(
                "The base {base} is held in int8, and its weights cannot be exchanged for tuned ones. Set "
                "base_precision to float32, bfloat16 or float16.",
                base=base.name,
            )
        base.fingerprint()  # computed from the weights, so it must be cached before they are exchanged
        self.which = which
        self.norms = [module for module in base.model.modules() if isinstance(module, nn.LayerNorm)]
        self.slots: list[tuple[str, list[tuple[nn.Module, str]], nn.Parameter]] = []
        for holders in parameter_holders(base.model).values():
            if chosen([full for full, _, _ in holders], which):
                full, module, name = holders[0]
                original: Any = module._parameters[name]
                self.slots.append((full, [(holder, key) for _, holder, key in holders], original))
                # The copies are trained in float32, even over a half-precision base.
                self.put(full, nn.Parameter(original.detach().float().clone()))
        if not self.slots:
            raise OptionError("which: the base {base} has no weights of the part {which}.", base=base.name, which=which)

    def put(self, full: str, parameter: nn.Parameter) -> None:
        *path, name = full.split(".")
        submodule(self, path).register_parameter(name, parameter)

    @property
    def changes_encoder(self) -> bool:
        """Whether the encoder uses any of the tuned weights."""
        return any(not re.search(r"\b(decoder|lm_head)\.", full) for full, _, _ in self.slots)

    def pairs(self) -> Iterator[tuple[nn.Parameter, nn.Parameter]]:
        """(base weight w0, tuned weight w1) of each tuned weight."""
        tuned = dict(self.named_parameters())
        for full, _, original in self.slots:
            yield original, tuned[full]

    @contextlib.contextmanager
    def exchanged(self, strength: float = 1.0) -> Iterator[None]:
        """Put the tuned weights into the base's modules for the duration of the block; no-op at strength 0.

        If a weight is already replaced by another plugin, the change w1 - w0 is added to it. Over a half-precision base, the
        exchanged weights are float32 in training and of the base's type otherwise.
        """
        if strength == 0.0:
            yield
            return
        before: list[tuple[nn.Module, str, Any]] = []
        try:
            for (_, holders, original), (_, tuned) in zip(self.slots, self.pairs(), strict=True):
                holder, key = holders[0]
                now: Any = holder._parameters[key]
                full_swap = strength == 1.0 and now is original and (self.training or original.dtype == tuned.dtype)
                new = tuned if full_swap else add_change(now, original, tuned, strength)
                for holder, key in holders:
                    before.append((holder, key, holder._parameters[key]))
                    holder._parameters[key] = new
            before += self.widen_norms() if self.training else []
            yield
        finally:
            for holder, key, old in reversed(before):
                holder._parameters[key] = old

    @contextlib.contextmanager
    def set_aside(self) -> Iterator[None]:
        """Restore the base's own weights for the duration of a block inside `exchanged`."""
        before = [(holder, key, holder._parameters[key]) for _, holders, _ in self.slots for holder, key in holders]
        try:
            for (_, holders, _), (original, tuned) in zip(self.slots, self.pairs(), strict=True):
                weight = original if original.dtype == tuned.dtype else nn.Parameter(original.to(tuned.dtype), requires_grad=False)
                for holder, key in holders:
                    holder._parameters[key] = weight
            yield
        finally:
            for holder, key, old in before:
                holder._parameters[key] = old

    def widen_norms(self) -> list[tuple[nn.Module, str, Any]]:
        """Exchange the remaining half-precision weights of the layer norms for float32; returns the replaced weights.

        In training over a half-precision base, tuned weights make states float32, and a layer norm does not accept mixed types.
        """
        original, tuned = next(self.pairs())
        if original.dtype == tuned.dtype:
            return []
        before: list[tuple[nn.Module, str, Any]] = []
        for norm in self.norms:
            for key, now in norm._parameters.items():
                if now is not None and now.dtype != tuned.dtype:
                    before.append((norm, key, now))
        for holder, key, now in before:
            holder._parameters[key] = nn.Parameter(now.to(tuned.dtype), requires_grad=False)
        return before

    @torch.no_grad()
    def shrink(self, share: float) -> None:
        """Interpolate in place from the base (0) to the trained weights (1) (Wortsman et al., 2022). The change is rounded to eight
        bits, so that the bundle takes a quarter of the bytes and stores exactly the evaluated weights.
        """
        for original, tuned in self.pairs():
            before = original.to(tuned)
            tuned.copy_(before + read_change(*rounded_change(before, share * (tuned - before))))

    @torch.no_grad()
    def packed(self) -> dict[str, Tensor]:
        """{key + `CHANGE`: w1 - w0, key + `EXPONENTS`: exponents of its rows}, or {key: w1} if that would not be exact."""
        originals = {full: weight.float() for full, _, weight in self.slots}
        results: dict[str, Tensor] = {}
        for key, tuned in self.state_dict().items():
            change = rounded_change(originals[key], tuned - originals[key])
            if torch.equal(originals[key] + read_change(*change), tuned):
                results |= dict(zip((key + CHANGE, key + EXPONENTS), change, strict=False))
            else:
                results[key] = tuned
        return results

    def unpacked(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The inverse of `packed`. Unknown keys and changes of the wrong shape are passed through, for the caller to refuse."""
        results = dict(weights)
        for full, _, original in self.slots:
            change = results.pop(full + CHANGE, None)
            if change is None:
                continue
            exponents = results.get(full + EXPONENTS)
            if exponents is None:
                valid = change.dtype == torch.float16
            else:
                valid = change.dtype == exponents.dtype == torch.int8 and exponents.shape == original.shape[:-1]
            if change.shape != original.shape:
                results.pop(full + EXPONENTS, None)
                results[full] = change
            elif valid:
                results.pop(full + EXPONENTS, None)
                results[full] = original.to(change.device).float() + read_change(change, exponents)
        return results

    def distance(self) -> Tensor:
        """Mean square () of w1 - w0 over all tuned weights (L2-SP, Li et al., 2018), differentiable."""
        total = sum(((tuned - original.to(tuned)).square().sum() for original, tuned in self.pairs()), start=torch.zeros(()))
        return total / sum(tuned.numel() for _, tuned in self.pairs())  # ()


def rounded_change(original: Tensor, change: Tensor) -> tuple[Tensor, ...]:
    """A change of the weight `original` as a bundle stores it: 16 bits, or for a matrix eight bits with one exponent per row."""
    return (change.half(),) if original.dim() < 2 else to_eight_bits(change, LEAST * original.abs().amax(-1))


def read_change(change: Tensor, exponents: Tensor | None = None) -> Tensor:
    """The change that `rounded_change` encoded, in float32."""
    return change.float() if exponents is None else from_eight_bits(change, exponents)


@torch.no_grad()
def add_change(now: Tensor, original: Tensor, tuned: Tensor, strength: float) -> nn.Parameter:
    """The weight `now` plus s (w1 - w0), computed in float32 and returned in the type of `now`."""
    change = tuned.float() - original.float()
    return nn.Parameter((now.float() + strength * change).to(now.dtype), requires_grad=False)


@contextlib.contextmanager
def dropout_in(layers: Iterable[Any], rate: float | None) -> Iterator[None]:
    """Enable ordinary dropout in these layers of the base for the duration of the block. `rate` None: the rate of each layer, with
    which the base was trained. A base that was trained without dropout deteriorates greatly with it.
    """
    before = [(layer, layer.dropout) for layer in layers]
    rates = [old if rate is None else rate for _, old in before]
    if not any(rates):
        yield
        return
    try:
        for (layer, _), new_rate in zip(before, rates, strict=True):
            layer.dropout = new_rate
            layer.train()
        yield
    finally:
        for layer, old in before:
            layer.dropout = old
            layer.eval()


def smoothed(base: BaseModel, log_p: Tensor, batch: Batch, smoothing: float) -> tuple[Tensor, float]:
    """(label-smoothed loss to minimise, plain negative log-likelihood in nats per token for the log)."""
    nll = likelihood(base, log_p, batch)  # ()
    return (likelihood(base, log_p, batch, smoothing) if smoothing else nll), nll.item()
