"""The translation memory (paper 2): monolingual sentences that a trained retriever finds across languages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.core.progress import Progress
from engine.core.tensor_files import load_tensors, save_tensors
from engine.errors import BundleError, CorpusError
from engine.methods.ablation import Material
from engine.methods.cost import Cost, Workload
from engine.methods.interface import Artefacts, Batch, Budgets, Capabilities, Method
from engine.methods.translation_memory.config import TranslationMemoryConfig

if TYPE_CHECKING:
    import torch

    from engine.base import BaseModel
    from engine.corpora.types import SentencePair
    from engine.methods.data import Samples
    from engine.methods.translation_memory.module import TranslationMemoryModule

VECTORS = "memory.safetensors"
WARM, WARM_REPORT = "retriever.safetensors", "retriever.json"


@dataclass
class Warmed(Artefacts):
    """Artefacts for training, with the workspace that contains the warm-started retriever and the copies for its index."""

    workspace: Path | None = None


class TranslationMemory(Method):
    """Retrieves sentences of the samples by meaning, across languages, and copies from them."""

    name: ClassVar[str] = "translation_memory"
    config_class = TranslationMemoryConfig
    budgets: ClassVar[Budgets] = {
        "quick": {"method": dict(neighbours=3, memory_layers=1, retriever="fixed_target", warm_updates=75)},
        "balanced": {"method": dict(neighbours=3, memory_layers=1, retriever="fixed_target", warm_updates=200)},
    }
    capabilities = Capabilities(
        title="Translation memory",
        summary="Retrieves your own sentences across languages and copies from them. Its memory can be replaced at any time.",
        source="Cai et al., Neural Machine Translation with Monolingual Translation Memory (2021)",
        replays=False,
        needs_pairs=True,
        offers_reads=True,
        offers_swap=True,
        has_memory=True,
        needs_texts=True,
        swaps_pairs=False,
    )

    def prepare(self, samples: Samples, config: TranslationMemoryConfig, progress: Progress) -> Artefacts:
        """Write the memory's sentences and warm-start the retriever. Raises CorpusError if there are no sentences."""
        import torch

        from engine.core.atomic_files import write_json
        from engine.memory.retrieval_set import FILE, save_sentences
        from engine.methods.translation_memory.encoders import DualEncoder
        from engine.methods.translation_memory.warm_start import warm_up

        base, folder, train = samples.pair.forward, samples.workspace, samples.pairs("train")
        if not train:
            raise CorpusError("There is no sentence to store in the memory. Add sentences to the samples.")
        if not (folder / WARM).exists() and (config.warm_updates or config.init == "base") and len(train) > 1:
            progress.begin("Training the retriever", progress.index, progress.steps)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                encoders = DualEncoder(base, config).to(base.device)
            report = warm_up(base, encoders, train, samples.pairs("valid"), config, progress)
            write_json(folder / WARM_REPORT, report, "the retriever's figures")
            save_tensors(folder / WARM, encoders.state_dict(), "the retriever")
        if not (folder / FILE).exists():
            save_sentences(samples.pairs("memory"), folder / FILE, sources=False)
        return Warmed(files={FILE: folder / FILE}, workspace=folder)

    def open(self, folder: Path, base: BaseModel, config: TranslationMemoryConfig) -> Artefacts:
        from engine.memory.retrieval_set import FILE, load_sentences

        sentences = load_sentences(folder / FILE, sources=False)
        load_vectors(folder / VECTORS, len(sentences))
        return Artefacts(files={name: folder / name for name in (FILE, VECTORS)})

    def cost(self, config: TranslationMemoryConfig, work: Workload) -> Cost:
        layer, d = work.shape.layer(cross=False), work.shape.d
        encoder = config.retriever_layers * work.shape.layer(cross=False, encoder=True) + d * (config.vector_size or d // 2)
        retriever = {"trained": 2, "fixed_target": 1, "fixed": 0}[config.retriever] * encoder
        return Cost(
            weights=retriever + config.memory_layers * layer + 4 * d * d, training=0.7, units=work.total_characters,
            warming=0.5 * config.warm_updates * config.warm_batch * work.sentence,
            files=work.total_characters * 6 + work.sentences * d,
        )  # fmt: skip

    def build(self, base: BaseModel, artefacts: Artefacts, config: TranslationMemoryConfig) -> TranslationMemoryModule:
        from safetensors.torch import load_file

        from engine.memory.retrieval_set import FILE, load_sentences
        from engine.methods.translation_memory.module import TranslationMemoryModule

        module = TranslationMemoryModule(base, config).to(base.device)
        workspace = artefacts.workspace if isinstance(artefacts, Warmed) else None
        if workspace is not None and (workspace / WARM).exists():
            module.retriever.load_state_dict(load_file(workspace / WARM))
        pairs = load_sentences(artefacts.files[FILE], sources=False) if FILE in artefacts.files else []
        vectors = None
        if VECTORS in artefacts.files and workspace is None:
            vectors = load_vectors(artefacts.files[VECTORS], len(pairs), module.size)
        self.set_memory(base, module, pairs, vectors)
        module.artefacts, module.workspace = artefacts, workspace
        return module

    def set_memory(self, base: BaseModel, module: Any, pairs: Sequence[SentencePair], vectors: Any = None) -> None:
        """Replace the module's memory; `vectors` (N, v) are the retriever's vectors, if known."""
        from engine.memory.vector_index import VectorIndex
        from engine.methods.translation_memory.index import Refresher

        config = module.config
        labels = base.encode_target([pair.target for pair in pairs])
        # Only words can be copied: copying end-of-sentence tokens or language codes would corrupt the translation.
        words = [[token for token in ids if token not in base.special_ids] or ids for ids in labels]
        module.pairs, module.rows = pairs, [ids[: min(config.max_tokens, base.max_tokens)] for ids in words]
        module.index = VectorIndex(vectors, "dot", depth=config.search_depth) if vectors is not None else None
        module.retrieved, module.own, module.where = None, None, (base.pad, base.device)
        self.forget_refresher(module)
        module.new_refresher = lambda: Refresher(
            module.retriever.target,
            (module.rows, base.pad, base.device, config.search_depth),
            every=config.refresh_every if config.retriever == "trained" else None,
            waits=config.refresh_waits,
            folder=module.workspace,
        )

    def forget_refresher(self, module: Any) -> None:
        if module.refresher is not None:
            module.refresher.close()
            module.refresher = None

    def after_training(self, module: Any) -> None:
        """Compute the memory's vectors with the trained encoder and store them for the bundle."""
        self.prepare_for_inference(module)
        if module.workspace is not None and module.index is not None:
            save_vectors(module.index.vectors, module.workspace / VECTORS)
            module.artefacts.files[VECTORS] = module.workspace / VECTORS

    def prepare_for_inference(self, module: Any) -> None:
        module.eval()
        self.forget_refresher(module)
        self.index(module)

    def index(self, module: Any) -> None:
        """Build the index with the current weights if there is none."""
        from engine.methods.translation_memory.index import build_index

        if module.index is None and module.rows:
            pad, device = module.where
            module.index = build_index(module.retriever.target, module.rows, pad, device, module.config.search_depth)

    @contextlib.contextmanager
    def inference_mode_while_training(self, module: Any) -> Iterator[None]:
        """As in `Method`; a temporary index is built for the block, and those of the training are kept."""
        with super().inference_mode_while_training(module):
            self.index(module)
            try:
                yield
            finally:
                module.index = None

    def replace_samples(
        self, base: BaseModel, module: Any, pairs: Sequence[SentencePair], workspace: Path, progress: Progress | None = None
    ) -> Artefacts:
        from engine.memory.retrieval_set import FILE, save_sentences

        if not pairs:
            raise CorpusError("There is no sentence to store in the memory. Add sentences to the samples.")
        self.set_memory(base, module, list(pairs))
        self.prepare_for_inference(module)
        save_sentences(pairs, workspace / FILE, sources=False)
        save_vectors(module.index.vectors, workspace / VECTORS)
        return Artefacts(files={name: workspace / name for name in (FILE, VECTORS)})

    def ablate(self, base: BaseModel, module: Any, kind: str, material: Material) -> None:
        """See `Method.ablate`. Keys are the sentences' vectors, values the sentences. For "noise", vectors, states and tokens are
        drawn. The "mean" row is a sentence with the mean vector and state, and tokens in proportion to their frequency.
        """
        from engine.methods.translation_memory.ablation import draw_memory

        if kind in ("foreign", "oracle"):
            pairs = material.pairs(kind, sources=False)
            self.replace_samples(base, module, pairs, material.folder(kind), material.progress)
        elif kind == "empty":
            self.set_memory(base, module, [])
        elif kind == "shuffled":
            order = material.order(len(module.rows)).tolist()
            module.rows, module.pairs = ([values[i] for i in order] for values in (module.rows, module.pairs))
        else:
            draw_memory(module, kind, material)

    @contextlib.contextmanager
    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> Iterator[None]:
        """Hook the decoder, to add c_t to its states, and the output layer; no hooks at strength 0."""

        def at_decoder(decoder: Any, args: Any, output: Any) -> Any:
            if module.retrieved is None:
                return output
            if isinstance(output, tuple):
                return (module.attend(output[0], strength), *output[1:])
            output.last_hidden_state = module.attend(output.last_hidden_state, strength)
            return output

        def at_output(head: Any, args: Any, logits: Any) -> Any:
            return module.copy_from_memory(logits, getattr(base.model, "final_logits_bias", None))

        with contextlib.ExitStack() as hooks:
            hooks.callback(setattr, module, "retrieved", None)
            if strength != 0.0:
                hooks.enter_context(base.model.get_decoder().register_forward_hook(at_decoder))
                hooks.enter_context(base.model.get_output_embeddings().register_forward_hook(at_output))
            yield

    def set_source(self, base: BaseModel, module: Any, sources: torch.Tensor, batch: Batch | None = None) -> None:
        """Retrieve sentences for each source and encode them; in training, the sentence's own target is excluded."""
        import torch

        module.retrieved = None
        if not module.rows:
            return
        if batch is None:
            if module.index is None:
                self.prepare_for_inference(module)
            index = module.index
        else:
            index = self.training_index(module, batch.step)
        mask = sources != base.pad  # (B, S)
        learning = batch is not None and module.training
        with contextlib.nullcontext() if learning else torch.no_grad():
            x = module.retriever.source(sources, mask)  # (B, v)
            queries = x.detach().float().cpu().numpy()  # (B, v)
            numbers = []
            for row, query in enumerate(queries):
                shut = self.near_duplicates(module, batch.pairs.sentences[batch.rows[row]].target) if batch is not None else set()
                numbers.append([i for i, _ in index.search_unblocked(query, module.config.neighbours, shut)])
            recompute = batch is not None and module.config.retriever == "trained"
            selected = batch.labels != base.pad if batch is not None else None  # (B, T)
            module.remember(numbers, x, recompute, index.vectors, base.pad, selected)

    def training_index(self, module: Any, step: int) -> Any:
        """The index for a training batch, or the current index for a validation batch, whose `step` is not an update's."""
        if module.refresher is None:
            module.refresher = module.new_refresher()
        refresher = module.refresher
        return refresher.at(step) if module.training or refresher.index is None else refresher.index

    def near_duplicates(self, module: Any, target: str) -> set[int]:
        """Indices of the memory's sentences that equal the target or are near-duplicates of it."""
        from engine.memory.self_match import OwnText

        if module.own is None:
            module.own = OwnText([pair.target for pair in module.pairs])
        return module.own.of(target)

    def attributions(self, base: BaseModel, module: Any, source: str, translation: str, top: int = 5) -> list[dict[str, object]]:
        """For each target token: the base's share 1 - λ, and retrieved sentences with their total attention and relevance f."""
        from engine.methods.reading import encode_pair, force, row, shares_of

        sources, labels, tokens = encode_pair(base, source, translation)
        with base.lock, self.attach(base, module):
            self.set_source(base, module, sources)
            force(base, sources, labels)
            retrieved = module.retrieved
        if retrieved is None or retrieved.alpha is None or retrieved.copying is None:
            return []
        owners = retrieved.owners[0].tolist()  # no padding, as there is only one row
        relevance = dict(zip(owners, retrieved.relevance[0].float().tolist(), strict=True))
        results = []
        for position, token in enumerate(tokens):
            shares = list(shares_of(owners, retrieved.alpha[0, position]).items())[:top]
            pairs = [(module.pairs[number], number, share) for number, share in shares]
            items: list[dict[str, object]] = [
                {"text": pair.target, "source": pair.source, "weight": share, "relevance": relevance[i], "row": i}
                for pair, i, share in pairs
            ]
            results.append(row(position, token, -1, "output", 1 - float(retrieved.copying[0, position]), items))
        return results


def save_vectors(vectors: Any, path: Path) -> None:
    """Write `vectors` (N, v) in half precision. Raises StorageError."""
    import torch

    save_tensors(path, {"vectors": torch.from_numpy(vectors).half()}, "the memory's vectors")


def load_vectors(path: Path, sentences: int, size: int | None = None) -> Any:
    """Load the vectors (N, v) of `save_vectors`. Raises BundleError if they are missing or do not fit the sentences."""
    if not path.exists():
        raise BundleError(
            "it has no {path}, from which the method retrieves sentences. Get a new copy of the bundle.", path=path.name
        )
    tensors = load_tensors(path)
    vectors = tensors.get("vectors")
    if set(tensors) != {"vectors"} or vectors is None or vectors.dim() != 2 or len(vectors) != sentences:
        raise BundleError("{path} does not match the sentences stored with it. Get a new copy of the bundle.", path=path.name)
    if size is not None and vectors.shape[1] != size:
        raise BundleError(
            "{path} has vectors of {shape} dimensions, not {size}. Get a new copy of the bundle.",
            path=path.name, shape=vectors.shape[1], size=size,
        )  # fmt: skip
    return vectors.float().numpy()
