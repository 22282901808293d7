"""The memory-augmented adapter (paper 1): phrase pairs, memory, readers, and the loss of equation 9."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.base import BaseModel
from engine.core.progress import Progress
from engine.errors import BundleError, CorpusError, OptionError
from engine.memory import Memory, PairRules, load_pairs, open_memory, record, save_pairs, translate_phrases
from engine.memory.phrase_pairs import by_bounds
from engine.methods.ablation import Material, gaussian_like
from engine.methods.cost import Cost, Workload
from engine.methods.data import Samples
from engine.methods.interface import Artefacts, Batch, Budgets, Capabilities, HookPoint, Loss, Method
from engine.methods.layer_hooks import applied
from engine.methods.layer_hooks import hook_points as adapter_hook_points
from engine.methods.memory_adapter import by_sentence
from engine.methods.memory_adapter.config import RELEASED_CODE, MemoryAdapterConfig
from engine.methods.weight_groups import part_of

if TYPE_CHECKING:
    import torch

    from engine.methods.memory_adapter.layered import LayeredReaders
    from engine.methods.memory_adapter.module import MemoryAdapterModule

# Training together with the base's weights (table 7 of the paper), at rates suited to a few hundred updates: at four times these
# rates, adapters and readers only memorise the pairs (bench/EXPERIMENTS.md). The costly second pass of equation 9 is omitted.
TUNED: Mapping[str, Any] = {
    "retrieval": "sentence", "bottleneck": 128, "alpha": 0.0, "beta": 0.0, "fine_tune": "auto", "fine_tune_speed": 0.4,
    "label_smoothing": 0.1, "base_dropout": None,
}  # fmt: skip
TUNED_KEYS = "tuned."  # prefix of the keys of the base's tuned weights
PAIRS: Mapping[str, Any] = {"keep_pairs": 1.0, "max_epochs": 4}
SHARP = 2.5  # multiplier of the learning rate for retrieval by sentence
ALONG = 0.25  # further multiplier if the base's weights are trained too


class MemoryAdapter(Method):
    """Reads a memory of the user's samples inside the decoder and mixes it in through a learned gate."""

    name: ClassVar[str] = "memory_adapter"
    config_class = MemoryAdapterConfig
    budgets: ClassVar[Budgets] = {
        "quick": {"method": TUNED, "training": dict(PAIRS, max_updates=300, max_minutes=5)},
        "balanced": {"method": {**TUNED, "fine_tune_speed": 0.8}, "training": dict(PAIRS, max_updates=2400)},
        "best": {"method": TUNED},
    }
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": dict(start="released_code", init="random"), "released_code": RELEASED_CODE,
    }  # fmt: skip
    capabilities = Capabilities(
        title="Memory adapter",
        summary="Reads, inside the decoder, what your samples say in similar contexts, through a learned gate.",
        source="Xu et al., Pluggable Neural Machine Translation Models via Memory-augmented Adapters (2023)",
        needs_phrases=True,
        needs_pairs=True,
        offers_reads=True,
        has_memory=True,
    )

    def reads_phrases(self, config: MemoryAdapterConfig) -> bool:
        return config.retrieval == "global"

    def prepare(self, samples: Samples, config: MemoryAdapterConfig, progress: Progress) -> Artefacts:
        """Record the memory: of the samples' pairs for retrieval by sentence, otherwise of phrase pairs, assigned to layers.

        Raises OptionError if the base lacks a layer, or CorpusError if the samples have no phrases.
        """
        pair = samples.pair
        layers = len(pair.forward.decoder_layers)
        if config.layers is not None and max(config.layers) >= layers:
            raise OptionError(
                "layers: the base {base} has {layers} decoder layers, numbered from 0 to {last}.",
                base=pair.forward.name, layers=layers, last=layers - 1,
            )  # fmt: skip
        config = config.replace(fine_tune=part_of(config.fine_tune, samples.sourced))
        make = by_sentence.prepare if config.retrieval == "sentence" else self.prepare_global
        artefacts = make(samples, config, progress)
        artefacts.config = config
        return artefacts

    def prepare_global(self, samples: Samples, config: MemoryAdapterConfig, progress: Progress) -> Artefacts:
        """Make phrase pairs and record the memory of each layer. Raises CorpusError if the samples have no phrases."""
        phrases, pair, workspace = samples.phrases, samples.pair, samples.workspace
        layers = len(pair.forward.decoder_layers)
        if config.bounds:
            by_bounds([], config.bounds, layers)  # raises before any work is done
        pairs_file, memory_file = workspace / "phrase_pairs.jsonl", workspace / "memory.safetensors"
        if not pairs_file.exists():
            if phrases is None or not phrases.phrases:
                raise CorpusError("No phrases were found in the samples. Add more sentences in the target language.")
            phrase_sources = aligned_sources(samples, [phrase.text for phrase in phrases], config.aligner, progress)
            progress.begin("Translating phrases back", progress.index, progress.steps)
            rules = PairRules(
                order=config.order,
                max_length_ratio=config.max_length_ratio,
                per_layer=config.phrases_per_layer,
                typicality=typicality(samples, config, progress),
                unit=config.length_unit,
                bounds=config.bounds,
            )
            pairs = translate_phrases(
                phrases.phrases,
                pair.backward,
                layers,
                rules,
                known=phrase_sources,
                round_trip=pair.forward if config.round_trip else None,
                partial=workspace / "phrase_pairs.partial.jsonl",
                progress=progress,
            )
            save_pairs(pairs, pairs_file)
        if not memory_file.exists():
            progress.begin("Recording the memory", progress.index, progress.steps)
            record(pair.forward, load_pairs(pairs_file), memory_file, pooling=config.pooling, progress=progress)
        return Artefacts(memory=Memory(memory_file), files={"phrases.jsonl": pairs_file, "memory.safetensors": memory_file})

    def open(self, folder: Path, base: BaseModel, config: MemoryAdapterConfig) -> Artefacts:
        from engine.memory.sentence_memory import FILE

        if config.retrieval == "sentence":
            artefacts = by_sentence.files_of(folder)
            if FILE not in artefacts.files:
                raise BundleError("it has no {file}, which the method reads. Get a new copy of the bundle.", file=FILE)
            return artefacts
        phrases = folder / "phrases.jsonl"
        files = {phrases.name: phrases} if phrases.exists() else {}
        return Artefacts(open_memory(folder, base), files, folder=folder)

    def cost(self, config: MemoryAdapterConfig, work: Workload) -> Cost:
        shape, d, per_layer = work.shape, work.shape.d, config.phrases_per_layer
        layers = len(set(config.layers)) if config.layers is not None else 0
        added = shape.decoder * (2 * d * config.bottleneck + config.bottleneck + d) if config.bottleneck else 0
        terms = 1.5 if config.alpha or config.beta else 1.0
        part = part_of(config.fine_tune, work.sourced)
        tuned = shape.part(part) if part != "none" else 0.0
        slower = {"none": 0.0, "all": 0.7}.get(part, 0.2)
        if config.retrieval == "sentence":
            readers = (layers or min(config.reading_layers, shape.decoder)) * len(config.places)
            r = min(config.key_size, d)
            added += readers * (r * r + d * d + 64 * d)
            return Cost(
                weights=added + tuned, bytes_each=(4 * added + tuned) / (added + tuned), training=1.1 + slower, terms=terms,
                units=work.total_characters, preparing=1.1, decoding=1.3, files=work.total_characters * (6 + (r + 1) * readers),
            )  # fmt: skip
        added += (layers or shape.decoder) * len(config.places) * (3 * d * d + (2 * d * d + d if config.gate else 0) + 1)
        selected = min(work.phrases, per_layer * shape.decoder) if per_layer else work.phrases
        return Cost(
            weights=added + tuned, bytes_each=(4 * added + tuned) / (added + tuned), training=0.9 + slower, terms=terms,
            units=selected, preparing=8.6, files=selected * (4 * d + 90),
        )  # fmt: skip

    def build(self, base: BaseModel, artefacts: Artefacts, config: MemoryAdapterConfig) -> LayeredReaders:
        from engine.methods.weight_swap import TunedWeights

        if config.retrieval == "sentence":
            module: LayeredReaders = by_sentence.build(base, artefacts, config)
        else:
            module = self.build_global(base, artefacts, config)
        module.add_adapters(base.d_model, len(base.decoder_layers))
        if config.fine_tune != "none":
            module.tuned = TunedWeights(base, part_of(config.fine_tune))
        return module.to(base.device)

    def build_global(self, base: BaseModel, artefacts: Artefacts, config: MemoryAdapterConfig) -> MemoryAdapterModule:
        from engine.methods.memory_adapter.init import start_from_base
        from engine.methods.memory_adapter.module import MemoryAdapterModule

        module = MemoryAdapterModule(base.d_model, len(base.decoder_layers), config).to(base.device)
        module.phrase_file = artefacts.files.get("phrases.jsonl")
        module.keep_graphs(artefacts.folder)
        if artefacts.memory is not None:
            module.set_memory(artefacts.memory)
            if config.init == "base" and base.precision != "int8":  # a loaded plugin brings its own weights
                start_from_base(module, base)
        return module

    def changes_encoder(self, module: Any) -> bool:
        return module.tuned is not None and module.tuned.changes_encoder

    def lr_scale(self, module: Any) -> float:
        """Readers by sentence have sharp keys from the start and tolerate a higher rate."""
        if module.config.retrieval == "global":
            return 1.0
        return SHARP * (ALONG if module.tuned is not None else 1.0)

    def lr_scales(self, module: Any) -> Mapping[str, float]:
        """Adapters use the rate of Houlsby adapters, or a lower one if the base's weights are trained too."""
        adapters = 1 / SHARP if module.config.retrieval == "sentence" else 1.0
        return {TUNED_KEYS: module.config.fine_tune_speed, "adapters.": adapters}

    def after_training(self, module: Any) -> None:
        self.shrink(module, module.config.shrink)

    def shrink(self, module: Any, share: float) -> None:
        import torch

        if module.tuned is not None:
            module.tuned.shrink(share)
        with torch.no_grad():
            for _, _, reader in module.readers():
                if module.config.retrieval == "sentence":
                    reader.value.weight *= share
                elif reader.scale is not None:
                    reader.scale *= share
            for _, _, _, part in module.adapters.placed():
                part.up.weight *= share
                part.up.bias *= share

    def packed(self, module: Any) -> Mapping[str, torch.Tensor]:
        weights = super().packed(module)
        return with_tuned(weights, module.tuned.packed()) if module.tuned is not None else weights

    def unpacked(self, module: Any, weights: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        tuned = {key.removeprefix(TUNED_KEYS): weight for key, weight in weights.items() if key.startswith(TUNED_KEYS)}
        return with_tuned(weights, module.tuned.unpacked(tuned)) if module.tuned is not None else weights

    def prepare_for_inference(self, module: Any) -> None:
        module.eval()
        if module.config.retrieval == "global":
            module.project()

    def set_source(self, base: BaseModel, module: Any, sources: torch.Tensor, batch: Batch | None = None) -> None:
        if module.config.retrieval == "sentence":
            module.set_source(base, sources, batch)

    def on_batch_shrink(self, module: Any, active: torch.Tensor) -> None:
        if module.config.retrieval == "sentence":
            module.on_batch_shrink(active)

    def needs_fixed_batch(self, module: Any) -> bool:
        """False: `on_batch_shrink` removes the data of finished sentences."""
        return False

    @contextlib.contextmanager
    def observed(self, module: Any) -> Iterator[dict[str, Any]]:
        observations: dict[str, Any] = {}
        if module.config.retrieval == "global":
            yield observations
            return
        for _, _, reader in module.readers():
            reader.recorded = {}
        try:
            yield observations
            observations["readers"] = by_sentence.reading_figures(module)
        finally:
            for _, _, reader in module.readers():
                reader.recorded = None

    def misled(self, module: Any) -> contextlib.AbstractContextManager[None] | None:
        return module.rolled() if module.config.retrieval == "sentence" else None

    def ablate(self, base: BaseModel, module: Any, kind: str, material: Material) -> None:
        """Replace the rows of each reader; "foreign" and "oracle" phrases are extracted and recorded like those of the samples."""
        if module.config.retrieval == "sentence":
            return by_sentence.ablate(base, module, kind, material)
        module.keep_graphs(None)
        if kind in ("foreign", "oracle"):
            artefacts = self.prepare(material.samples(kind), module.config, material.progress)
            assert artefacts.memory is not None
            module.set_memory(artefacts.memory)
        for number, (_, _, reader) in enumerate(module.readers()):
            rows = reader.memory  # (N, d)
            if kind == "empty" or not len(rows):
                reader.memory = rows[:0]  # (0, d)
            elif kind == "mean":
                reader.memory = rows.float().mean(0, keepdim=True).to(rows)  # (1, d)
            elif kind == "noise":
                reader.memory = gaussian_like(rows, len(rows), material.generator(number)).to(rows)  # (N, d)
            elif kind == "shuffled":
                reader.search = "exact"  # an index has no separate values
        self.prepare_for_inference(module)
        if kind == "shuffled":
            for _, _, reader in (entry for entry in module.readers() if len(entry[2].memory) > 1):
                reader.values = reader.values[material.order(len(reader.values)).to(reader.values.device)]  # (N, d)

    def batches_beams_per_sentence(self, module: Any) -> bool:
        """True: readers treat positions independently."""
        return True

    @contextlib.contextmanager
    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> Iterator[None]:
        """Hook the attention modules of the decoder layers, apply bottleneck adapters, and exchange tuned weights, if any. No-op at
        strength 0.
        """
        tuned = module.tuned.exchanged(strength) if module.tuned is not None else contextlib.nullcontext()
        with tuned, applied(hook_points(base, module, strength)):
            yield

    def hook_points(self, base: BaseModel, module: Any, strength: float = 1.0) -> list[HookPoint] | None:
        return None if module.tuned is not None else hook_points(base, module, strength)

    def loss(self, base: BaseModel, module: Any, batch: Batch) -> Loss:
        """Equation 9: NLL(M) + α NLL(M̂) + β ½ (KL(p‖q) + KL(q‖p)), each term a mean over target tokens."""
        from engine.methods.losses import log_probabilities
        from engine.methods.memory_adapter.two_pass import CachedFirstPass
        from engine.methods.weight_swap import smoothed

        config: MemoryAdapterConfig = module.config
        if config.retrieval == "sentence" and any(batch.pairs.sentences[i].general for i in batch.rows):
            return by_sentence.loss_with_general_text(base, module, batch)
        once = batch.step < config.likelihood_updates or not (config.alpha or config.beta)
        first = CachedFirstPass(base.decoder_layers)
        with by_sentence.dropped_out(base, module, batch):
            with contextlib.nullcontext() if once else first.recording():
                full = log_probabilities(base, batch)  # (M, V)
            nll, plain = smoothed(base, full, batch, config.label_smoothing)
            if once:
                return Loss(nll, {"nll": plain})
            try:
                # With no memory dropped and no other dropout, the second pass equals the first.
                if not module.drop() and config.base_dropout == 0:
                    total = (1 + config.alpha) * nll
                    return Loss(total, {"nll": plain, "nll_dropped": plain, "agreement": 0.0})
                # With dropout in the base, all layers differ in the second pass.
                with first.below(0 if config.base_dropout != 0 else module.lowest_dropped()):
                    part = log_probabilities(base, batch)  # (M, V)
            finally:
                module.undrop()
        nll_dropped, plain_dropped = smoothed(base, part, batch, config.label_smoothing)
        agreement = symmetric_kl(full, part)
        total = nll + config.alpha * nll_dropped + config.beta * agreement
        return Loss(total, {"nll": plain, "nll_dropped": plain_dropped, "agreement": agreement.item()})

    def attributions(self, base: BaseModel, module: Any, source: str, translation: str, top: int = 5) -> list[dict[str, Any]]:
        from engine.methods.memory_adapter import attribution

        by = by_sentence if module.config.retrieval == "sentence" else attribution
        with base.lock, self.attach(base, module):
            return by.attributions(base, module, source, translation, top)


def with_tuned(weights: Mapping[str, torch.Tensor], tuned: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights with `tuned` replacing the base's tuned weights."""
    untuned = {key: weight for key, weight in weights.items() if not key.startswith(TUNED_KEYS)}
    return untuned | {TUNED_KEYS + key: weight for key, weight in tuned.items()}


def hook_points(base: BaseModel, module: Any, strength: float) -> list[HookPoint]:
    """The hook points of adapters and readers; none at strength 0."""
    results = adapter_hook_points(base, module.adapters, strength)
    for layer, position, reader in module.readers() if strength != 0.0 else ():
        change = partial(of_reader, reader, position, strength)
        results.append(HookPoint(getattr(base.decoder_layers[layer], position), False, change))
    return results


def of_reader(reader: Any, attention: str, strength: float, output: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    """The reader's replacement for an attention's output, given the attention's output and input."""
    return reader(output, output if attention == "self_attn" else input, strength)


def aligned_sources(samples: Samples, phrases: Sequence[str], aligner: str, progress: Progress) -> dict[str, str]:
    """{phrase: source} by word alignment in the samples that come with sources; empty if there are none or `aligner` is "none"."""
    from engine.memory.phrase_alignment import can_align, sources_by_attention, sources_of_phrases

    pairs = [(segment.source, segment.text) for segment in samples.train if segment.source]
    if not pairs or aligner == "none":
        return {}
    progress.begin("Aligning words", progress.index, progress.steps)
    forward = samples.pair.forward
    if aligner == "attention" or (aligner == "auto" and not can_align()):
        return sources_by_attention(phrases, pairs, forward, progress)
    return sources_of_phrases(phrases, pairs, (forward.source, forward.target))


def typicality(samples: Samples, config: MemoryAdapterConfig, progress: Progress) -> Sequence[float] | None:
    """How typical each phrase is of the samples compared with general text: signed log-likelihood G². None if all phrases are
    stored anyway.
    """
    import numpy as np

    from engine.phrases.table import general_texts, make_table

    phrases, pair = samples.phrases, samples.pair.forward
    if phrases is None or config.phrases_per_layer is None:
        return None
    if len(phrases) <= config.phrases_per_layer:
        return None
    general = general_texts(pair.target, samples.settings.assets_dir, samples.train)
    result = make_table(phrases, samples.train, pair.target, general, progress=progress).keyness
    return [float(value) for value in np.copysign(result.log_likelihood, result.log_ratio)]  # (n,)


def symmetric_kl(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """½ (KL(p‖q) + KL(q‖p)) as a mean over positions, computed from the product (p - q)(log p - log q)."""
    return 0.5 * ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1).mean()  # ()
