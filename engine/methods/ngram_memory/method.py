"""The n-gram memory as a method (paper 3): found sentence pairs, encoded for the sentence at hand, read at every layer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.errors import CorpusError
from engine.methods.base import Artefacts, Batch, Budgets, Capabilities, Method
from engine.methods.ngram_memory.config import NgramMemoryConfig
from engine.progress import Progress

if TYPE_CHECKING:
    import torch

    from engine.base import BaseModel
    from engine.methods.ngram_memory.module import NgramMemoryModule
    from engine.methods.samples import Samples, SentencePair

__all__ = ["NgramMemory"]


class NgramMemory(Method):
    """Looks up similar sentence pairs for each sentence and attends to their translations."""

    name: ClassVar[str] = "ngram_memory"
    config_class = NgramMemoryConfig
    budgets: ClassVar[Budgets] = {
        "quick": {"method": dict(neighbours=3, neighbours_translating=5)},
        "balanced": {"method": dict(neighbours=3, neighbours_translating=5)},
    }
    capabilities = Capabilities(
        title="N-gram memory",
        summary="Looks up sentence pairs that share phrases with the sentence at hand and attends to their translations.",
        source="Bapna and Firat, Non-Parametric Adaptation for Neural Machine Translation (2019)",
        needs_pairs=True,
        offers_reads=True,
        offers_swap=True,
        needs_texts=True,
    )

    def prepare(self, samples: Samples, config: NgramMemoryConfig, progress: Progress) -> Artefacts:
        """The retrieval set, and the vectors of its n-grams where it is searched by vectors."""
        from engine.retrieval.sentences import FILE

        if not (samples.workspace / FILE).exists() or (
            config.retrieval == "dense_ngram" and not (samples.workspace / "memory.safetensors").exists()
        ):
            self.write(samples.pair.forward, samples.pairs("train"), config, samples.workspace, progress)
        return self.files(samples.workspace, config)

    def write(
        self,
        base: BaseModel,
        pairs: Sequence[SentencePair],
        config: NgramMemoryConfig,
        folder: Path,
        progress: Progress,
    ) -> None:
        from engine.methods.ngram_memory.retriever import VECTORS, record_vectors
        from engine.retrieval.sentences import FILE, save_sentences

        if not pairs:
            raise CorpusError("There is no sentence pair to look up. Add sentences to the samples.")
        if config.retrieval == "dense_ngram":
            progress.begin("Recording vectors of n-grams", progress.index, progress.steps)
            record_vectors(base, pairs, sorted(set(config.widths)), folder / VECTORS, progress)
        save_sentences(pairs, folder / FILE)

    def files(self, folder: Path, config: NgramMemoryConfig) -> Artefacts:
        names = ["pairs.jsonl", *(["memory.safetensors"] if config.retrieval == "dense_ngram" else [])]
        return Artefacts(files={name: folder / name for name in names})

    def open(self, folder: Path, base: BaseModel, config: NgramMemoryConfig) -> Artefacts:
        from engine.methods.ngram_memory.retriever import load_vectors
        from engine.retrieval.sentences import load_sentences

        found = self.files(folder, config)
        pairs = load_sentences(found.files["pairs.jsonl"])
        if config.retrieval == "dense_ngram":
            load_vectors(found.files["memory.safetensors"], base, len(pairs), sorted(set(config.widths)))
        return found

    def build(self, base: BaseModel, artefacts: Artefacts, config: NgramMemoryConfig) -> NgramMemoryModule:
        from engine.methods.ngram_memory.module import NgramMemoryModule

        module = NgramMemoryModule(base, config).to(base.device)
        self.look_up_in(base, module, artefacts)
        return module

    def look_up_in(self, base: BaseModel, module: NgramMemoryModule, artefacts: Artefacts) -> None:
        from engine.methods.ngram_memory.retriever import Retriever
        from engine.retrieval.sentences import load_sentences

        pairs = load_sentences(artefacts.files["pairs.jsonl"]) if "pairs.jsonl" in artefacts.files else []
        vectors = artefacts.files.get("memory.safetensors")
        module.set_pairs(pairs, Retriever(base, pairs, module.config, vectors) if pairs else None)

    def swap(
        self, base: BaseModel, module: Any, pairs: Sequence[SentencePair], workspace: Path,
        progress: Progress | None = None,
    ) -> Artefacts:  # fmt: skip
        self.write(base, pairs, module.config, workspace, progress or Progress())
        artefacts = self.files(workspace, module.config)
        self.look_up_in(base, module, artefacts)
        return artefacts

    def finish(self, module: Any) -> None:
        module.eval()

    @contextlib.contextmanager
    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> Iterator[None]:
        """Forward hooks on the decoder layers' cross-attention; at strength 0 none are set."""
        handles = []
        try:
            if strength != 0.0:
                for layer, gated in module.gates():
                    attention = base.decoder_layers[layer].encoder_attn
                    handles.append(
                        attention.register_forward_hook(hook(module, gated, layer, strength), with_kwargs=True)
                    )
            yield
        finally:
            module.found = None
            for handle in handles:
                handle.remove()

    def see(self, base: BaseModel, module: Any, sources: torch.Tensor, batch: Batch | None = None) -> None:
        """Look up pairs for each source and encode them; in training without the sentences' own."""
        import torch

        module.found = None
        if module.retriever is None:
            return
        mask = (sources != base.pad).long()  # (B, S)
        encoded = batch.encoded if batch is not None else None
        if encoded is None:
            with torch.no_grad():
                encoded = base.model.get_encoder()(
                    input_ids=sources, attention_mask=mask
                ).last_hidden_state  # (B, S, d)
        rows = []
        for row, (ids, length) in enumerate(zip(sources.tolist(), mask.sum(1).tolist(), strict=True)):
            own = batch.pairs.sentences[batch.rows[row]] if batch is not None else None
            rows.append(module.retriever.find(base, ids[:length], encoded[row, :length], own))
        module.remember(base, rows, encoded, mask)

    def reads(self, base: BaseModel, module: Any, source: str, translation: str, top: int = 5) -> list[dict[str, Any]]:
        from engine.methods.ngram_memory.reads import reads

        with base.lock, self.attach(base, module):
            return reads(self, base, module, source, translation, top)


def hook(module: Any, gated: Any, layer: int, strength: float) -> Any:
    """A forward hook that mixes the memory into what a decoder layer's cross-attention gives."""

    def at_cross_attention(attention: Any, args: Any, kwargs: Any, output: Any) -> Any:
        if module.found is None:
            return output
        query = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]  # (R, T, d)
        return (gated(output[0], query, module.found, layer, strength), *output[1:])

    return at_cross_attention
