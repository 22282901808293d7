"""The memory-augmented adapter with retrieval by sentence: creating and replacing its memory, its loss, and attributions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.core.progress import Progress
from engine.errors import BundleError
from engine.methods.ablation import Material, UnavailableError, gaussian_like
from engine.methods.interface import Artefacts, Batch, Loss
from engine.methods.reading import encode_pair, reads_of

if TYPE_CHECKING:
    from torch import Tensor

    from engine.corpora.types import SentencePair
    from engine.memory.sentence_memory import SentenceMemory
    from engine.methods.data import Samples
    from engine.methods.memory_adapter.config import MemoryAdapterConfig
    from engine.methods.memory_adapter.layered import LayeredReaders
    from engine.methods.memory_adapter.sentence_reader import SentenceReaders

GENERAL = 5.0  # weight of tokens of general text, as in the gate of kNN decoding by sentence


def prepare(samples: Samples, config: MemoryAdapterConfig, progress: Progress) -> Artefacts:
    """Record the memory of all samples except the held-out ones; finished files in the workspace are reused."""
    from safetensors import safe_open

    from engine.memory.sentence_memory import FILE, record_sentences
    from engine.methods.memory_adapter.sentence_reader import SentenceReaders

    base, folder = samples.pair.forward, samples.workspace
    if not (folder / FILE).exists():
        progress.begin("Recording the memory", progress.index, progress.steps)
        locations = SentenceReaders(base.d_model, len(base.decoder_layers), config).locations()
        record_sentences(base, samples.pairs("memory"), locations, config.key_size, progress).save(folder)
    artefacts = files_of(folder)
    with safe_open(folder / FILE, framework="pt") as tensors:
        artefacts.remembered = tensors.get_slice("tokens").get_shape()[0]
    return artefacts


def files_of(folder: Path) -> Artefacts:
    from engine.memory.sentence_memory import FILE, TEXTS
    from engine.memory.source_index import OF_MEMORY

    names = (FILE, OF_MEMORY, TEXTS)
    return Artefacts(files={name: folder / name for name in names if (folder / name).exists()}, folder=folder)


def build(base: BaseModel, artefacts: Artefacts, config: MemoryAdapterConfig) -> SentenceReaders:
    """A new module with its memory. Raises BundleError if the memory is damaged or does not fit the settings."""
    from engine.memory.sentence_memory import FILE, SentenceMemory
    from engine.methods.memory_adapter.sentence_reader import SentenceReaders

    module = SentenceReaders(base.d_model, len(base.decoder_layers), config).to(base.device)
    memory = SentenceMemory.open(artefacts.files[FILE].parent, base) if FILE in artefacts.files else None
    sizes = {len(axes.basis) for axes in memory.axes.values()} if memory is not None else set()
    if memory is not None and (set(memory.keys) != set(module.locations()) or sizes != {min(config.key_size, base.d_model)}):
        raise BundleError("{file} does not fit the settings. Get a new copy of the bundle.", file=FILE)
    module.set_memory(memory, base)
    return module


def replacement(base: BaseModel, module: SentenceReaders, pairs: Sequence[SentencePair], progress: Progress) -> SentenceMemory:
    from engine.memory.sentence_memory import record_sentences

    axes = module.memory.axes if module.memory is not None else None
    return record_sentences(base, pairs, module.locations(), module.config.key_size, progress, axes)


def loss_with_general_text(base: BaseModel, module: SentenceReaders, batch: Batch) -> Loss:
    """NLL of the samples' tokens plus `GENERAL` KL(p_base || p) at tokens of general text, which should not change; a mean over all
    target tokens. The likelihood of the base's translations would not suffice: it allows uncertain words to change.
    """
    import torch

    from engine.methods.losses import log_probabilities

    with dropped_out(base, module, batch):
        log_p = log_probabilities(base, batch)  # (M, V)
    labels = batch.labels[batch.labels != base.pad]  # (M,)
    general = torch.tensor([batch.pairs.sentences[i].general for i in batch.rows], device=labels.device)  # (B,)
    which = general[:, None].expand_as(batch.labels)[batch.labels != base.pad]  # (M,)
    part = replace(
        batch, sources=batch.sources[general], mask=batch.mask[general], inputs=batch.inputs[general],
        labels=batch.labels[general], encoded=None if batch.encoded is None else batch.encoded[general],
    )  # fmt: skip
    with module.silent(), torch.no_grad():
        base_log_p = log_probabilities(base, part)  # (m, V)
    divergence = (base_log_p.exp() * (base_log_p - log_p[which])).sum(-1)  # (m,)
    sample_log_p, smoothing = log_p[~which], module.config.label_smoothing  # (M - m, V)
    gold = -sample_log_p.gather(1, labels[~which][:, None]).sum()  # ()
    smoothed = (1 - smoothing) * gold - smoothing * sample_log_p.mean(-1).sum()  # ()
    nll, drift = gold / max(1, len(sample_log_p)), divergence.sum() / len(divergence)
    return Loss((smoothed + GENERAL * divergence.sum()) / len(labels), {"nll": nll.item(), "drift": drift.item()})


def dropped_out(base: BaseModel, module: LayeredReaders, batch: Batch) -> AbstractContextManager[None]:
    """Apply `base_dropout` in the base's decoder layers, and in its encoder layers if the encoder is trained, inside the block."""
    from engine.methods.weight_swap import dropout_in

    layers = [*base.decoder_layers, *(base.model.get_encoder().layers if batch.encoded is None else ())]
    return dropout_in(layers, module.config.base_dropout)


def reading_figures(module: SentenceReaders) -> list[dict[str, Any]]:
    """Figures of each reader over the positions of the last batch: `rows`, the effective number of rows read (exp of the mean
    entropy); `distinct`, the number of distinct heaviest rows divided by the number of positions; `gate` and `gate_spread`, mean
    and standard deviation of 1 - λ.
    """
    results = []
    for layer, attention, reader in module.readers():
        if "weights" not in (reader.recorded or {}):
            continue
        top = reader.recorded["weights"].argmax(-1).flatten()  # (B n,)
        opened = 1 - reader.recorded["gate"]  # (B, n, 1)
        results.append(
            {
                "layer": layer,
                "place": attention,
                "rows": round(float(reader.recorded["entropy"].mean().exp()), 2),
                "distinct": round(len(top.unique()) / len(top), 4),
                "gate": round(float(opened.mean()), 4),
                "gate_spread": round(float(opened.std()), 4),
            }
        )
    return results


def ablate(base: BaseModel, module: SentenceReaders, kind: str, material: Material) -> None:
    """See `Method.ablate`. Keys are states, values are tokens. As tokens have no mean, with "mean" all rows have the same key.
    Raises UnavailableError if the plugin has no memory.
    """
    from engine.memory.sentence_memory import Keys

    memory = module.memory
    if memory is None:
        raise UnavailableError("The plugin has no memory that could be replaced.")
    if kind == "empty":
        memory = None
    elif kind in ("foreign", "oracle"):
        memory = replacement(base, module, material.pairs(kind), material.progress)
    elif kind == "shuffled":
        memory = memory.changed(tokens=memory.tokens[material.order(len(memory))])
    elif kind == "mean":
        memory = memory.changed(
            keys={location: Keys.of(keys[:].mean(0, keepdim=True).expand(len(keys), -1)) for location, keys in memory.keys.items()}
        )
    else:  # noise replaces both the keys and, by shuffling, the tokens
        keys = {
            location: Keys.of(gaussian_like(location_keys[:], len(location_keys), material.generator(number)))
            for number, (location, location_keys) in enumerate(memory.keys.items())
        }
        memory = memory.changed(keys=keys, tokens=memory.tokens[material.order(len(memory))])
    module.set_memory(memory, base)


def attributions(base: BaseModel, module: SentenceReaders, source: str, translation: str, top: int) -> list[dict[str, Any]]:
    """For each target token and reader: the gate λ and the `top` rows with their weights. The module must be attached.

    Sentences are empty strings if the bundle does not contain them.
    """
    memory = module.memory
    if memory is None:
        return []
    sources, labels, tokens = encode_pair(base, source, translation)
    module.set_source(base, sources)
    assert module.shortlist is not None
    rows, real = module.shortlist.rows[0], int(module.shortlist.real[0].sum())  # (R,)
    if not real:
        return []

    def items(layer: int, reader: Any, weights: Tensor) -> list[dict[str, Any]]:
        heaviest = weights[:real].topk(min(top, real))  # (k,), (k,)
        return [item(base, memory, int(rows[i]), float(weight)) for weight, i in zip(*heaviest, strict=True)]

    return reads_of(base, module.readers(), sources, labels, tokens, items)


def item(base: BaseModel, memory: SentenceMemory, row: int, weight: float) -> dict[str, Any]:
    """A row of the memory as plain data, in the same form as entries in kNN decoding."""
    sentence = memory.sentences[memory.sentence_of(row)] if memory.sentences else None
    return {
        "text": sentence.target if sentence else "",
        "source": sentence.source if sentence else "",
        "weight": weight,
        "token": base.tokenizer.convert_ids_to_tokens([int(memory.tokens[row])])[0],
        "row": row,
    }
