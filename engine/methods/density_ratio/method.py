"""Density ratio: log p(y | x) + β (log p(y | h) - log q(y | h)), with n-gram language models p and q of the last tokens h.

Shallow fusion (Gulcehre et al., 2015) adds a language model p of the target text to a translation model's scores. The density
ratio (McDermott et al., 2019) divides by a model q of text similar to the translation model's training data. Here p is estimated
from counts of the samples, and q by default from their unigrams, so that unseen histories have no effect. Nothing is trained, and
all sentences in the target language are used, with or without a source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.core.progress import Progress
from engine.errors import BundleError
from engine.methods.cost import Cost, Workload
from engine.methods.density_ratio.config import DensityRatioConfig
from engine.methods.density_ratio.files import FILE, read, save
from engine.methods.interface import Artefacts, Capabilities
from engine.methods.logit_difference import LogitDifference

if TYPE_CHECKING:
    import torch

    from engine.base import BaseModel
    from engine.corpora.types import SentencePair
    from engine.methods.data import Samples
    from engine.methods.density_ratio.module import DensityRatio

CHOICE = "choice.json"  # in the workspace: the chosen weight and the losses it is based on
BYTES = 20  # of counts per token, with histories of up to two tokens


class DensityRatioMethod(LogitDifference):
    """Prefers tokens that follow the last tokens of the hypothesis in the samples."""

    name: ClassVar[str] = "density_ratio"
    config_class = DensityRatioConfig
    capabilities = Capabilities(
        title="Density ratio",
        summary="Counts which words follow each other in your samples, and prefers them while translating. Made in seconds; "
        "uses every sentence in the target language.",
        source="McDermott et al., A Density Ratio Approach to Language Model Fusion in End-to-End Automatic Speech Recognition "
        "(2019); Gulcehre et al., On Using Monolingual Corpora in Neural Machine Translation (2015)",
        needs_held_out=True,
        trains=False,
        identity_at_start=False,  # there is no untrained state
        replays=False,
        offers_swap=True,
        swaps_pairs=False,
    )

    def prepare(self, samples: Samples, config: DensityRatioConfig, progress: Progress) -> Artefacts:
        """Count n-grams of all samples except the held-out ones, and choose a weight on half of the held-out pairs."""
        from engine.core.atomic_files import read_json, write_json
        from engine.corpora.general_text import general_domain
        from engine.methods.density_ratio.choose_weight import choose_weight

        base, folder = samples.pair.forward, samples.workspace
        choice = read_json(folder / CHOICE)
        if not choice:
            progress.begin("Counting n-grams", progress.index, progress.steps)
            models = {"style": _count(base, [segment.text for segment in samples.train], config.order)}
            if config.against == "general":
                targets = [segment.text for segment in (*samples.train, *samples.valid)]
                plain = general_domain(samples.settings.assets_dir, base.target, exclude=targets)
                models["general"] = _count(base, plain, config.order)
            save(models, folder)
            artefacts = Artefacts(files=_files(folder))
            if config.weight is None:
                module = self.build(base, artefacts, config.replace(weight=0.0))
                general = samples.general_pairs(progress)
                progress.begin("Choosing the weight", progress.index, progress.steps)
                choice = choose_weight(base, module, samples.pairs("valid")[::2], general, progress)
            else:
                choice = {"weight": config.weight}
            write_json(folder / CHOICE, choice, "the weight")
        return Artefacts(files=_files(folder), config=config.replace(weight=choice["weight"]))

    def open(self, folder: Path, base: BaseModel, config: DensityRatioConfig) -> Artefacts:
        return Artefacts(files=_files(folder))

    def cost(self, config: DensityRatioConfig, work: Workload) -> Cost:
        return Cost(units=0.0, decoding=1.3, files=work.tokens * BYTES + work.shape.words * 8)

    def build(self, base: BaseModel, artefacts: Artefacts, config: DensityRatioConfig) -> DensityRatio:
        from engine.methods.density_ratio.module import DensityRatio
        from engine.methods.density_ratio.ngrams import Ngrams

        if FILE not in artefacts.files:
            raise BundleError("it has no {tensors}, which its decoding needs. Get a new copy of the bundle.", tensors=FILE)
        if config.weight is None:
            raise BundleError("its settings have no weight. Get a new copy of the bundle.")
        words = len(base.model.get_output_embeddings().weight)
        names = ("style", "general") if config.against == "general" else ("style",)
        models = {name: Ngrams(tensors) for name, tensors in read(artefacts.files[FILE], names, config.order, words).items()}
        return DensityRatio(models["style"], models.get("general"), config).to(base.device)

    def replace_samples(
        self, base: BaseModel, module: Any, pairs: Sequence[SentencePair], workspace: Path, progress: Progress | None = None
    ) -> Artefacts:
        """Count n-grams of other samples, with the same weight and general text."""
        from engine.methods.density_ratio.ngrams import Ngrams

        style = _count(base, [pair.target for pair in pairs], module.config.order)
        models = {"style": style} | ({"general": dict(module.general.named_buffers())} if module.general else {})
        module.style = Ngrams(style).to(base.device)
        return Artefacts(files={FILE: save(models, workspace)})

    def batches_beams_per_sentence(self, module: Any) -> bool:
        """True: only scores are changed."""
        return True

    def next_difference(self, module: Any) -> Callable[[torch.Tensor], torch.Tensor]:
        return module.next_difference


def _count(base: BaseModel, texts: Sequence[str], order: int) -> dict[str, torch.Tensor]:
    """The tensors of an n-gram model of texts in the target language."""
    from engine.methods.density_ratio.ngrams import count

    labels = [ids[: base.max_tokens] for ids in base.encode_target(texts)]
    inputs = [base.shift_right(base.pad_batch([ids]))[0].tolist() for ids in labels]
    return count(inputs, labels, len(base.model.get_output_embeddings().weight), order)


def _files(folder: Path) -> dict[str, Path]:
    return {FILE: folder / FILE} if (folder / FILE).exists() else {}
