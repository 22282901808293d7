"""Identifying a base on another machine and loading it there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.base import BaseModel
from engine.errors import ModelError


def base_arguments(base: BaseModel) -> dict[str, object]:
    """The arguments with which another machine loads the same base; its folder must exist there under the same path."""
    return {
        "base": str(Path(base.path).resolve()),
        "source": base.source,
        "target": base.target,
        "fingerprint": base.fingerprint(),
        "precision": base.precision,
    }


def load_base(arguments: Mapping[str, Any]) -> BaseModel:
    """The base of `base_arguments`. Raises ModelError if a different base is at its path on this machine."""
    import torch

    from engine.core.cores import model_threads
    from engine.core.settings import Settings

    settings = Settings.from_mapping(arguments["settings"]).replace(base_precision=arguments["precision"])
    if settings.threads:
        torch.set_num_threads(model_threads(settings.threads))
    base = BaseModel.load(arguments["base"], arguments["source"], arguments["target"], settings=settings)
    if base.fingerprint() != arguments["fingerprint"]:
        raise ModelError(
            "The base in {base} on this node differs from the one where the job started. Copy the same "
            "folder to all nodes, or share it.",
            base=arguments["base"],
        )
    return base
