"""Domain mixing (paper 5): domain proportions, experts for all attention maps, and the loss L_gen + L_mix."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.core.atomic_files import read_jsonl, write_jsonl
from engine.core.progress import Progress
from engine.errors import BundleError
from engine.methods.cost import Cost, Workload
from engine.methods.domain_mixing.config import DomainMixingConfig
from engine.methods.interface import Artefacts, Batch, Capabilities, Loss, Method

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.corpora.types import SentencePair
    from engine.methods.batches import Pairs
    from engine.methods.data import Samples
    from engine.methods.domain_mixing.module import MixingModule

GENERAL_PAIRS = "general_pairs.jsonl"


class DomainMixing(Method):
    """Mixes the linear maps of several domains for each word, at every layer of encoder and decoder."""

    name: ClassVar[str] = "domain_mixing"
    config_class = DomainMixingConfig
    capabilities = Capabilities(
        title="Domain mixing",
        summary="One set of weights per domain, mixed for each word by its domain proportions. For several domains at once.",
        source="Jiang et al., Multi-Domain Neural Machine Translation with Word-Level Adaptive Layer-wise Domain Mixing (2020)",
        replays=False,
        needs_pairs=True,
        changes_encoder=True,
        offers_reads=True,
        offers_proportions=True,
    )

    def prepare(self, samples: Samples, config: DomainMixingConfig, progress: Progress) -> Artefacts:
        """Make pairs of the general sample if the domains require it, then fit R of every layer on the frozen base."""
        from engine.methods.domain_mixing.domains import label
        from engine.methods.domain_mixing.model import ABOUT, TENSORS
        from engine.methods.domain_mixing.proportions import fit_proportions

        files = {name: samples.workspace / name for name in (TENSORS, ABOUT)}
        general = make_general(samples, config, progress)
        if not all(file.exists() for file in files.values()):
            progress.begin("Fitting domain proportions", progress.index, progress.steps)
            domains: dict[str, list[SentencePair]] = {}
            for pair in [*samples.pairs("train"), *general]:
                domains.setdefault(label(pair.domain), []).append(pair)
            fit_proportions(samples.pair.forward, domains, config, progress=progress).save(samples.workspace)
        return Artefacts(files=files)

    def encode(self, base: BaseModel, samples: Samples, part: str, progress: Progress) -> Pairs:
        """The user's pairs; for training, also those of the general sample."""
        from engine.methods.batches import Pairs

        general = read_general(samples.workspace / GENERAL_PAIRS) if part == "train" else []
        return Pairs.encode(base, [*samples.pairs(part), *general])

    def open(self, folder: Path, base: BaseModel, config: DomainMixingConfig) -> Artefacts:
        from engine.methods.domain_mixing.model import ABOUT, TENSORS, ProportionModel

        ProportionModel.load(folder, base)
        return Artefacts(files={name: folder / name for name in (TENSORS, ABOUT)})

    def cost(self, config: DomainMixingConfig, work: Workload) -> Cost:
        shape, k, rank = work.shape, max(2, work.domains), config.rank
        maps = 4 * shape.encoder + 8 * shape.decoder
        per_map = k * rank * 2 * shape.d if rank else k * shape.d * shape.d
        units = shape.encoder * shape.encoder_hidden + shape.decoder * shape.hidden
        layers = shape.encoder + shape.decoder
        wide = k * rank * (layers * shape.d + units) if rank else k * shape.d * units
        forward = 2 * wide if config.feed_forward else 0
        shares = layers * k * (shape.d + 1)
        return Cost(weights=maps * per_map + forward + shares, training=0.95, preparing=2.0)

    def build(self, base: BaseModel, artefacts: Artefacts, config: DomainMixingConfig) -> MixingModule:
        from engine.methods.domain_mixing.model import TENSORS, ProportionModel
        from engine.methods.domain_mixing.module import MixingModule

        start = ProportionModel.load(artefacts.files[TENSORS].parent, base)
        if set(start.layers) != {"encoder", "decoder"}:
            raise BundleError("The proportions were fitted without sources, so they have no encoder. Build the plugin again.")
        return MixingModule(base, start, config).to(base.device)

    def lr_scales(self, module: Any) -> Mapping[str, float]:
        return {} if module.config.rank else {"experts.": module.config.full_speed}

    @contextlib.contextmanager
    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> Iterator[None]:
        """Hook the layers and their linear maps; no hooks at strength 0. `strength` scales every ΔW_j."""
        if strength == 0.0:
            yield
            return
        with module.hooked(base, strength):
            yield

    def loss(self, base: BaseModel, module: Any, batch: Batch) -> Loss:
        """L_gen + `mix_weight` L_mix. L_gen trains only the experts, L_mix only R."""
        import torch

        from engine.methods.domain_mixing.domains import label
        from engine.methods.domain_mixing.states import real_tokens
        from engine.methods.losses import likelihood

        numbers = {name: j for j, name in enumerate(module.domains)}
        labels = [numbers.get(label(batch.pairs.sentences[row].domain), -1) for row in batch.rows]
        domain = torch.tensor(labels, device=batch.sources.device)  # (B,)
        real = {"encoder": real_tokens(base, batch.sources), "decoder": real_tokens(base, batch.inputs)}  # (B, S), (B, T)
        module.recorded = {}
        try:
            nll = likelihood(base, self.log_probabilities(base, module, batch), batch)
            mixing = module.mixing_loss(real, domain)
        finally:
            module.recorded = None
        return Loss(nll + module.config.mix_weight * mixing, {"nll": nll.item(), "mixing": mixing.item()})

    def attributions(self, base: BaseModel, module: Any, source: str, translation: str, top: int = 5) -> list[dict[str, object]]:
        """The proportions of each token of the translation at each decoder layer; the `items` are domains."""
        from engine.methods.domain_mixing.attribution import attributions

        with base.lock, self.attach(base, module):
            return attributions(base, module, source, translation, top)


def make_general(samples: Samples, config: DomainMixingConfig, progress: Progress) -> list[SentencePair]:
    """Pairs of the general sample with back-translated sources, cached in the workspace: at most as many as training pairs, or 40
    if that is more. Empty if the samples need no general domain.
    """
    from engine.corpora.general_text import general_domain
    from engine.decoding.resumable import back_translate_all
    from engine.methods.domain_mixing.domains import general_name, label, needs_general

    file = samples.workspace / GENERAL_PAIRS
    domains = [label(name) for name in samples.domains]
    if not needs_general(domains, config.general):
        return []
    if not file.exists():
        progress.begin("Translating the general sample back", progress.index, progress.steps)
        targets = [segment.text for segment in samples.train]
        texts = general_domain(samples.settings.assets_dir, samples.pair.forward.target, exclude=targets)
        texts = texts[: max(40, len(samples.pairs("train")))]
        sources = back_translate_all(samples.pair.backward, texts, samples.workspace / "general_pairs.partial.jsonl", progress)
        rows = [{"source": a, "target": b, "domain": general_name(domains)} for a, b in zip(sources, texts, strict=True) if a]
        write_jsonl(file, rows, "the general pairs")
    return read_general(file)


def read_general(file: Path) -> list[SentencePair]:
    from engine.corpora.types import SentencePair

    return [SentencePair(**row) for row in read_jsonl(file)] if file.exists() else []
