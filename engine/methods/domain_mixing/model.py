"""A fitted set of proportion layers, stored as proportions.safetensors and proportions.json, which contain no text of the user."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.atomic_files import write_json
from engine.core.tensor_files import save_tensors
from engine.errors import BundleError
from engine.methods.domain_mixing.shapes import CorpusSummary, HeldOut

if TYPE_CHECKING:
    from torch import Tensor

    from engine.base import BaseModel
    from engine.methods.domain_mixing.layers import ProportionLayer

TENSORS = "proportions.safetensors"
ABOUT = "proportions.json"
PARTS = ("weight", "bias", "mean", "spread")
NEEDED: dict[str, type | tuple[type, ...]] = {
    "domains": list, "epsilon": (int, float), "ridge": (int, float), "weights": list,
    "encoder_reads": str, "sources": bool, "base_fingerprint": str,
}  # fmt: skip


@dataclass
class ProportionModel:
    """R of every layer: `layers["encoder"]` for the inputs of the encoder's layers and its output, `layers["decoder"]` for the
    inputs of the decoder's layers.

    `encoder_reads` is "source", "target" (the encoder read target sentences, as in the reverse direction) or "" (no encoder
    layers). `sources` is whether the decoder read sources. `held_out` and `corpus` are figures of the fit; `corpus` contains words
    of the user and is not saved.
    """

    domains: list[str]
    epsilon: float
    layers: dict[str, list[ProportionLayer]]
    weights: list[float]  # per word of each domain in L_mix
    ridge: float = 0.0
    encoder_reads: str = "source"
    sources: bool = True
    base_fingerprint: str = ""
    held_out: dict[str, HeldOut] = field(default_factory=dict)
    corpus: dict[str, CorpusSummary] = field(default_factory=dict)

    def to_mapping(self) -> dict[str, object]:
        """The content of proportions.json."""
        return {name: getattr(self, name) for name in (*NEEDED, "held_out")}

    def proportions(self, side: str, states: list[Tensor]) -> Tensor:
        """D (n, P, k) of the states (n, d) at each position of a side."""
        import torch

        from engine.methods.domain_mixing.layers import mix

        with torch.no_grad():
            rows = [mix(layer(state), self.epsilon) for layer, state in zip(self.layers[side], states, strict=True)]
            return torch.stack(rows, dim=1)  # (n, P, k)

    def tensors(self) -> dict[str, Tensor]:
        """{"encoder.weight": (P, k, d), "encoder.bias": (P, k), "encoder.mean": (P, d), "encoder.spread": (P, d), …}"""
        import torch

        return {
            f"{side}.{part}": torch.stack([getattr(layer, part).detach().float().cpu() for layer in layers]).contiguous()
            for side, layers in self.layers.items()
            for part in PARTS
        }

    def save(self, folder: Path) -> dict[str, Path]:
        """Write both files to a folder. Returns their paths by name. Raises StorageError."""
        folder.mkdir(parents=True, exist_ok=True)
        save_tensors(folder / TENSORS, self.tensors(), "the proportions")
        write_json(folder / ABOUT, self.to_mapping(), "the proportions")
        return {name: folder / name for name in (TENSORS, ABOUT)}

    @classmethod
    def load(cls, folder: Path, base: BaseModel | None = None) -> ProportionModel:
        """Load both files and check them against the base, if given. Raises BundleError."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        for name in (TENSORS, ABOUT):
            if not (folder / name).is_file():
                raise BundleError(
                    "{folder} contains no {name}. Fit the proportions again, or get a new copy of the bundle.",
                    folder=folder,
                    name=name,
                )
        try:
            metadata = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            tensors = load_file(folder / TENSORS)
        except (OSError, ValueError, SafetensorError) as error:
            raise BundleError(
                "The proportions in {folder} cannot be read ({error}). Fit them again.", folder=folder, error=error
            ) from None
        if not isinstance(metadata, dict) or not all(isinstance(metadata.get(key), kind) for key, kind in NEEDED.items()):
            raise BundleError("The proportions in {folder} are invalid. Fit them again.", folder=folder / ABOUT)
        model = cls(**{key: value for key, value in metadata.items() if key in {*NEEDED, "held_out"}}, layers={})
        if base is not None and model.base_fingerprint != base.fingerprint():
            raise BundleError(
                "The proportions in {folder} were fitted on another base than {base}. Fit them on this one.",
                folder=folder,
                base=base.name,
            )
        for side in ("encoder", "decoder"):
            if f"{side}.weight" in tensors:
                model.layers[side] = _layers(folder, side, tensors, len(model.domains))
        if base is not None:
            _check_shape(folder, model, base)
        return model


def _layers(folder: Path, side: str, tensors: dict[str, Tensor], domains: int) -> list[ProportionLayer]:
    from engine.methods.domain_mixing.layers import ProportionLayer

    shape = tensors[f"{side}.weight"].shape  # (P, k, d)
    expected = {"weight": shape, "bias": shape[:2], "mean": (shape[0], *shape[2:]), "spread": (shape[0], *shape[2:])}
    for part in PARTS:
        result = tensors.get(f"{side}.{part}")
        if len(shape) != 3 or shape[1] != domains or result is None or tuple(result.shape) != tuple(expected[part]):
            raise BundleError(
                "{folder}: {side}.{part} is missing or has the wrong shape. Fit the proportions again.",
                folder=folder / TENSORS, side=side, part=part,
            )  # fmt: skip
    layers = []
    for position in range(shape[0]):
        layer = ProportionLayer(shape[2], domains)
        for part in PARTS:
            getattr(layer, part).data.copy_(tensors[f"{side}.{part}"][position])
        layers.append(layer.requires_grad_(False))
    return layers


def _check_shape(folder: Path, model: ProportionModel, base: BaseModel) -> None:
    from engine.methods.domain_mixing.input_hooks import proportion_layer_counts

    counts = proportion_layer_counts(base)
    for side, layers in model.layers.items():
        if len(layers) != counts[side] or layers[0].weight.shape[1] != base.d_model:
            raise BundleError(
                "{folder}: its {side} does not fit the base {base}. Fit the proportions again.",
                folder=folder / TENSORS, side=side, base=base.name,
            )  # fmt: skip
        for layer in layers:
            layer.to(base.device)
