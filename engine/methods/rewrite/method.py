"""Translating, then rewriting (the baseline MT+Rewrite of paper 1, after Syed et al., 2020).

The rewriting model has the architecture and vocabulary of the base and is initialised with its weights. It learns to turn the
base's translation of a sample's source into the sample. The base translates first, with any other plugins in use, and the model
rewrites the output. The model's weights replace the base's only while the model runs.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from engine.core.progress import Progress
from engine.methods.cost import Cost, Workload
from engine.methods.interface import Artefacts, Batch, Budgets, Capabilities, Loss, Method
from engine.methods.rewrite.config import RewriteConfig

if TYPE_CHECKING:
    import torch
    from torch import nn

    from engine.base import BaseModel
    from engine.base.decoding_options import Decoding
    from engine.methods.batches import Pairs
    from engine.methods.data import Samples


class Rewrite(Method):
    """Rewrites the base's translations with a second model."""

    name: ClassVar[str] = "rewrite"
    config_class = RewriteConfig
    budgets: ClassVar[Budgets] = {"quick": {"method": dict(shrink=0.75)}, "balanced": {"method": dict(shrink=0.75)}}
    capabilities = Capabilities(
        title="Translate, then rewrite",
        summary="A second model rewrites the base's translation in your style. Works on any translation, takes twice the time.",
        source="Syed et al., Adapting Language Models for Non-Parallel Author-Stylized Rewriting (2020)",
        replays=False,
        changes_encoder=True,  # the rewriting model has its own encoder
        identity_at_start=False,  # untrained, it is a translation model that receives its target language as input
        offers_strength=False,  # there is nothing to scale
        offers_likelihood=False,  # the model scores rewritings, not translations of a source
    )

    def prepare(self, samples: Samples, config: RewriteConfig, progress: Progress) -> Artefacts:
        """Check that the base can read its target language, and store the settings. Raises ModelError."""
        from engine.methods.base_translations import keep_settings
        from engine.methods.rewrite.texts import check_rewriter

        check_rewriter(samples.pair.forward, [segment.text for segment in samples.train[:200]])
        keep_settings(samples, config)
        return Artefacts()

    def cost(self, config: RewriteConfig, work: Workload) -> Cost:
        return Cost(weights=work.shape.weights, bytes_each=1, training=0.75, translates=True, decoding=1.4)

    def build(self, base: BaseModel, artefacts: Artefacts, config: RewriteConfig) -> nn.Module:
        from engine.methods.weight_swap import TunedWeights

        module: Any = TunedWeights(base, "all")
        module.config = config
        return module.to(base.device)

    def encode(self, base: BaseModel, samples: Samples, part: str, progress: Progress) -> Pairs:
        """Pairs of (machine translation, sample); in training with `denoising`, also pairs of (noisy sample, sample)."""
        from engine.corpora.types import SentencePair
        from engine.methods.base_translations import machine_translations, prepared_settings
        from engine.methods.batches import Pairs
        from engine.methods.rewrite.texts import noisy, rewriter_of

        config: RewriteConfig = prepared_settings(samples, RewriteConfig)
        pairs = samples.pairs(part)
        machine = machine_translations(samples, pairs, config.beam, progress, part)
        machine_pairs = [
            SentencePair(text, pair.target, pair.domain, synthetic=True) for text, pair in zip(machine, pairs, strict=True) if text
        ]
        result = Pairs.encode(rewriter_of(base), machine_pairs)
        if part != "train" or not config.denoising:
            return result
        clean = Pairs.encode(rewriter_of(base), [SentencePair(pair.target, pair.target, pair.domain) for pair in pairs])
        special, draw = base.special_ids, random.Random("noise")
        words = [token for row in clean.sources for token in row if token not in special] or [base.pad]
        return Pairs(
            result.sources + [noisy(row, config.denoising, words, special, draw) for row in clean.sources],
            result.labels + clean.labels,
            result.sentences + clean.sentences,
        )

    def lr_scale(self, module: Any) -> float:
        return float(module.config.speed)

    def after_training(self, module: Any) -> None:
        self.shrink(module, module.config.shrink)

    def packed(self, module: Any) -> Mapping[str, torch.Tensor]:
        return module.packed()

    def unpacked(self, module: Any, weights: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        return module.unpacked(weights)

    @contextlib.contextmanager
    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> Iterator[None]:
        """Attach nothing: the model runs after the base has translated."""
        yield

    def log_probabilities(self, base: BaseModel, module: Any, batch: Batch) -> torch.Tensor:
        """Log-probabilities of the samples under the rewriting model, given the base's translations."""
        with module.exchanged():
            return super().log_probabilities(base, module, batch)

    def loss(self, base: BaseModel, module: Any, batch: Batch) -> Loss:
        from engine.methods.weight_swap import dropout_in, smoothed

        layers = [*base.model.get_encoder().layers, *base.decoder_layers]
        with dropout_in(layers, module.config.dropout):
            total, nll = smoothed(base, self.log_probabilities(base, module, batch), batch, module.config.label_smoothing)
        return Loss(total, {"nll": nll})

    def translate(
        self, base: BaseModel, module: Any, texts: Sequence[str], inner: Callable[[Sequence[str]], list[str]],
        strength: float, decoding: Decoding, progress: Progress,
    ) -> list[str]:  # fmt: skip
        """The base's translations, rewritten with `decoding`."""
        from engine.decoding.translate import translate
        from engine.methods.rewrite.texts import rewriter_of

        text = inner(texts)
        with base.lock, module.exchanged():
            return translate(rewriter_of(base), text, decoding=decoding, progress=progress)
