"""Decoding with a memory adapter: against a residual adapter, against projecting at each step, and as the memory grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from measures.row import Row
from measures.setup import Setup
from measures.timing import interleaved

__all__ = ["memory_vs_reprojecting", "memory_vs_residual", "translator"]


def translator(setup: Setup, texts: list[str], plugin: Any, beam: int = 4) -> Callable[[], list[str]]:
    """Translate texts in one batch."""
    from engine.base.decoding_options import Decoding
    from engine.decoding.translate import translate

    decoding = Decoding(guard=False, beam=beam, batch_tokens=1_000_000, max_length_ratio=1.6)
    return lambda: list(translate(setup.base, texts, plugin, decoding=decoding))


def memory_vs_residual(setup: Setup) -> list[Row]:
    """Rows 1: one batch of 128 sentences, and sentences one by one."""

    size = setup.size(20_000, 400)
    memory = setup.memory(size)
    plugins = {
        "residual": setup.plugin("residual_adapter"),
        "memory": setup.plugin("memory_adapter", memory, search="exact"),
        "memory, top k": setup.plugin("memory_adapter", memory, search="top_k"),
        "memory, 16 phrases": setup.plugin("memory_adapter", setup.memory(16), search="exact"),
        "memory by sentence": setup.plugin("memory_adapter", setup.sentence_memory(size), retrieval="sentence", bottleneck=128),
        "vanilla": None,
    }
    rows = []
    for batch, limit in ((6 if setup.small else 128, 1.3), (1, 1.5)):
        texts = setup.english[:batch] if batch > 1 else setup.english[:1]
        clock = interleaved({name: translator(setup, texts, plugin) for name, plugin in plugins.items()}, setup.rounds)
        same = sum(a == b for a, b in zip(clock.results["memory"], clock.results["residual"], strict=True))
        for name, label in (("memory", ""), ("memory, top k", " by top k"), ("memory by sentence", " by sentence")):
            rows.append(
                Row(
                    "memory_vs_residual", f"memory adapter{label} against residual adapter, beam 4, batch {batch}, {size:,} "
                    "phrases a layer", clock.ratio(name, "residual"), limit, wall=clock.ratio(name, "residual", "wall"),
                    note=f"{clock.ratio(name, 'vanilla'):.2f} of vanilla's time; with 16 phrases "
                    f"{clock.ratio('memory, 16 phrases', 'residual'):.2f}; {same} of {len(texts)} outputs the same",
                    figures=clock.to_mapping(),
                )
            )  # fmt: skip
    return rows


def memory_vs_reprojecting(setup: Setup) -> list[Row]:
    """Row 2: keys and values held, or computed from the memory at each step as the equations are written."""
    size = setup.size(20_000, 400)
    memory, rows = setup.memory(size), []
    held = setup.plugin("memory_adapter", memory, search="exact")
    again = setup.plugin("memory_adapter", memory, search="exact")
    for _, _, reader in again.module.readers():
        reader.read = reprojecting(reader)
        reader.forget_projection()
    for batch, limit in ((1, 10.0), (2 if setup.small else 32, None)):
        texts = sorted(setup.english, key=len)[:batch]
        systems = {"held": translator(setup, texts, held), "projecting": translator(setup, texts, again)}
        clock = interleaved(systems, setup.rounds)
        rows.append(
            Row(
                "memory_vs_reprojecting", f"memory adapter against projecting keys and values at each step, {size:,} phrases a "
                f"layer, batch {batch}", clock.ratio("projecting", "held"), limit, at_least=True,
                wall=clock.ratio("projecting", "held", "wall"), figures=clock.to_mapping(),
                note="same output" if clock.results["held"] == clock.results["projecting"] else "**other output**",
            )
        )  # fmt: skip
    return rows


def reprojecting(reader: Any) -> Callable[[Any], Any]:
    """Equation 4 word for word: softmax(Q Wq (K Wk)ᵀ / T) V Wv, nothing kept."""
    import torch

    def read(query: Any) -> Any:
        keys, values = reader.key(reader.memory), reader.value(reader.memory)  # (N, d)
        weights = torch.softmax(reader.query(query) @ keys.T * reader.inverse_temperature, -1)  # (..., N)
        return weights @ values  # (..., d)

    return read
