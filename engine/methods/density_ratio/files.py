"""Reading and writing ngrams.safetensors: the counts of the samples ("style.…") and of general text ("general.…")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.tensor_files import check_keys, load_tensors, save_tensors
from engine.errors import BundleError

if TYPE_CHECKING:
    from torch import Tensor

FILE = "ngrams.safetensors"
COLUMNS = ("keys", "starts", "sums", "tokens", "counts")


def save(models: Mapping[str, Mapping[str, Tensor]], folder: Path) -> Path:
    """Write the tensors of the models, given by name. Returns the file's path."""
    tensors = {f"{name}.{key}": value for name, model in models.items() for key, value in model.items()}
    return save_tensors(folder / FILE, tensors, "the n-gram counts")


def read(file: Path, models: Sequence[str], order: int, words: int) -> dict[str, dict[str, Tensor]]:
    """The tensors of the models by name. Raises BundleError unless they are valid for this order and vocabulary size."""
    data = load_tensors(file)
    names = ["unigram", *(f"{column}_{m}" for m in range(1, order) for column in COLUMNS)]
    check_keys(file, data, {f"{model}.{name}" for model in models for name in names})
    result = {model: {name: data[f"{model}.{name}"] for name in names} for model in models}
    for model in result.values():
        if not _fits(model, order, words):
            raise BundleError("{tensors} does not fit this base. Get a new copy of the bundle.", tensors=FILE)
    return result


def _fits(model: Mapping[str, Tensor], order: int, words: int) -> bool:
    """Whether types, shapes and values are valid, so that no index of the model is out of range."""
    import torch

    unigram = model["unigram"]
    if unigram.dtype != torch.float32 or unigram.shape != (words,) or not bool((unigram > 0).all()):
        return False
    kinds = {"keys": torch.int64, "starts": torch.int64, "sums": torch.float32, "tokens": torch.int32, "counts": torch.float32}
    for m in range(1, order):
        level = {column: model[f"{column}_{m}"] for column in COLUMNS}
        if any(level[column].dtype != kind or level[column].dim() != 1 for column, kind in kinds.items()):
            return False
        histories, pairs = len(level["keys"]), len(level["tokens"])
        if (len(level["starts"]), len(level["sums"]), len(level["counts"])) != (histories + 1, histories, pairs):
            return False
        if not histories:
            continue
        starts, tokens = level["starts"], level["tokens"]
        if int(starts[0]) != 0 or int(starts[-1]) != pairs or bool((starts.diff() < 1).any()):
            return False
        if bool((level["keys"].diff() <= 0).any()) or int(tokens.min()) < 0 or int(tokens.max()) >= words:
            return False
        if not all(bool(((level[column] >= 1) & level[column].isfinite()).all()) for column in ("sums", "counts")):
            return False
    return bool(unigram.isfinite().all())
