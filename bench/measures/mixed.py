"""Many plugins over one base at the same time: sentences in one batch against one batch a plugin."""

from __future__ import annotations

from typing import Any

from measures.row import Row
from measures.setup import Setup
from measures.timing import interleaved

__all__ = ["many_plugins"]


def many_plugins(setup: Setup) -> list[Row]:
    """Row 9: 64 sentences with 64 plugins. Memory adapters as `quick` makes them share a memory's values here, not its tensors."""
    from engine.base.decoding_options import Decoding
    from engine.decoding.translate import translate
    from engine.plugins.mixed_batch import translate_mixed

    count, rows = 4 if setup.small else 64, []
    texts = setup.english[:count]
    decoding = Decoding(guard=False, batch_tokens=1_000_000, max_length_ratio=1.6)
    size = setup.size(500, 30)
    for name, settings in (("residual_adapter", {}), ("memory_adapter", {"memory": setup.memory(size)})):
        plugins = [setup.plugin(name, **settings) for _ in texts]

        def together(plugins: list[Any] = plugins) -> list[str]:
            return list(translate_mixed(setup.base, texts, plugins, decoding=decoding))

        def apart(plugins: list[Any] = plugins) -> list[str]:
            return [
                translate(setup.base, [text], plugin, decoding=decoding)[0] for text, plugin in zip(texts, plugins, strict=True)
            ]

        clock = interleaved({"together": together, "by plugin": apart}, setup.rounds)
        same = sum(a == b for a, b in zip(clock.results["together"], clock.results["by plugin"], strict=True))
        what = f"{name.replace('_', ' ')}s" + (f" of {size:,} phrases a layer" if settings else "")
        rows.append(
            Row(
                "many_plugins", f"{count} sentences, {count} {what}: one batch against one a plugin",
                clock.ratio("by plugin", "together"), 4.0, at_least=True,
                wall=clock.ratio("by plugin", "together", "wall"), figures=clock.to_mapping(),
                note=f"{same} of {count} outputs the same",
            )
        )  # fmt: skip
    return rows
