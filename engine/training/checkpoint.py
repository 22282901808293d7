"""Checkpoints: the complete training state in two files without pickle, written atomically.

    state.safetensors   module.<key>, best.<key>, optimizer.<parameter>.<entry>, rng.cpu, rng.cuda
    state.json          update, epoch, batch, best validation, seconds spent, and the options they belong to
A checkpoint is a folder `checkpoint` that replaces the previous one by two renames. After a crash between them, `checkpoint.old`
remains and is used.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from engine.core.atomic_files import atomic_folder, folder_and_old
from engine.core.random_state import random_state, set_random_state


@dataclass
class Position:
    """The position of a training, from which it resumes."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # batches of the epoch already used
    best_loss: float | None = None
    best_update: int = 0
    worse: int = 0  # validations since the best
    seconds: float = 0.0
    stopped_by: str = ""  # why training ended; empty until then
    halved: bool = False  # memory ran out once: batches are processed in halves from then on


def save_checkpoint(
    folder: Path,
    position: Position,
    module: nn.Module,
    best: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    options: dict[str, object],
) -> None:
    """Write `folder`/checkpoint. Raises StorageError when the disk is full; the previous checkpoint then remains."""
    from safetensors.torch import save_file

    tensors = {f"module.{key}": value for key, value in module.state_dict().items()}
    tensors |= {f"best.{key}": value for key, value in best.items()}
    names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    for index, entries in optimizer.state_dict()["state"].items():
        for entry, value in entries.items():
            tensors[f"optimizer.{names[index]}.{entry}"] = torch.as_tensor(value)
    tensors |= {f"rng.{key}": value for key, value in random_state(next(module.parameters()).device).items()}
    tensors = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    with atomic_folder(folder / "checkpoint", "the checkpoint") as temporary:
        save_file(tensors, temporary / "state.safetensors")
        text = json.dumps({"position": asdict(position), "options": options}, indent=2, sort_keys=True)
        (temporary / "state.json").write_text(text, encoding="utf-8")


def load_checkpoint(
    folder: Path, module: nn.Module, optimizer: torch.optim.Optimizer, options: dict[str, object]
) -> tuple[Position, dict[str, Tensor]] | None:
    """Restore the newest complete checkpoint into module, optimizer and random generators; returns (position, best weights).

    Returns None if there is no checkpoint, or if it belongs to other options or another module; training then restarts.
    """
    for location in folder_and_old(folder / "checkpoint"):
        try:
            metadata = json.loads((location / "state.json").read_text(encoding="utf-8"))
            tensors = load_file(location / "state.safetensors")
            position = Position(**metadata["position"])
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):
            continue
        weights = {key[7:]: value for key, value in tensors.items() if key.startswith("module.")}
        if metadata.get("options") != json.loads(json.dumps(options)) or set(weights) != set(module.state_dict()):
            return None
        module.load_state_dict(weights)
        names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
        state: dict[int, dict[str, Tensor]] = {}
        for index, name in enumerate(names):
            prefix = f"optimizer.{name}."
            entries = {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)}
            if entries:
                state[index] = entries
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        rng_state = {key[4:]: value for key, value in tensors.items() if key.startswith("rng.")}
        set_random_state(rng_state, next(module.parameters()).device)
        return position, {key[5:]: value for key, value in tensors.items() if key.startswith("best.")}
    return None
