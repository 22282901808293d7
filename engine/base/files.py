"""The files of a base's folder: which ones are required, and their contents before anything is loaded. Needs no torch."""

from __future__ import annotations

import json
import math
from pathlib import Path

from engine.core.json_object import Json
from engine.errors import ModelError

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
TYPES = ("marian", "m2m_100", "mbart")
# The tokenizer needs one file of each group.
TOKENIZERS = {
    "marian": (("vocab.json",), ("source.spm",), ("target.spm",)),
    "m2m_100": (("tokenizer.json", "sentencepiece.bpe.model", "vocab.json"), ("tokenizer_config.json",)),
    "mbart": (("tokenizer.json", "sentencepiece.bpe.model"), ("tokenizer_config.json",)),
}


def read_json(file: Path) -> Json:
    """A JSON object from a file of the model. Raises ModelError."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError("{file} is not valid JSON ({error}). Copy the model again.", file=file, error=error) from None
    if not isinstance(value, dict):
        raise ModelError("{file} is not a JSON object. Copy the model again.", file=file)
    return value


def check_type(model_type: str, name: str) -> None:
    """Raise ModelError for unsupported architectures, before their weights are read."""
    if model_type not in TYPES:
        raise ModelError(
            "The base {name} is a {model_type} model. Tailor MT works with Marian, M2M100, NLLB and mBART models, "
            "whose decoder layers have self_attn and encoder_attn.",
            name=name,
            model_type=model_type,
        )


def read_config(folder: Path, *, weights: bool = True) -> Json:
    """The folder's config.json.

    Raises ModelError if the folder is not a sequence-to-sequence model with safe weights or lacks a tokenizer file. Without
    `weights`, pickled weights are accepted.
    """
    if not folder.exists():
        raise ModelError("There is no folder {folder}. Specify the folder of a transformers translation model.", folder=folder)
    if not folder.is_dir():
        raise ModelError("{folder} is a file, not a model folder. Specify the folder that contains config.json.", folder=folder)
    file = folder / "config.json"
    if not file.exists():
        raise ModelError("{folder} is not a model folder: it has no config.json.", folder=folder)
    config = read_json(file)
    if "model_type" not in config:
        raise ModelError("{file} names no model_type. Specify the folder of a transformers model.", file=file)
    if not config.get("is_encoder_decoder", config["model_type"] in TYPES):
        raise ModelError(
            "{folder} holds a {model_type} model, which is not sequence-to-sequence: it cannot translate. Use a "
            "Marian, M2M100, NLLB or mBART model.",
            folder=folder,
            model_type=config["model_type"],
        )
    if weights:
        weight_files(folder)
    for group in TOKENIZERS.get(config["model_type"], ()):
        if not any((folder / name).exists() for name in group):
            raise ModelError(
                "{folder} has no {group}, which a {model_type} tokenizer needs. Copy the model again.",
                folder=folder, group=group[0], model_type=config["model_type"].replace("marian", "Marian"),
            )  # fmt: skip
    return config


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files with the weights, one or several. Raises ModelError if there are none or one is missing."""
    weights, index = folder / WEIGHTS[0], folder / WEIGHTS[1]
    if weights.exists():
        return [weights]
    if index.exists():
        listed = read_json(index).get("weight_map")
        if not isinstance(listed, dict) or not all(isinstance(name, str) for name in listed.values()):
            raise ModelError("{index} does not say where the weights are. Copy the model again.", index=index)
        files = [folder / Path(name).name for name in sorted(set(listed.values()))]
        for file in files:
            if not file.exists():
                raise ModelError(
                    "{folder} lacks {file}, a part of the weights. Copy the model again.", folder=folder, file=file.name
                )
        return files
    if any((folder / name).exists() for name in PICKLED):
        raise ModelError(
            "{folder} has only pickled weights ({pickled}), which can run code when they are loaded. `tailormt base "
            "add {folder} --convert` reads them without running anything and keeps model.safetensors.",
            folder=folder,
            pickled=PICKLED[0],
        )
    raise ModelError("{folder} has no weights: model.safetensors is missing. Copy the model again.", folder=folder)


def count_parameters(folder: Path) -> int:
    """The number of weights stored in the folder, from the headers of its files. Raises ModelError on a damaged file."""
    from safetensors import SafetensorError, safe_open

    total = 0
    for file in weight_files(folder):
        try:
            with safe_open(file, framework="np") as tensors:
                keys = list(tensors.keys())
                total += sum(math.prod(tensors.get_slice(key).get_shape()) for key in keys)
        except (OSError, SafetensorError) as error:
            raise ModelError("{file} is damaged or cut short ({error}). Copy the model again.", file=file, error=error) from None
    return total
