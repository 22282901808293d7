"""What the tests of the methods that look sentences up share: samples, a trained-looking module, batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora.types import SentencePair
from engine.methods import get_method
from engine.methods.batches import Pairs
from engine.methods.data import Samples
from engine.methods.interface import Batch
from tests.bases import SENTENCES

__all__ = ["SMALL", "TWINS", "alike", "batch_of", "forward", "samples_of", "trained_module"]

SMALL: dict[str, dict[str, Any]] = {
    "ngram_memory": {"neighbours": 3, "neighbours_translating": 3},
    "translation_memory": {"warm_updates": 2, "warm_batch": 4, "memory_layers": 1, "retriever_layers": 1, "neighbours": 3},
}
# The same text but for trifles, on the target side and on the source side.
TWINS = [("It has stopped raining.", "雨停了！"), ("the rain stopped", "雨不再下。")]


def samples_of(base: Any, workspace: Path, extra: list[tuple[str, str]] = TWINS) -> Samples:
    """Sentence pairs as the main job hands them over."""
    from engine.base import LanguagePair

    workspace.mkdir(parents=True, exist_ok=True)
    pairs = [SentencePair(source, target) for source, target in [*SENTENCES, *extra]]
    parts = {"train": pairs, "valid": pairs[:3]}
    pair = LanguagePair(base, base.for_direction("zh", "en"))
    return Samples(pair, [], [], workspace, load_settings(), sentence_pairs=parts)


def trained_module(name: str, base: Any, workspace: Path, *, moved: bool = True, **options: Any) -> Any:
    """A module over prepared samples; `moved` gives every weight a value that is not its first one."""
    method = get_method(name)
    config = method.config_class(**options)
    artefacts = method.prepare(samples_of(base, workspace), config, Progress())
    torch.manual_seed(3)
    module = method.build(base, artefacts, config)
    if moved:
        torch.manual_seed(4)
        for key, parameter in module.named_parameters():
            parameter.data += 0.04 if key.endswith("scale") else torch.randn_like(parameter) * 0.05
    method.prepare_for_inference(module)
    return module


def batch_of(base: Any, pairs: list[tuple[str, str]] | None = None, step: int = 0) -> Batch:
    pairs = pairs or SENTENCES
    encoded_pairs = Pairs.encode(base, [SentencePair(*pair) for pair in pairs])
    sources, labels = base.pad_batch(encoded_pairs.sources), base.pad_batch(encoded_pairs.labels)
    mask = (sources != base.pad).long()
    with torch.no_grad():
        encoded = base.model.get_encoder()(input_ids=sources, attention_mask=mask).last_hidden_state
    return Batch(sources, mask, encoded, base.shift_right(labels), labels, step, encoded_pairs, range(len(pairs)))


def forward(base: Any, batch: Batch) -> torch.Tensor:
    """The base's logits as it is attached now."""
    with torch.no_grad():
        return base.model(
            input_ids=batch.sources, attention_mask=batch.mask, decoder_input_ids=batch.inputs, use_cache=False
        ).logits


def alike(base: Any) -> list[str]:
    """Sources of as many tokens each, so that a translation may get as long in a batch as alone."""
    words = ["letter", "door", "road", "rain"]
    sources = [f"I waited for the {word}." for word in words] + ["The old road is long."]
    sizes = [len(ids) for ids in base.encode(sources)]
    most = max(set(sizes), key=sizes.count)
    results = [source for source, size in zip(sources, sizes, strict=True) if size == most]
    assert len(results) > 1
    return results
