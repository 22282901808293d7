"""The translation memory as a method (paper 2): monolingual sentences, found across languages by a learnt retriever."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.errors import BundleError, CorpusError
from engine.methods.base import Artefacts, Batch, Budgets, Capabilities, Method
from engine.methods.translation_memory.config import TranslationMemoryConfig
from engine.progress import Progress

if TYPE_CHECKING:
    import torch

    from engine.base import BaseModel
    from engine.methods.samples import Samples, SentencePair
    from engine.methods.translation_memory.module import TranslationMemoryModule

__all__ = ["TranslationMemory"]

VECTORS = "memory.safetensors"
WARM, WARM_REPORT = "retriever.safetensors", "retriever.json"


@dataclass
class Warmed(Artefacts):
    """Artefacts of a training: where the retriever's first weights and the copies for its index are."""

    workspace: Path | None = None


class TranslationMemory(Method):
    """Finds sentences of the user's own by meaning, across languages, and copies from them."""

    name: ClassVar[str] = "translation_memory"
    config_class = TranslationMemoryConfig
    budgets: ClassVar[Budgets] = {
        "quick": {"method": dict(neighbours=3, memory_layers=1, retriever="fixed_target", warm_updates=75)},
        "balanced": {"method": dict(neighbours=3, memory_layers=1, retriever="fixed_target", warm_updates=200)},
    }
    capabilities = Capabilities(
        title="Translation memory",
        summary="Finds sentences of your own across languages and copies from them. Its memory can be exchanged at any time.",
        source="Cai et al., Neural Machine Translation with Monolingual Translation Memory (2021)",
        needs_pairs=True,
        offers_reads=True,
        offers_swap=True,
        needs_texts=True,
        swaps_pairs=False,
    )

    def prepare(self, samples: Samples, config: TranslationMemoryConfig, progress: Progress) -> Artefacts:
        """The memory's sentences, and the retriever's warm start."""
        import torch
        from safetensors.torch import save_file

        from engine.files import replacing, write_json
        from engine.methods.translation_memory.encoders import DualEncoder
        from engine.methods.translation_memory.warm import warm_up
        from engine.retrieval.sentences import FILE, save_sentences

        base, folder, train = samples.pair.forward, samples.workspace, samples.pairs("train")
        if not train:
            raise CorpusError("There is no sentence to remember. Add sentences to the samples.")
        if not (folder / WARM).exists() and (config.warm_updates or config.init == "base") and len(train) > 1:
            progress.begin("Teaching the retriever", progress.index, progress.steps)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                encoders = DualEncoder(base, config).to(base.device)
            report = warm_up(base, encoders, train, samples.pairs("valid"), config, progress)
            write_json(folder / WARM_REPORT, report, "the retriever's figures")
            with replacing(folder / WARM, "the retriever") as temporary:
                save_file({key: value.cpu().contiguous() for key, value in encoders.state_dict().items()}, temporary)
        if not (folder / FILE).exists():
            save_sentences(train, folder / FILE, sources=False)
        return Warmed(files={FILE: folder / FILE}, workspace=folder)

    def open(self, folder: Path, base: BaseModel, config: TranslationMemoryConfig) -> Artefacts:
        from engine.retrieval.sentences import FILE, load_sentences

        sentences = load_sentences(folder / FILE, sources=False)
        load_vectors(folder / VECTORS, len(sentences))
        return Artefacts(files={name: folder / name for name in (FILE, VECTORS)})

    def build(self, base: BaseModel, artefacts: Artefacts, config: TranslationMemoryConfig) -> TranslationMemoryModule:
        from safetensors.torch import load_file

        from engine.methods.translation_memory.module import TranslationMemoryModule
        from engine.retrieval.sentences import FILE, load_sentences

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
        """Give the module another memory; `vectors` (N, v) are those of its retriever, where they are known."""
        from engine.methods.translation_memory.index import Refresher
        from engine.retrieval.vectors import VectorIndex

        config = module.config
        labels = base.label([pair.target for pair in pairs])
        # Only words can be copied: an end of sentence or a language's code would end or spoil the translation.
        words = [[token for token in ids if token not in base.special_ids] or ids for ids in labels]
        module.pairs, module.rows = pairs, [ids[: min(config.max_tokens, base.max_tokens)] for ids in words]
        module.index = VectorIndex(vectors, "dot", depth=config.search_depth) if vectors is not None else None
        module.found, module.own, module.where = None, None, (base.pad, base.device)
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

    def complete(self, module: Any) -> None:
        """The vectors of the memory by the trained encoder, kept for the bundle."""
        self.finish(module)
        if module.workspace is not None and module.index is not None:
            save_vectors(module.index.vectors, module.workspace / VECTORS)
            module.artefacts.files[VECTORS] = module.workspace / VECTORS

    def finish(self, module: Any) -> None:
        module.eval()
        self.forget_refresher(module)
        self.index(module)

    def index(self, module: Any) -> None:
        """Build the index by the weights as they are, where there is none."""
        from engine.methods.translation_memory.index import build_index

        if module.index is None and module.rows:
            pad, device = module.where
            module.index = build_index(module.retriever.target, module.rows, pad, device, module.config.search_depth)

    @contextlib.contextmanager
    def trial(self, module: Any) -> Iterator[None]:
        """The training's own indexes stay: another one is built for the block."""
        with super().trial(module):
            self.index(module)
            try:
                yield
            finally:
                module.index = None

    def swap(
        self, base: BaseModel, module: Any, pairs: Sequence[SentencePair], workspace: Path,
        progress: Progress | None = None,
    ) -> Artefacts:  # fmt: skip
        from engine.retrieval.sentences import FILE, save_sentences

        if not pairs:
            raise CorpusError("There is no sentence to remember. Add sentences to the samples.")
        self.set_memory(base, module, list(pairs))
        self.finish(module)
        save_sentences(pairs, workspace / FILE, sources=False)
        save_vectors(module.index.vectors, workspace / VECTORS)
        return Artefacts(files={name: workspace / name for name in (FILE, VECTORS)})

    @contextlib.contextmanager
    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> Iterator[None]:
        """Forward hooks on the decoder, whose states get c_t, and on the output layer; at strength 0 none are set."""
        handles = []

        def at_decoder(decoder: Any, args: Any, output: Any) -> Any:
            if module.found is None:
                return output
            if isinstance(output, tuple):
                return (module.attend(output[0], strength), *output[1:])
            output.last_hidden_state = module.attend(output.last_hidden_state, strength)
            return output

        def at_output(head: Any, args: Any, logits: Any) -> Any:
            return module.copy_from_memory(logits, getattr(base.model, "final_logits_bias", None))

        try:
            if strength != 0.0:
                handles.append(base.model.get_decoder().register_forward_hook(at_decoder))
                handles.append(base.model.get_output_embeddings().register_forward_hook(at_output))
            yield
        finally:
            module.found = None
            for handle in handles:
                handle.remove()

    def see(self, base: BaseModel, module: Any, sources: torch.Tensor, batch: Batch | None = None) -> None:
        """Find sentences for each source and encode them; in training without the sentence's own target."""
        import torch

        module.found = None
        if not module.rows:
            return
        if batch is None:
            if module.index is None:
                self.finish(module)
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
                shut = self.own(module, batch.pairs.sentences[batch.rows[row]].target) if batch is not None else set()
                numbers.append([i for i, _ in index.search_unblocked(query, module.config.neighbours, shut)])
            fresh = batch is not None and module.config.retriever == "trained"
            kept = batch.labels != base.pad if batch is not None else None  # (B, T)
            module.remember(numbers, x, fresh, index.vectors, base.pad, kept)

    def training_index(self, module: Any, step: int) -> Any:
        """The index for a training batch, or the one in force for a batch of validation, whose step is no update's."""
        if module.refresher is None:
            module.refresher = module.new_refresher()
        refresher = module.refresher
        return refresher.at(step) if module.training or refresher.index is None else refresher.index

    def own(self, module: Any, target: str) -> set[int]:
        """Sentences of the memory that are this one, or the same but for trifles."""
        from engine.retrieval.own import OwnText

        if module.own is None:
            module.own = OwnText([pair.target for pair in module.pairs])
        return module.own.of(target)

    def reads(self, base: BaseModel, module: Any, source: str, translation: str, top: int = 5) -> list[dict[str, Any]]:
        from engine.methods.translation_memory.reads import reads

        with base.lock, self.attach(base, module):
            return reads(self, base, module, source, translation, top)


def save_vectors(vectors: Any, path: Path) -> None:
    """`vectors` (N, v) in half precision. Raises StorageError."""
    import torch
    from safetensors.torch import save_file

    from engine.files import replacing

    with replacing(path, "the memory's vectors") as temporary:
        save_file({"vectors": torch.from_numpy(vectors).half()}, temporary)


def load_vectors(path: Path, sentences: int, size: int | None = None) -> Any:
    """The vectors (N, v) that `save_vectors` wrote. Raises BundleError when they are missing or do not fit the sentences."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.exists():
        raise BundleError(f"it has no {path.name}, in which the method finds sentences. Get the bundle again.")
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise BundleError(f"{path.name} is damaged ({error}). Get the bundle again.") from None
    vectors = tensors.get("vectors")
    if set(tensors) != {"vectors"} or vectors is None or vectors.dim() != 2 or len(vectors) != sentences:
        raise BundleError(f"{path.name} does not fit the sentences beside it. Get the bundle again.")
    if size is not None and vectors.shape[1] != size:
        raise BundleError(f"{path.name} has vectors of {vectors.shape[1]} numbers, not {size}. Get the bundle again.")
    return vectors.float().numpy()
