"""DExperts (Liu et al., 2021): at each step the base's logits z become z + α (z⁺ - z⁻).

z⁺ are the logits of a language model of the samples, z⁻ those of a language model of the base's translations of the same sources
(or of general text). The difference favours what the samples say more often. It depends on the prefix, but not on the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from engine.base import BaseModel
from engine.core.progress import Progress
from engine.methods.batches import Pairs
from engine.methods.cost import Cost, Workload
from engine.methods.data import Samples
from engine.methods.dexperts.config import DExpertsConfig
from engine.methods.interface import Artefacts, Batch, Capabilities, Loss
from engine.methods.logit_difference import LogitDifference

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True)
class TwoTargets(Pairs):
    """Pairs, each with an additional target sentence for the anti-expert."""

    machine: list[list[int]]


class DExperts(LogitDifference):
    """Steers the choice of each token with two language models."""

    name: ClassVar[str] = "dexperts"
    config_class = DExpertsConfig
    capabilities = Capabilities(
        title="Expert and anti-expert",
        summary="Uses two small language models to prefer what your samples say more often than the base "
        "does. Leaves the layers of the base untouched.",
        source="Liu et al., DExperts: Decoding-Time Controlled Text Generation with Experts and Anti-Experts (2021)",
        replays=False,
    )

    def prepare(self, samples: Samples, config: DExpertsConfig, progress: Progress) -> Artefacts:
        from engine.methods.base_translations import keep_settings
        from engine.methods.dexperts.general import draw_general

        if config.anti == "general":
            draw_general(samples.settings.assets_dir, samples.pair.forward.target, 0)  # raises before any work is done
        keep_settings(samples, config)
        return Artefacts()

    def cost(self, config: DExpertsConfig, work: Workload) -> Cost:
        h, shape = config.hidden or work.shape.d, work.shape
        weights = 2 * (h * (shape.words + shape.positions) + config.layers * 12 * h * h)
        return Cost(weights=weights, training=0.25, translates=config.anti == "translations", decoding=1.4)

    def build(self, base: BaseModel, artefacts: Artefacts, config: DExpertsConfig) -> nn.Module:
        from engine.methods.dexperts.module import DExpertsModule

        return DExpertsModule(base, config).to(base.device)

    def encode(self, base: BaseModel, samples: Samples, part: str, progress: Progress) -> Pairs:
        """Pairs with a sentence for the anti-expert each: the base's translation of the source, or a general sentence."""
        from engine.methods.base_translations import machine_translations, prepared_settings
        from engine.methods.dexperts.general import draw_general

        pairs, config = samples.pairs(part), prepared_settings(samples, DExpertsConfig)
        if config.anti == "general":
            machine = draw_general(samples.settings.assets_dir, base.target, len(pairs))
        else:
            machine = machine_translations(samples, pairs, config.beam, progress, part)
        message = {id(pair): text for pair, text in zip(pairs, machine, strict=True)}
        result = Pairs.encode(base, pairs)
        rows = [ids[: base.max_tokens] for ids in base.encode_target([message[id(pair)] for pair in result.sentences])]
        return TwoTargets(result.sources, result.labels, result.sentences, rows)

    def changes_encoder(self, module: nn.Module) -> bool:
        return True  # so that training does not compute encoder outputs, which it does not need

    def next_difference(self, module: Any) -> Callable[[torch.Tensor], torch.Tensor]:
        from engine.methods.dexperts.module import PrefixCache

        return partial(module.next_difference, memory=PrefixCache())

    def loss(self, base: BaseModel, module: Any, batch: Batch) -> Loss:
        """The loss of each language model on its own texts; the base is not used."""
        assert isinstance(batch.pairs, TwoTargets)
        machine = base.pad_batch([batch.pairs.machine[row] for row in batch.rows])  # (B, T')
        expert = language_loss(module.expert, batch.inputs, batch.labels, base.pad)
        anti = language_loss(module.anti, base.shift_right(machine), machine, base.pad)
        return Loss(expert + anti, {"nll": expert.item(), "nll_anti": anti.item()})


def language_loss(model: Any, inputs: torch.Tensor, labels: torch.Tensor, pad: int) -> torch.Tensor:
    """Mean negative log-likelihood (nats per token) of labels (B, T); causal attention ignores the padding on the right."""
    real = labels != pad  # (B, T)
    log_p = model.logits(model.states(inputs)[real]).float().log_softmax(-1)  # (M, V)
    return -log_p.gather(1, labels[real][:, None]).mean()  # ()
