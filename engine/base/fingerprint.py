"""The fingerprint of a base: SHA-256 of the shape that determines its output, its vocabulary and its stored weights.

Weights are hashed as float32 under their names in the loaded model, tied ones under each name. A base held in another
precision is hashed from its files, so that a plugin fits in any precision.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from engine.base.files import weight_files
from engine.base.load import model_class
from engine.core.json_object import Json

# What determines a model's output besides its weights and its vocabulary.
SHAPE_KEYS = (
    "model_type", "d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads",
    "encoder_ffn_dim", "decoder_ffn_dim", "activation_function", "scale_embedding", "max_position_embeddings",
    "pad_token_id", "eos_token_id", "decoder_start_token_id", "normalize_before", "static_position_embeddings",
)  # fmt: skip


def fingerprint(model: Any, tokenizer: Any, folder: Path, precision: str) -> str:
    """`sha256:` and 64 hexadecimal digits, independent of the precision in which the model is held."""
    digest = hashlib.sha256()
    config = model.config.to_dict()
    digest.update(json.dumps({key: config.get(key) for key in SHAPE_KEYS}, sort_keys=True).encode())
    digest.update(json.dumps(sorted(tokenizer.get_vocab().items())).encode())
    if precision == "float32":
        for key, tensor in sorted(model.state_dict().items()):
            add(digest, key, tensor)
    else:
        add_stored(digest, model.config, folder)
    return "sha256:" + digest.hexdigest()


def add(digest: Any, key: str, tensor: Any) -> None:
    digest.update(f"{key}{tuple(tensor.shape)}".encode())
    digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())


def add_stored(digest: Any, config: Any, folder: Path) -> None:
    """Add the same bytes from the files, with one tensor in memory at a time."""
    with torch.device("meta"):
        empty = model_class(config.model_type)(config)
    names = sorted(empty.state_dict(keep_vars=True).items())
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(safe_open(file, framework="pt")) for file in weight_files(folder)]
        stored = {key: file for file in files for key in file.keys()}  # noqa: SIM118 - no dict
        # A tied weight is stored once; its other names refer to the same parameter.
        by_parameter = {id(parameter): key for key, parameter in names if key in stored}
        loose = [key for key, parameter in names if key not in stored and id(parameter) not in by_parameter]
        computed = computed_weights(folder, loose) if loose else {}
        for key, parameter in names:
            if key in computed:
                add(digest, key, computed[key])
            else:
                stored_key = key if key in stored else by_parameter[id(parameter)]
                add(digest, key, stored[stored_key].get_tensor(stored_key))


def computed_weights(folder: Path, keys: list[str]) -> Json:
    """Weights that are in no file, such as sinusoidal positions, computed by loading the base again in float32."""
    from engine.base.load import load_folder

    model, _ = load_folder(folder, folder.name, torch.device("cpu"), "float32")
    weights = model.state_dict()
    return {key: weights[key] for key in keys}
