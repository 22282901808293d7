"""One batch whose sentences have different plugins: the base runs once for all, each plugin on its rows.

Grouped by plugin, 64 sentences with 64 plugins take 64 passes through the base with one sentence each. Here they take one pass:
at each hook point, the states are split by plugin, changed and concatenated.

    hidden states (B · k, T, d)   rows of a sentence are adjacent, sentences of a plugin are adjacent
    plugin p                      rows from begin_p · k to end_p · k for any k: 1, or the hypotheses of a beam search
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from engine.base import BaseModel
from engine.base.decoding_options import Decoding
from engine.errors import InputError
from engine.methods.interface import HookPoint
from engine.methods.layer_hooks import applied
from engine.plugins.plugin import Plugin, check_strength
from engine.plugins.stack import PluginStack


def can_mix(base: BaseModel, plugins: Sequence[Plugin | PluginStack | None], strength: float) -> bool:
    """Whether these plugins can share a batch: each works in the base's layers only, row by row."""
    return all(plugin is None or spots_of(base, plugin, strength) is not None for plugin in plugins)


def spots_of(base: BaseModel, plugin: Plugin | PluginStack, strength: float) -> Sequence[HookPoint] | None:
    if isinstance(plugin, PluginStack) and len(plugin.plugins) == 1:  # a single plugin at a share of its strength
        return spots_of(base, plugin.plugins[0], strength * plugin.weights[0])
    if (
        not isinstance(plugin, Plugin)
        or plugin.knn is not None
        or plugin.needs_fixed_batch
        or not plugin.batches_beams_per_sentence
    ):
        return None
    return None if plugin.logits_processors(base, strength) else plugin.method.hook_points(base, plugin.module, strength)


class MixedBatch:
    """Several plugins for one batch, with the interface of a plugin; `which` is the plugin index of each text."""

    needs_fixed_batch = False
    batches_beams_per_sentence = True

    def __init__(self, plugins: Sequence[Plugin | None], which: Sequence[int]) -> None:
        self.plugins, self.which = list(plugins), list(which)
        self.begins: list[int] = []  # where each plugin's sentences begin, and where the last one's end
        self.firsts: list[int] = []  # the same at the beginning of the batch
        self.owners: torch.Tensor  # (B,) the plugin of each sentence of the batch

    @classmethod
    def of(cls, base: BaseModel, plugins: Sequence[Plugin | PluginStack | None], strength: float) -> MixedBatch | None:
        """A mixed batch for texts with these plugins; None if they cannot share a batch or there is only one."""
        different: dict[int, Any] = {id(plugin): plugin for plugin in plugins}
        if len(different) < 2 or not can_mix(base, list(different.values()), strength):
            return None
        number = {key: index for index, key in enumerate(different)}
        return cls(list(different.values()), [number[id(plugin)] for plugin in plugins])

    def arrange(self, texts: Sequence[int]) -> list[int]:
        """Start a batch of these texts; returns the required order of its rows, as indices into `texts`."""
        order = sorted(range(len(texts)), key=lambda index: self.which[texts[index]])
        self.owners = torch.tensor([self.which[texts[index]] for index in order])  # (B,)
        counts = self.owners.bincount(minlength=len(self.plugins))  # (P,)
        self.begins = self.firsts = [0, *counts.cumsum(0).tolist()]
        return order

    def on_batch_shrink(self, active: torch.Tensor) -> None:
        """Called with the indices (b,) of the sentences that remain when finished ones leave the batch."""
        active = active.cpu()  # (b,)
        counts = self.owners[active].bincount(minlength=len(self.plugins))  # (P,)
        self.begins = [0, *counts.cumsum(0).tolist()]
        for number, plugin in enumerate(self.plugins):
            indices = active[self.begins[number] : self.begins[number + 1]]  # (b,)
            if plugin is not None and len(indices):
                plugin.on_batch_shrink(indices - self.firsts[number])

    def translate(self, *_: Any) -> None:
        return None

    def routes(self, base: BaseModel, texts: Sequence[str]) -> tuple[()]:
        return ()  # each text's plugin is known to act on it

    def check_likelihood(self) -> None:
        for plugin in self.plugins:
            if plugin is not None:
                plugin.check_likelihood()

    def set_source(self, base: BaseModel, sources: torch.Tensor) -> None:
        """Pass each plugin its rows of the source tokens (B, S)."""
        for number, plugin in enumerate(self.plugins):
            rows = sources[self.firsts[number] : self.firsts[number + 1]]  # (b, S)
            if plugin is not None and len(rows):
                plugin.set_source(base, rows)

    def logits_processors(self, base: BaseModel, strength: float = 1.0) -> Sequence[Any]:
        return ()

    @contextlib.contextmanager
    def attached(self, base: BaseModel, strength: float = 1.0) -> Iterator[None]:
        """All plugins, each for its rows. Raises OptionError on a strength below 0 or above 2."""
        check_strength(strength)
        changes_by_target: dict[tuple[Any, bool], list[tuple[int, Any]]] = {}
        for number, plugin in enumerate(self.plugins):
            for spot in (spots_of(base, plugin, strength) or ()) if plugin is not None else ():
                changes_by_target.setdefault((spot.target, spot.at_input), []).append((number, spot.change))
        points = (
            HookPoint(target, at_input, partial(self.apply_changes, changes))
            for (target, at_input), changes in changes_by_target.items()
        )
        with applied(points):
            yield

    def apply_changes(self, changes: list[tuple[int, Any]], output: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """The output (R, T, d) with the plugins' changes applied to their rows; `changes` are sorted by plugin."""
        each = len(output) // max(1, self.begins[-1])  # rows per sentence
        pieces: list[torch.Tensor] = []
        done, last = 0, -1
        for number, change in changes:
            begin, end = self.begins[number] * each, self.begins[number + 1] * each
            if begin == end:
                continue
            if number == last:  # another change of the same rows
                pieces[-1] = change(pieces[-1], inputs[begin:end])
                continue
            if begin > done:
                pieces.append(output[done:begin])
            pieces.append(change(output[begin:end], inputs[begin:end]))
            done, last = end, number
        if done < len(output):
            pieces.append(output[done:])
        return torch.cat(pieces)


def translate_mixed(
    base: BaseModel,
    texts: Sequence[str],
    plugins: Sequence[Plugin | PluginStack | None],
    *,
    strength: float = 1.0,
    decoding: Decoding | None = None,
) -> list[str]:
    """Translate texts with one plugin (or None) each. Raises InputError if the numbers differ.

    Plugins that work in the base's layers only share batches, each on its rows; otherwise texts are grouped by plugin.
    """
    from engine.decoding.translate import in_order, translate

    if len(plugins) != len(texts):
        raise InputError(
            "There are {plugins} plugins for {texts} texts. Specify one for each.", plugins=len(plugins), texts=len(texts)
        )
    plugins = acting_on(base, texts, plugins) if strength else plugins
    mixed = MixedBatch.of(base, plugins, strength)
    if mixed is not None:
        return translate(base, texts, mixed, strength=strength, decoding=decoding)
    groups: dict[int, list[int]] = {}
    for i, plugin in enumerate(plugins):
        groups.setdefault(id(plugin), []).append(i)
    parts: list[tuple[list[int], list[str]]] = []
    for rows in groups.values():
        group_texts = [texts[i] for i in rows]
        parts.append((rows, translate(base, group_texts, plugins[rows[0]], strength=strength, decoding=decoding)))
    return in_order(parts)


def acting_on(
    base: BaseModel, texts: Sequence[str], plugins: Sequence[Plugin | PluginStack | None]
) -> list[Plugin | PluginStack | None]:
    """What acts on each text: its plugin, or the base if that plugin's domain filter does not accept the text."""
    result: list[Any] = list(plugins)
    for plugin in {id(plugin): plugin for plugin in plugins if plugin is not None}.values():
        indices = [i for i, candidate in enumerate(plugins) if candidate is plugin]
        for adapter, positions in plugin.routes(base, [texts[i] for i in indices]):
            for position in positions:
                result[indices[position]] = adapter
    return result
