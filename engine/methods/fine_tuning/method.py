"""Fine-tuning as a plugin (Luong and Manning, 2015; paper 1, Table 7): tuned copies of weights, or low-rank updates."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

from engine.core.progress import Progress
from engine.methods.cost import Cost, Workload
from engine.methods.fine_tuning.config import FineTuningConfig
from engine.methods.interface import Artefacts, Batch, Budgets, Capabilities, Loss, Method
from engine.methods.weight_groups import part_of

if TYPE_CHECKING:
    import torch
    from torch import nn

    from engine.base import BaseModel
    from engine.methods.data import Samples

SMOOTHED: Mapping[str, Any] = {"label_smoothing": 0.1}  # as in the training of the bases
PAIRS: Mapping[str, Any] = {"keep_pairs": 1.0, "max_epochs": 4}


class FineTuning(Method):
    """Trains copies of the base's weights, or low-rank updates to them."""

    name: ClassVar[str] = "fine_tuning"
    config_class = FineTuningConfig
    budgets: ClassVar[Budgets] = {
        # A lower rate, shrinking and training on a share of the pairs gain only half as much (bench/EXPERIMENTS.md).
        "quick": {"method": dict(speed=0.25, **SMOOTHED), "training": dict(PAIRS, max_updates=300, max_minutes=5)},
        "balanced": {"method": dict(speed=0.5, **SMOOTHED), "training": dict(PAIRS, max_updates=2400)},
    }
    capabilities = Capabilities(
        title="Fine-tuning",
        summary="Fine-tunes copies of the base's own weights, or low-rank updates to them (LoRA). The "
        "strongest and the largest plugin.",
        source="Luong and Manning, Stanford Neural Machine Translation Systems for Spoken Language Domains (2015); "
        "Hu et al., LoRA: Low-Rank Adaptation of Large Language Models (2022)",
        changes_encoder=True,
    )

    def cost(self, config: FineTuningConfig, work: Workload) -> Cost:
        shape = work.shape
        if config.kind == "lora":
            blocks = shape.encoder + 2 * shape.decoder
            return Cost(weights=blocks * len(config.target_modules) * 2 * config.rank * shape.d, training=0.7)
        part = part_of(config.which, work.sourced)
        above = part in ("decoder", "cross_attention")  # no backward pass through the encoder
        return Cost(weights=shape.part(part), bytes_each=1, training=0.35 if above else 0.7)

    def prepare(self, samples: Samples, config: FineTuningConfig, progress: Progress) -> Artefacts:
        """Resolve `which` if it is auto; nothing is computed."""
        return Artefacts(config=config.replace(which=part_of(config.which, samples.sourced)))

    def build(self, base: BaseModel, artefacts: Artefacts, config: FineTuningConfig) -> nn.Module:
        from engine.methods.fine_tuning.lora import LowRank
        from engine.methods.weight_swap import TunedWeights

        module: Any = LowRank(base, config) if config.kind == "lora" else TunedWeights(base, part_of(config.which))
        module.config = config
        return module.to(base.device)

    def changes_encoder(self, module: Any) -> bool:
        return bool(module.changes_encoder)

    def lr_scale(self, module: Any) -> float:
        return 1.0 if module.config.kind == "lora" else float(module.config.speed)

    def after_training(self, module: Any) -> None:
        self.shrink(module, module.config.shrink)

    def packed(self, module: Any) -> Mapping[str, torch.Tensor]:
        return super().packed(module) if module.config.kind == "lora" else module.packed()

    def unpacked(self, module: Any, weights: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        return weights if module.config.kind == "lora" else module.unpacked(weights)

    def batches_beams_per_sentence(self, module: Any) -> bool:
        """True: only weights are changed, not how they are applied."""
        return True

    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> AbstractContextManager[None]:
        return module.exchanged(strength)

    def loss(self, base: BaseModel, module: Any, batch: Batch) -> Loss:
        """The label-smoothed loss with dropout in the base's layers, plus `keep_close` times the distance from the base."""
        from engine.methods.weight_swap import dropout_in, smoothed

        config: FineTuningConfig = module.config
        layers = [*base.decoder_layers]
        if batch.encoded is None:
            layers += [*base.model.get_encoder().layers]
        with dropout_in(layers, config.dropout):
            total, nll = smoothed(base, self.log_probabilities(base, module, batch), batch, config.label_smoothing)
        parts = {"nll": nll}
        if config.keep_close and config.kind == "full":
            distance = module.distance()
            total, parts["distance"] = total + config.keep_close * distance, distance.item()
        return Loss(total, parts)
