"""Several plugins at once over one base, each working on what the one before it left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engine.plugins.plugin import Plugin

if TYPE_CHECKING:
    from engine.base import BaseModel

__all__ = ["PluginStack"]


class PluginStack:
    """Plugins attached in order: the second one's anchors and queries are the first one's output."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = list(plugins)
        self.name = " + ".join(plugin.name for plugin in plugins)
        decoding: dict[str, Any] = {}
        for plugin in plugins:
            decoding |= plugin.card.get("decoding", {})
        self.card = {"decoding": decoding}

    @contextlib.contextmanager
    def attached(self, base: BaseModel, strength: float = 1.0) -> Iterator[None]:
        """All plugins at the same strength; raises as `Plugin.attached` does."""
        with contextlib.ExitStack() as stack:
            for plugin in self.plugins:
                stack.enter_context(plugin.attached(base, strength))
            yield

    def logits_processors(self, base: BaseModel, strength: float = 1.0) -> list[Any]:
        """Those of all plugins, in order."""
        return [hook for plugin in self.plugins for hook in plugin.logits_processors(base, strength)]
