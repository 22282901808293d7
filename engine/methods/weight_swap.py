"""Tuned copies of a base's weights, exchanged with the base's own for the duration of a block.

The base is a tree of modules that hold Parameters. A tuned weight takes the place of a Parameter object in every module
that holds it (tied weights are held by several), and afterwards the very same object is put back: not a copy of it, so
that the base is the base bit for bit.
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

# What ends the keys of a weight of which a bundle holds w1 - w0; matrices in eight bits, whose rows have exponents.
CHANGE, EXPONENTS = ".change", ".exponents"
LEAST = 2.0**-17  # of the largest weight of a row: a smaller step of its change would be lost in the sum of the two
# A weight belongs to a part when one of its names matches. Tied weights have several names: for "decoder" they are left
# out, since the encoder would change with them.
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
    """{id of a Parameter: [(its full name, the module that holds it, its name there)]}, in the model's order."""
    result: dict[int, list[tuple[str, nn.Module, str]]] = {}
    for prefix, module in model.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                full = f"{prefix}.{name}" if prefix else name
                result.setdefault(id(parameter), []).append((full, module, name))
    return result


def chosen(names: Sequence[str], which: str) -> bool:
    """Whether the weight of these names belongs to the part `which`."""
    if any("embed_positions" in name for name in names):
        return False  # they are computed in most families, and a few sentences teach nothing about positions
    if which in ("decoder", "encoder"):
        return all(re.search(NAMES[which], name) for name in names)
    return any(re.search(NAMES[which], name) for name in names)


class TunedWeights(nn.Module):
    """Trained copies of a part of a base's weights, under the base's own names (of tied ones, the first).

    `strength` s in `exchanged` gives w0 + s (w1 - w0), with w0 the base's weight and w1 the tuned one; 1 is exactly w1.
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
        base.fingerprint()  # it is taken from the weights, so before they are ever exchanged
        self.which = which
        self.norms = [module for module in base.model.modules() if isinstance(module, nn.LayerNorm)]
        self.slots: list[tuple[str, list[tuple[nn.Module, str]], nn.Parameter]] = []
        for holders in parameter_holders(base.model).values():
            if chosen([full for full, _, _ in holders], which):
                full, module, name = holders[0]
                own: Any = module._parameters[name]
                self.slots.append((full, [(holder, key) for _, holder, key in holders], own))
                # Over a base in half precision the copies are trained in float32.
                self.put(full, nn.Parameter(own.detach().float().clone()))
        if not self.slots:
            raise OptionError("which: the base {base} has no weights of the part {which}.", base=base.name, which=which)

    def put(self, full: str, parameter: nn.Parameter) -> None:
        *path, name = full.split(".")
        submodule(self, path).register_parameter(name, parameter)

    @property
    def changes_encoder(self) -> bool:
        """Whether any tuned weight is one that the encoder uses."""
        return any(not re.search(r"\b(decoder|lm_head)\.", full) for full, _, _ in self.slots)

    def pairs(self) -> Iterator[tuple[nn.Parameter, nn.Parameter]]:
        """(the base's own weight w0, the tuned one w1)."""
        tuned = dict(self.named_parameters())
        for full, _, own in self.slots:
            yield own, tuned[full]

    @contextlib.contextmanager
    def exchanged(self, strength: float = 1.0) -> Iterator[None]:
        """The tuned weights stand in the base's modules inside the block; at strength 0 nothing is exchanged.

        Where another plugin's weight already stands, the change w1 - w0 is added to it. Over a base in half precision they are in
        float32 for training, which rounds by itself, and as the base's own otherwise.
        """
        if strength == 0.0:
            yield
            return
        before: list[tuple[nn.Module, str, Any]] = []
        try:
            for (_, holders, own), (_, tuned) in zip(self.slots, self.pairs(), strict=True):
                holder, key = holders[0]
                now: Any = holder._parameters[key]
                whole = strength == 1.0 and now is own and (self.training or own.dtype == tuned.dtype)
                new = tuned if whole else moved(now, own, tuned, strength)
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
        """Inside `exchanged`, the base's own weights stand in their places again for the duration of a block."""
        before = [(holder, key, holder._parameters[key]) for _, holders, _ in self.slots for holder, key in holders]
        try:
            for (_, holders, _), (own, tuned) in zip(self.slots, self.pairs(), strict=True):
                weight = own if own.dtype == tuned.dtype else nn.Parameter(own.to(tuned.dtype), requires_grad=False)
                for holder, key in holders:
                    holder._parameters[key] = weight
            yield
        finally:
            for holder, key, old in before:
                holder._parameters[key] = old

    def widen_norms(self) -> list[tuple[nn.Module, str, Any]]:
        """In training over a base in half precision, states and biases are float32 where weights are tuned, and a layer
        norm takes no mixture: what is left of the base's norms is exchanged for float32 as well. Returns what to put back.
        """
        own, tuned = next(self.pairs())
        if own.dtype == tuned.dtype:
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
        """Go only this share of the way from the base to what was learnt (Wortsman et al., 2022), by a change of eight bits, so
        that a bundle holds a quarter of the bytes and yet exactly what was measured.
        """
        for own, tuned in self.pairs():
            before = own.to(tuned)
            tuned.copy_(before + read_change(*rounded_change(before, share * (tuned - before))))

    @torch.no_grad()
    def packed(self) -> dict[str, Tensor]:
        """{key and `CHANGE`: w1 - w0, key and `EXPONENTS`: those of its rows}; the weight itself where that is not exactly it."""
        own = {full: weight.float() for full, _, weight in self.slots}
        results: dict[str, Tensor] = {}
        for key, tuned in self.state_dict().items():
            change = rounded_change(own[key], tuned - own[key])
            if torch.equal(own[key] + read_change(*change), tuned):
                results |= dict(zip((key + CHANGE, key + EXPONENTS), change, strict=False))
            else:
                results[key] = tuned
        return results

    def unpacked(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights of what `packed` gave; others stay as they are, and changes of another shape, for the caller to refuse."""
        results = dict(weights)
        for full, _, own in self.slots:
            change = results.pop(full + CHANGE, None)
            if change is None:
                continue
            exponents = results.get(full + EXPONENTS)
            if exponents is None:
                whole = change.dtype == torch.float16
            else:
                whole = change.dtype == exponents.dtype == torch.int8 and exponents.shape == own.shape[:-1]
            if change.shape != own.shape:
                results.pop(full + EXPONENTS, None)
                results[full] = change
            elif whole:
                results.pop(full + EXPONENTS, None)
                results[full] = own.to(change.device).float() + read_change(change, exponents)
        return results

    def distance(self) -> Tensor:
        """Mean square of w1 - w0 over all tuned weights (L2-SP, Li et al., 2018), with gradient; ()."""
        total = sum(((tuned - own.to(tuned)).square().sum() for own, tuned in self.pairs()), start=torch.zeros(()))
        return total / sum(tuned.numel() for _, tuned in self.pairs())  # ()


def rounded_change(own: Tensor, change: Tensor) -> tuple[Tensor, ...]:
    """A change of the weight `own` as a bundle holds it: in 16 bits, or of a matrix in eight, with the exponents of its rows."""
    return (change.half(),) if own.dim() < 2 else to_eight_bits(change, LEAST * own.abs().amax(-1))


def read_change(change: Tensor, exponents: Tensor | None = None) -> Tensor:
    """What `rounded_change` stands for, in float32."""
    return change.float() if exponents is None else from_eight_bits(change, exponents)


@torch.no_grad()
def moved(now: Tensor, own: Tensor, tuned: Tensor, strength: float) -> nn.Parameter:
    """The weight `now` moved by s (w1 - w0), computed in float32 and held as the base's are."""
    change = tuned.float() - own.float()
    return nn.Parameter((now.float() + strength * change).to(now.dtype), requires_grad=False)


@contextlib.contextmanager
def dropout_in(layers: Iterable[Any], rate: float | None) -> Iterator[None]:
    """Ordinary dropout inside these layers of the base for one loss; as before afterwards. `rate` None: each layer's own, with
    which the base was trained. A base that was trained without any does not bear it: 0.1 cost the bundled ones 2.5 nats per token.
    """
    before = [(layer, layer.dropout) for layer in layers]
    rates = [old if rate is None else rate for _, old in before]
    if not any(rates):
        yield
        return
    try:
        for (layer, _), own in zip(before, rates, strict=True):
            layer.dropout = own
            layer.train()
        yield
    finally:
        for layer, old in before:
            layer.dropout = old
            layer.eval()


def smoothed(base: BaseModel, log_p: Tensor, batch: Batch, smoothing: float) -> tuple[Tensor, float]:
    """(the smoothed likelihood to minimise, the plain one in nats per token for the log)."""
    nll = likelihood(base, log_p, batch)  # ()
    return (likelihood(base, log_p, batch, smoothing) if smoothing else nll), nll.item()
