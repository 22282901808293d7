"""The weights in training: float32 masters that the optimizers update, the model's copy in the training precision, and a
running average; saved and restored without pickle.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from engine.builders.bases.network import trained_names
from engine.builders.bases.options import BaseTrainingOptions
from engine.core.atomic_files import atomic_folder, folder_and_old
from engine.core.devices import fast_bfloat16
from engine.core.random_state import random_state, set_random_state
from engine.errors import StorageError

SHARED = "model.shared.weight"
RANDOM = {"cpu": "rng", "cuda": "rng.cuda"}  # the keys of the generators' states in a checkpoint


@dataclass
class State:
    """The position of a training."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # batches of the epoch already used
    seconds: float = 0.0
    tokens: int = 0  # of both sides, without padding


class Weights:
    """The masters, optimizers and average of a model's trained weights."""

    def __init__(self, model: Any, options: BaseTrainingOptions, device: torch.device) -> None:
        self.names = trained_names(model)
        result = dict(model.named_parameters())
        self.live = [result[name] for name in self.names]
        # The embedding table is its own master, since it stays float32.
        self.masters = [w if w.dtype == torch.float32 else w.detach().float().requires_grad_() for w in self.live]
        self.average = [w.detach().clone() for w in self.masters] if options.average else []
        self.options = options
        matrices = [w for n, w in zip(self.names, self.masters, strict=True) if w.dim() == 2 and n != SHARED]
        remaining = [w for n, w in zip(self.names, self.masters, strict=True) if not (w.dim() == 2 and n != SHARED)]
        if not options.muon_rate:
            matrices, remaining = [], matrices + remaining
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(
                remaining, lr=options.learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=options.weight_decay,
                fused=device.type in ("cpu", "cuda"),
            )
        ]  # fmt: skip
        if matrices:
            # Muon (Jordan et al. 2024) makes about twice the progress of AdamW per update on these models.
            self.optimizers.append(torch.optim.Muon(matrices, lr=options.muon_rate, weight_decay=options.weight_decay))
        self.highest = [options.learning_rate, options.muon_rate]
        self.arithmetic = contextlib.nullcontext if fast_bfloat16(device) else float32_for_bfloat16

    def step(self, factor: float) -> None:
        """Make one update with the gradients of the live weights, at `factor` times the highest learning rates."""
        for live, master in zip(self.live, self.masters, strict=True):
            if live is not master:
                master.grad = None if live.grad is None else live.grad.float()
                live.grad = None
        torch.nn.utils.clip_grad_norm_(self.masters, 1.0)
        for optimizer, highest in zip(self.optimizers, self.highest, strict=False):
            for group in optimizer.param_groups:
                group["lr"] = highest * factor
            with self.arithmetic():
                optimizer.step()
        with torch.no_grad():
            for master in self.masters:
                master.grad = None
            self.to_live(self.masters)

    def to_live(self, tensors: list[Tensor]) -> None:
        with torch.no_grad():
            torch._foreach_copy_(self.live, tensors)

    def follow(self, update: int) -> None:
        """Move the average a step towards the masters; early on it decays faster, so that the initial weights do not linger."""
        if self.average:
            decay = min(self.options.average, (1 + update) / (10 + update))
            with torch.no_grad():
                torch._foreach_lerp_(self.average, [w.detach() for w in self.masters], 1 - decay)

    def best(self) -> list[Tensor]:
        """The weights to use: the average if there is one, else the masters."""
        return self.average or self.masters

    def save(self, folder: Path, state: State) -> None:
        """Write `folder`/checkpoint atomically."""
        from safetensors.torch import save_file

        tensors = {f"master.{n}": w for n, w in zip(self.names, self.masters, strict=True)}
        tensors |= {f"average.{n}": w for n, w in zip(self.names, self.average, strict=False)}
        position = {id(w): n for n, w in zip(self.names, self.masters, strict=True)}
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for weight in group["params"]:
                    for entry, value in optimizer.state[weight].items():
                        tensors[f"optimizer.{position[id(weight)]}/{entry}"] = torch.as_tensor(value)
        tensors |= {RANDOM[key]: value for key, value in random_state(self.masters[0].device).items()}
        with atomic_folder(folder / "checkpoint", "the checkpoint") as temporary:
            selected = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
            save_file(selected, temporary / "state.safetensors")
            (temporary / "state.json").write_text(json.dumps(asdict(state), indent=2), encoding="utf-8")

    def restore(self, folder: Path) -> State | None:
        """Restore the newest complete checkpoint; None if there is none. Raises StorageError if it is of another model shape."""
        for old in folder_and_old(folder / "checkpoint"):
            try:
                state = State(**json.loads((old / "state.json").read_text(encoding="utf-8")))
                tensors = load_file(old / "state.safetensors")
            except (OSError, ValueError, TypeError, SafetensorError):
                continue
            shapes = {n: w.shape for n, w in zip(self.names, self.masters, strict=True)}
            if {k[7:]: v.shape for k, v in tensors.items() if k.startswith("master.")} != shapes:
                raise StorageError(
                    f"The checkpoint in {folder} is of a model of another shape. Give another folder, or remove {old}."
                )
            self._take(tensors)
            return state
        return None

    def _take(self, tensors: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, master in zip(self.names, self.masters, strict=True):
                master.copy_(tensors[f"master.{name}"])
            for name, average in zip(self.names, self.average, strict=False):
                average.copy_(tensors.get(f"average.{name}", tensors[f"master.{name}"]))
        entries: dict[str, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("optimizer."):
                name, entry = key[10:].rsplit("/", 1)
                entries.setdefault(name, {})[entry] = value
        position = {id(w): n for n, w in zip(self.names, self.masters, strict=True)}
        for optimizer in self.optimizers:
            weights = [w for group in optimizer.param_groups for w in group["params"]]
            result = {i: entries[position[id(w)]] for i, w in enumerate(weights) if position[id(w)] in entries}
            optimizer.load_state_dict({"state": result, "param_groups": optimizer.state_dict()["param_groups"]})
        self.to_live(self.masters)
        random_tensors = {key: tensors[name] for key, name in RANDOM.items() if name in tensors}
        set_random_state(random_tensors, self.masters[0].device)


@contextlib.contextmanager
def float32_for_bfloat16() -> Iterator[None]:
    """Make casts to bfloat16 return a float32 copy inside the block. torch's Muon orthogonalizes in bfloat16 only, which is
    slow on a processor that has to emulate it.
    """
    original = torch.Tensor.bfloat16
    torch.Tensor.bfloat16 = lambda tensor: tensor.float().clone()  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        torch.Tensor.bfloat16 = original  # type: ignore[method-assign]
