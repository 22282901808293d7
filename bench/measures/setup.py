"""What the rows share: the base, sentences, memories of any size, and modules of methods as they are before training.

An untrained plugin leaves the base's output as it is, bit for bit, so all systems make the same translations in the same number of
steps; what an attached plugin costs does not depend on its weights.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "assets" / "samples"

__all__ = ["ROOT", "SAMPLES", "Setup", "lines"]


def lines(*names: str) -> list[str]:
    """The lines of bundled samples that hold anything."""
    results: list[str] = []
    for name in names:
        results += [line.strip() for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines() if line.strip()]
    return results


@dataclass
class Setup:
    """How much is measured; `small` shrinks everything for a look within seconds."""

    base_path: str = str(ROOT / "assets" / "models" / "en-zh")
    source: str = "en"
    target: str = "zh"
    rounds: int = 5
    small: bool = False
    scale: float = 1.0  # of the sizes of memories and datastores
    scratch: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="tailormt-speed-")))

    def size(self, full: int, small: int) -> int:
        return small if self.small else max(small, int(full * self.scale))

    @cached_property
    def base(self) -> Any:
        from engine.base import BaseModel

        return BaseModel.load(self.base_path, self.source, self.target, device="cpu")

    @cached_property
    def english(self) -> list[str]:
        """Real sentences of the source language, of 8 to 16 tokens."""
        texts = lines("general-en/general-en.txt", "it-help-en/it-help.txt", "elizabethan-en/elizabethan-en.txt")
        return [line for line, ids in zip(texts, self.base.encode(texts), strict=True) if 8 <= len(ids) <= 16]

    @cached_property
    def chinese(self) -> list[str]:
        return lines("literary-zh/literary-zh.txt", "general-zh/general-zh.txt")

    def phrase_pairs(self, count: int, repeat: bool = True) -> list[Any]:
        """Pairs of stretches of real text, short ones first as phrases are, dealt to the layers by length."""
        from engine.memory import PhrasePair, assign_layers

        targets, sources = stretches(self.chinese, 10), stretches([line.split() for line in self.english], 7, " ")
        if len(targets) < count and not repeat:
            count = len(targets)
        # Every length gets its share: stretches lie by length.
        step = max(1.0, len(targets) / count)
        chosen = [targets[int(i * step) % len(targets)] for i in range(count)]
        from_step = len(sources) / count
        layers = assign_layers([len(text) for text in chosen], len(self.base.decoder_layers))
        return [
            PhrasePair(layer, text, sources[int(i * from_step) % len(sources)], len(text), 1)
            for i, (text, layer) in enumerate(zip(chosen, layers, strict=True))
        ]

    def memory_rows(self, count: int, seed: int = 1) -> list[tuple[Any, Any]]:
        """(target, source) rows (N, d) for each layer: recorded ones of real phrases, made more by noise around them."""
        import torch

        draw = torch.Generator().manual_seed(seed)
        results = []
        for layer in range(len(self.base.decoder_layers)):
            both = []
            for rows in (self.recorded.target(layer).float(), self.recorded.source(layer).float()):
                sampled = rows[torch.randint(len(rows), (count,), generator=draw)]  # (N, d)
                both.append(sampled + 0.3 * rows.std(0) * torch.randn(count, rows.shape[1], generator=draw))
            results.append((both[0], both[1]))
        return results

    @cached_property
    def recorded(self) -> Any:
        from engine.memory import record

        count = self.size(2000, 200)
        return record(self.base, self.phrase_pairs(count), self.scratch / "recorded.safetensors")

    def memory(self, count: int, seed: int = 1) -> Any:
        """A memory of `count` phrases a layer on disk."""
        from engine.memory import Memory
        from engine.memory.store import save_memory

        path = self.scratch / f"memory-{count}-{seed}.safetensors"
        if not path.exists():
            rows = self.memory_rows(count, seed)
            save_memory(path, dict(enumerate(rows)), base_fingerprint=self.base.fingerprint(), pooling="mean")
        return Memory(path)

    def sentence_memory(self, rows: int) -> Path:
        """The folder of a memory by sentence of at least so many rows: English lines, each with some Chinese line beside it; after
        the first thousands, halves of two lines.
        """
        from engine.corpora.types import SentencePair
        from engine.memory.sentence_memory import record_sentences
        from engine.methods.memory_adapter.config import MemoryAdapterConfig

        places = [(layer, attention) for layer in (-2, -1) for attention in ("self_attn", "encoder_attn")]
        places = [(layer + len(self.base.decoder_layers), attention) for layer, attention in places]
        pairs: list[SentencePair] = []
        tokens = 0
        while tokens < rows:
            i = len(pairs)
            turn, position = divmod(i, len(self.english))
            begin, end = (self.english[(position + shift) % len(self.english)].split() for shift in (0, turn))
            source = " ".join([*begin[: len(begin) // 2], *end[len(end) // 2 :]])  # the line itself in the first turn
            pairs.append(SentencePair(source, self.chinese[i * 7 % len(self.chinese)]))
            tokens += len(self.base.encode_target([pairs[-1].target])[0])
        folder = self.scratch / f"sentences-{rows}"
        folder.mkdir(exist_ok=True)
        record_sentences(self.base, pairs, places, MemoryAdapterConfig().key_size).save(folder)
        return folder

    def module(self, name: str, memory: Any = None, ready: bool = True, **settings: Any) -> tuple[Any, Any]:
        """(method, module), untrained; ready to decode, or in training mode."""
        import torch

        from engine.methods import get_method
        from engine.methods.interface import Artefacts

        torch.manual_seed(1)
        method = get_method(name)
        config = method.config_class(**settings)
        artefacts = method.open(memory, self.base, config) if isinstance(memory, Path) else Artefacts(memory=memory)
        module = method.build(self.base, artefacts, config)
        if ready:
            method.prepare_for_inference(module)
        return method, module

    def plugin(self, name: str, memory: Any = None, **settings: Any) -> Any:
        from engine.plugins import Plugin

        method, module = self.module(name, memory, **settings)
        return Plugin(method, module, {"name": name})


def stretches(texts: list[Any], longest: int, join: str = "") -> list[str]:
    """All different stretches of up to `longest` units of the texts, the short ones first."""
    result: dict[str, None] = {}
    for length in range(1, longest + 1):
        for text in texts:
            for begin in range(len(text) - length + 1):
                part = text[begin : begin + length]
                result[part if isinstance(part, str) else join.join(part)] = None
    return list(result)
