"""kNN-MT (Khandelwal et al. 2021): the frozen base with a datastore of the samples. Nothing is trained."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.core.progress import Progress
from engine.errors import BundleError
from engine.methods.ablation import Material
from engine.methods.interface import Artefacts, Batch, Capabilities, Method
from engine.methods.knn.config import KnnConfig

if TYPE_CHECKING:
    import torch

    from engine.base import BaseModel
    from engine.corpora.types import SentencePair
    from engine.methods.data import Samples
    from engine.methods.knn.module import KnnModule


class KnnMethod(Method):
    """Interpolates the base's distribution with the tokens that followed the most similar states in the samples."""

    name: ClassVar[str] = "knn"
    config_class = KnnConfig
    capabilities = Capabilities(
        title="kNN-MT",
        summary="Retrieves the most similar contexts of your samples for each word. No training; slower to translate.",
        source="Khandelwal et al., Nearest Neighbor Machine Translation (2021)",
        needs_pairs=True,
        trains=False,
        identity_at_start=False,  # there is no untrained state
        offers_reads=True,
        offers_swap=True,
        has_memory=True,
    )

    def prepare(self, samples: Samples, config: KnnConfig, progress: Progress) -> Artefacts:
        """Build the datastore of all samples except the held-out ones, and choose settings on half of the held-out pairs."""
        from engine.methods.knn.build import make_knn

        knn, files, _ = make_knn(
            samples.pair.forward, [pair for pair in samples.pairs("memory") if pair.source], samples.pairs("valid")[::2], config,
            samples.workspace, progress=progress, general=lambda: samples.general_pairs(progress),
        )  # fmt: skip
        return Artefacts(files=files, config=KnnConfig.from_mapping(knn.options.to_mapping()))

    def open(self, folder: Path, base: BaseModel, config: KnnConfig) -> Artefacts:
        from engine.methods.knn.build import files_in

        return Artefacts(files=files_in(folder))

    def build(self, base: BaseModel, artefacts: Artefacts, config: KnnConfig) -> KnnModule:
        from engine.methods.knn.datastore import TENSORS
        from engine.methods.knn.decoder import Knn
        from engine.methods.knn.module import KnnModule

        if TENSORS not in artefacts.files:
            raise BundleError("it has no {tensors}, which its decoding needs. Get a new copy of the bundle.", tensors=TENSORS)
        return KnnModule(Knn.open(artefacts.files[TENSORS].parent, base, config))

    def replace_samples(
        self, base: BaseModel, module: Any, pairs: Sequence[SentencePair], workspace: Path, progress: Progress | None = None
    ) -> Artefacts:
        """Build a new datastore with the same settings."""
        from engine.methods.knn.build import replacement

        module.knn, files = replacement(base, module.knn, pairs, workspace, progress)
        return Artefacts(files=files)

    def set_source(self, base: BaseModel, module: Any, sources: torch.Tensor, batch: Batch | None = None) -> None:
        module.knn.set_source(base, sources, batch)

    def needs_fixed_batch(self, module: Any) -> bool:
        """False: the decoder's cache records the sentence of each row."""
        return False

    def ablate(self, base: BaseModel, module: Any, kind: str, material: Material) -> None:
        from engine.methods.knn.ablation import another_datastore

        module.knn = another_datastore(base, module.knn, kind, material)

    def batches_beams_per_sentence(self, module: Any) -> bool:
        """True: only the output layer is hooked."""
        return True

    @contextlib.contextmanager
    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> Iterator[None]:
        with module.knn.attach(base, strength):
            yield

    def log_probabilities(self, base: BaseModel, module: Any, batch: Batch) -> torch.Tensor:
        """As in `Method`; with keys of the feed-forward layer, logits are computed at all positions, as the hook requires."""
        if module.knn.options.keys == "output":
            return super().log_probabilities(base, module, batch)  # (M, V)
        logits = base.logits(batch.sources, batch.labels)  # (B, T, V)
        return logits[batch.labels != base.pad].float().log_softmax(-1)  # (M, V)

    def attributions(self, base: BaseModel, module: Any, source: str, translation: str, top: int = 5) -> list[dict[str, object]]:
        with base.lock:
            return module.knn.attributions(base, source, translation, top)
