"""What can be said of a base model's folder without loading it: shape, languages, size. Needs no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.errors import ModelError

__all__ = ["read_card", "read_config"]

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
MARIAN = ("vocab.json", "source.spm", "target.spm")
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file of the model. Raises ModelError."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{file} is not valid JSON ({error}). Copy the model again.") from None
    if not isinstance(value, dict):
        raise ModelError(f"{file} is not a JSON object. Copy the model again.")
    return value


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json. Raises ModelError where the folder is no sequence-to-sequence model with safe weights."""
    if not folder.exists():
        raise ModelError(f"There is no folder {folder}. Give the folder of a transformers translation model.")
    if not folder.is_dir():
        raise ModelError(f"{folder} is a file, not a model folder. Give the folder that holds config.json.")
    file = folder / "config.json"
    if not file.exists():
        raise ModelError(f"{folder} is no model folder: it has no config.json.")
    config = read_json(file)
    if "model_type" not in config:
        raise ModelError(f"{file} names no model_type. Give the folder of a transformers model.")
    if not config.get("is_encoder_decoder", config["model_type"] in ("marian", "m2m_100", "mbart")):
        raise ModelError(
            f"{folder} holds a {config['model_type']} model, which is not sequence-to-sequence: it cannot translate. "
            "Use a Marian, M2M100, NLLB or mBART model."
        )
    if not any((folder / name).exists() for name in WEIGHTS):
        if any((folder / name).exists() for name in PICKLED):
            raise ModelError(
                f"{folder} has only pickled weights ({PICKLED[0]}), which can run code when they are loaded. "
                "Save the model again with save_pretrained to get model.safetensors."
            )
        raise ModelError(f"{folder} has no weights: model.safetensors is missing. Copy the model again.")
    if config["model_type"] == "marian":
        for name in MARIAN:
            if not (folder / name).exists():
                raise ModelError(f"{folder} has no {name}, which a Marian tokenizer needs. Copy the model again.")
    return config


def read_card(folder: str | Path) -> dict[str, Any]:
    """Name, languages, decoder layers, hidden size and bytes of a base model's folder.

    Raises ModelError where the folder is no usable base.
    """
    folder = Path(folder)
    config = read_config(folder)
    languages: list[str] = []
    vocabulary = folder / "vocab.json"
    tokenizer = folder / "tokenizer_config.json"
    if config["model_type"] == "marian" and vocabulary.exists():
        languages = sorted(word[2:-2] for word in read_json(vocabulary) if word[:2] == ">>" and word[-2:] == "<<")
    if not languages and tokenizer.exists():
        about = read_json(tokenizer)
        languages = [code for code in (about.get("source_lang"), about.get("target_lang")) if code]
    return {
        "name": folder.resolve().name,
        "path": str(folder),
        "model_type": config["model_type"],
        "languages": languages,
        "decoder_layers": config.get("decoder_layers", 0),
        "d_model": config.get("d_model", 0),
        "bytes": sum(file.stat().st_size for file in folder.iterdir() if file.is_file()),
        "card": (folder / "README.md").read_text(encoding="utf-8") if (folder / "README.md").exists() else "",
    }
