"""Several plugins at once over one base, each working on the output of the previous one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.base.adapter import Routes, Translate
from engine.base.decoding_options import Decoding
from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.decoding.translate import search
from engine.plugins.plugin import Plugin

if TYPE_CHECKING:
    import torch


class PluginStack:
    """Plugins attached in order: the second one's anchors and queries are the first one's output.

    `weights`, one per plugin, multiply the strength; by default they are 1.
    """

    def __init__(self, plugins: Sequence[Plugin], weights: Sequence[float] | None = None) -> None:
        self.plugins = list(plugins)
        self.weights = [1.0] * len(self.plugins) if weights is None else list(weights)
        self.name = " + ".join(plugin.name for plugin in plugins)
        decoding: Json = {}
        for plugin in plugins:
            decoding |= plugin.card.get("decoding", {})
        self.card = {"decoding": decoding}

    @contextlib.contextmanager
    def attached(self, base: BaseModel, strength: float = 1.0) -> Iterator[None]:
        """All plugins, each at its weight times the strength. Raises as `Plugin.attached` does."""
        with contextlib.ExitStack() as stack:
            for plugin, weight in zip(self.plugins, self.weights, strict=True):
                stack.enter_context(plugin.attached(base, strength * weight))
            yield

    @property
    def needs_fixed_batch(self) -> bool:
        """Whether finished sentences must remain in the batch until it is decoded."""
        return any(plugin.needs_fixed_batch for plugin in self.plugins)

    @property
    def batches_beams_per_sentence(self) -> bool:
        """Whether cross-attention may be called once for all hypotheses of a sentence."""
        return all(plugin.batches_beams_per_sentence for plugin in self.plugins)

    def check_likelihood(self) -> None:
        for plugin in self.plugins:
            plugin.check_likelihood()

    def set_source(self, base: BaseModel, sources: torch.Tensor) -> None:
        """Pass the source tokens (B, S) of the next batch to all plugins."""
        for plugin in self.plugins:
            plugin.set_source(base, sources)

    def on_batch_shrink(self, active: torch.Tensor) -> None:
        """Pass the indices (b,) of the sentences that remain in the batch to all plugins."""
        for plugin in self.plugins:
            plugin.on_batch_shrink(active)

    def routes(self, base: BaseModel, texts: Sequence[str]) -> Routes:
        """Which plugins act on which sources; empty if none has a domain filter."""
        if all(plugin.domain_filter is None for plugin in self.plugins):
            return []
        places: dict[tuple[float, ...], list[int]] = {}
        for i, shares in enumerate(zip(*(plugin.shares(base, texts) for plugin in self.plugins), strict=True)):
            places.setdefault(shares, []).append(i)
        return [(self.of(shares), rows) for shares, rows in places.items()]

    def of(self, shares: Sequence[float]) -> PluginStack | None:
        """An unfiltered stack of the plugins with a share above 0, at that share of their weights; None if there are none."""
        parts = [
            (plugin.unfiltered, weight * share)
            for plugin, weight, share in zip(self.plugins, self.weights, shares, strict=True)
            if share
        ]
        return PluginStack([plugin for plugin, _ in parts], [weight for _, weight in parts]) if parts else None

    def translate(
        self, base: BaseModel, texts: Sequence[str], inner: Translate, strength: float, decoding: Decoding, progress: Progress
    ) -> list[str] | None:
        """The translations of the last plugin with its own decoding, over all the others; None if there is no such plugin."""
        for position in reversed(range(len(self.plugins))):
            remaining = [i for i in range(len(self.plugins)) if i != position]
            remaining_stack = (
                PluginStack([self.plugins[i] for i in remaining], [self.weights[i] for i in remaining]) if remaining else None
            )

            def others(sentences: Sequence[str], stack: PluginStack | None = remaining_stack) -> list[str]:
                return search(base, sentences, stack, strength, decoding, Progress())

            plugin_strength = strength * self.weights[position]
            translations = self.plugins[position].translate(base, texts, others, plugin_strength, decoding, progress)
            if translations is not None:
                return translations
        return None

    def logits_processors(self, base: BaseModel, strength: float = 1.0) -> list[Any]:
        """The logits processors of all plugins, in order."""
        return [
            hook
            for plugin, weight in zip(self.plugins, self.weights, strict=True)
            for hook in plugin.logits_processors(base, strength * weight)
        ]
