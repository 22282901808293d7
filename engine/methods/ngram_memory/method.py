"""The n-gram memory (paper 3): retrieved sentence pairs are encoded for the input sentence and read at every decoder layer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.core.progress import Progress
from engine.errors import CorpusError
from engine.methods.ablation import Material, SubstituteStates, UnavailableError
from engine.methods.cost import Cost, Workload
from engine.methods.interface import Artefacts, Batch, Budgets, Capabilities, HookPoint, Method
from engine.methods.ngram_memory.config import NgramMemoryConfig

if TYPE_CHECKING:
    import torch

    from engine.base import BaseModel
    from engine.corpora.types import SentencePair
    from engine.methods.data import Samples
    from engine.methods.ngram_memory.module import NgramMemoryModule


class NgramMemory(Method):
    """Retrieves similar sentence pairs for each sentence and attends to their translations."""

    name: ClassVar[str] = "ngram_memory"
    config_class = NgramMemoryConfig
    budgets: ClassVar[Budgets] = {
        "quick": {"method": dict(neighbours=3, neighbours_translating=5)},
        "balanced": {"method": dict(neighbours=3, neighbours_translating=5)},
    }
    capabilities = Capabilities(
        title="N-gram memory",
        summary="Retrieves sentence pairs that share phrases with the input and attends to their translations.",
        source="Bapna and Firat, Non-Parametric Adaptation for Neural Machine Translation (2019)",
        replays=False,
        needs_pairs=True,
        needs_plausibility=True,
        offers_reads=True,
        offers_swap=True,
        has_memory=True,
        needs_texts=True,
    )

    def prepare(self, samples: Samples, config: NgramMemoryConfig, progress: Progress) -> Artefacts:
        """Write the retrieval set and, for dense retrieval, the vectors of its n-grams. Raises CorpusError if it would be empty."""
        from engine.memory.retrieval_set import FILE

        if not (samples.workspace / FILE).exists() or (
            config.retrieval == "dense_ngram" and not (samples.workspace / "memory.safetensors").exists()
        ):
            self.write(samples.pair.forward, samples.pairs("memory"), config, samples.workspace, progress)
        return self.files(samples.workspace, config)

    def write(
        self, base: BaseModel, pairs: Sequence[SentencePair], config: NgramMemoryConfig, folder: Path, progress: Progress
    ) -> None:
        from engine.memory.retrieval_set import FILE, save_sentences
        from engine.methods.ngram_memory.retriever import VECTORS, record_vectors

        if not pairs:
            raise CorpusError("There is no sentence pair to retrieve. Add sentences to the samples.")
        if config.retrieval == "dense_ngram":
            progress.begin("Recording vectors of n-grams", progress.index, progress.steps)
            record_vectors(base, pairs, sorted(set(config.widths)), folder / VECTORS, progress)
        save_sentences(pairs, folder / FILE)

    def files(self, folder: Path, config: NgramMemoryConfig) -> Artefacts:
        names = ["pairs.jsonl", *(["memory.safetensors"] if config.retrieval == "dense_ngram" else [])]
        return Artefacts(files={name: folder / name for name in names})

    def open(self, folder: Path, base: BaseModel, config: NgramMemoryConfig) -> Artefacts:
        from engine.memory.retrieval_set import load_sentences
        from engine.methods.ngram_memory.retriever import load_vectors

        result = self.files(folder, config)
        pairs = load_sentences(result.files["pairs.jsonl"])
        if config.retrieval == "dense_ngram":
            load_vectors(result.files["memory.safetensors"], base, len(pairs), sorted(set(config.widths)))
        return result

    def cost(self, config: NgramMemoryConfig, work: Workload) -> Cost:
        layer = work.shape.layer(cross=True)
        gates = work.shape.decoder * (layer // 3)
        return Cost(
            weights=2 * config.layers * layer + gates,
            training=0.8,
            units=work.total_characters,
            preparing=0.2,
            files=work.total_characters * 6,
        )

    def build(self, base: BaseModel, artefacts: Artefacts, config: NgramMemoryConfig) -> NgramMemoryModule:
        from engine.methods.ngram_memory.module import NgramMemoryModule

        module = NgramMemoryModule(base, config).to(base.device)
        self.look_up_in(base, module, artefacts)
        return module

    def look_up_in(self, base: BaseModel, module: NgramMemoryModule, artefacts: Artefacts) -> None:
        from engine.memory.retrieval_set import load_sentences
        from engine.methods.ngram_memory.retriever import Retriever

        pairs = load_sentences(artefacts.files["pairs.jsonl"]) if "pairs.jsonl" in artefacts.files else []
        vectors = artefacts.files.get("memory.safetensors")
        module.set_pairs(pairs, Retriever(base, pairs, module.config, vectors) if pairs else None)

    def replace_samples(
        self, base: BaseModel, module: Any, pairs: Sequence[SentencePair], workspace: Path, progress: Progress | None = None
    ) -> Artefacts:
        self.write(base, pairs, module.config, workspace, progress or Progress())
        artefacts = self.files(workspace, module.config)
        self.look_up_in(base, module, artefacts)
        return artefacts

    def ablate(self, base: BaseModel, module: Any, kind: str, material: Material) -> None:
        """See `Method.ablate`. Keys are the sources of pairs, values their targets. With "noise" and "mean", the encoded states of
        retrieved pairs are replaced; mean and covariance are those of the states retrieved for the oracle's sources.
        """
        from dataclasses import replace

        if kind in ("foreign", "oracle"):
            self.replace_samples(base, module, material.pairs(kind), material.folder(kind), material.progress)
        elif kind == "empty":
            module.set_pairs([], None)
        elif kind == "shuffled":
            order = material.order(len(module.pairs)).tolist()
            mixed = [replace(pair, target=module.pairs[i].target) for pair, i in zip(module.pairs, order, strict=True)]
            module.set_pairs(mixed, module.retriever)
        else:
            states = self.read_states(base, module, [pair.source for pair in material.pairs("oracle")])  # (N, d)
            module.exchanged = SubstituteStates(states, kind, material, min(module.config.max_tokens, base.max_tokens))

    def read_states(self, base: BaseModel, module: Any, sources: Sequence[str]) -> torch.Tensor:
        """The memory's states (N, d) that are retrieved for these sources. Raises UnavailableError if there are none."""
        import torch

        read = []
        with base.lock, torch.no_grad():
            for ids in base.encode(sources):
                self.set_source(base, module, base.pad_batch([ids[: base.max_tokens]]))
                if module.retrieved is not None:
                    read.append(module.retrieved.memory[module.retrieved.mask])  # (n, d)
        module.retrieved = None
        if not read:
            raise UnavailableError("Nothing is found in the memory for any of these sentences.")
        return torch.cat(read)  # (N, d)

    @contextlib.contextmanager
    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> Iterator[None]:
        """Hook the cross-attention of the decoder layers; no hooks at strength 0."""
        with contextlib.ExitStack() as hooks:
            hooks.callback(setattr, module, "retrieved", None)
            for layer, gated in module.gates() if strength != 0.0 else ():
                change = partial(with_memory, module, gated, layer, strength)
                hooks.enter_context(HookPoint(base.decoder_layers[layer].encoder_attn, False, change).hook())
            yield

    def set_source(self, base: BaseModel, module: Any, sources: torch.Tensor, batch: Batch | None = None) -> None:
        """Retrieve pairs for each source and encode them; in training, sentences do not retrieve themselves."""
        import torch

        module.retrieved = None
        if module.retriever is None:
            return
        mask = base.mask(sources)  # (B, S)
        encoded = batch.encoded if batch is not None else None
        if encoded is None:
            with torch.no_grad():
                encoded = base.encoder_states(sources)  # (B, S, d)
        pairs = [batch.pairs.sentences[i] for i in batch.rows] if batch is not None else [None] * len(sources)
        source_ids = [ids[:length] for ids, length in zip(sources.tolist(), mask.sum(1).tolist(), strict=True)]
        drafts = self.drafts(base, module, source_ids, pairs)
        rows = [
            module.retriever.find(base, ids, encoded[row, : len(ids)], pairs[row], drafts[row])
            for row, ids in enumerate(source_ids)
        ]
        module.remember(base, rows, encoded, mask)

    def drafts(self, base: BaseModel, module: Any, sources: Sequence[list[int]], pairs: Sequence[SentencePair | None]) -> list[str]:
        """The base's translations of the sentences that need one for retrieval by targets; empty strings for the others."""
        from engine.decoding.greedy_search import bare_translations

        result = [""] * len(sources)
        rows = [i for i, pair in enumerate(pairs) if module.retriever.wants_draft(pair)]
        if rows:
            for i, text in zip(rows, bare_translations(base, [sources[i] for i in rows]), strict=True):
                result[i] = text
        return result

    def attributions(self, base: BaseModel, module: Any, source: str, translation: str, top: int = 5) -> list[dict[str, object]]:
        """For each target token and decoder layer: the base's share, and retrieved pairs with the attention to all their tokens."""
        import torch

        from engine.methods.reading import encode_pair, reads_of, shares_of

        sources, labels, tokens = encode_pair(base, source, translation)

        def items(layer: int, gated: Any, weights: torch.Tensor) -> list[dict[str, object]]:
            shares = shares_of(owners, weights[: len(owners)])
            read = ((number, module.pairs[number], shares[number]) for number in list(shares)[:top])
            return [{"text": pair.target, "source": pair.source, "weight": w, "row": i} for i, pair, w in read]

        with base.lock, self.attach(base, module), torch.no_grad():
            self.set_source(base, module, sources)
            if module.retrieved is None:
                return []
            owners = module.retrieved.owners[0].tolist()  # no padding, as there is only one row
            readers = [(layer, "encoder_attn", gated) for layer, gated in module.gates()]
            return reads_of(base, readers, sources, labels, tokens, items)


def with_memory(module: Any, gated: Any, layer: int, strength: float, output: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """The output (R, T, d) of a decoder layer's cross-attention with the memory mixed in."""
    if module.retrieved is None:
        return output
    return gated(output, query, module.retrieved, layer, strength)
