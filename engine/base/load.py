"""Loading a base from its folder; every error is reported in one sentence."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base.files import check_type, read_config
from engine.base.precision import loading_arguments
from engine.base.quick_imports import quick_imports
from engine.errors import ModelError, TailorError, first_line
from engine.messages import Message

if TYPE_CHECKING:
    import torch

KNOWN_SHARE = 0.5  # minimum share of a Marian tokenizer's pieces that must be in its vocabulary


def model_class(model_type: str) -> Any:
    """The transformers class of a supported architecture, without importing the table of all architectures, which is slow."""
    if model_type == "marian":
        from transformers.models.marian.modeling_marian import MarianMTModel, MarianSinusoidalPositionalEmbedding

        MarianSinusoidalPositionalEmbedding.create_weight = sinusoids
        return MarianMTModel
    if model_type == "m2m_100":
        from transformers.models.m2m_100.modeling_m2m_100 import M2M100ForConditionalGeneration

        return M2M100ForConditionalGeneration
    from transformers.models.mbart.modeling_mbart import MBartForConditionalGeneration

    return MBartForConditionalGeneration


def load_libraries(model_type: str) -> tuple[Any, Any]:
    """The transformers classes of tokenizers and of a supported architecture; the first import takes seconds."""
    with quick_imports():
        from transformers import AutoTokenizer

        return AutoTokenizer, model_class(model_type)


def sinusoids(embedding: Any) -> torch.Tensor:
    """Marian's positions (P, d), bit-identical to those of transformers, without a Python loop over all of them."""
    import numpy as np
    import torch

    count, d = embedding.weight.shape
    wavelengths = np.array([np.power(10000, 2 * (i // 2) / d) for i in range(d)])  # (d,)
    angles = np.arange(count)[:, None] / wavelengths  # (P, d)
    positions = np.concatenate([np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])], 1)  # (P, d)
    return torch.from_numpy(positions).float().to(embedding.weight.dtype)  # (P, d)


def load_folder(folder: Path, name: str, device: torch.device, precision: str) -> tuple[Any, Any]:
    """(model, tokenizer) from a folder, frozen, in evaluation mode, on the device.

    Raises ModelError if they cannot be loaded or do not belong together, OptionError or MissingError if the precision is not
    available.
    """
    config = read_config(folder)
    check_type(config["model_type"], name)
    tokenizers, kind = load_libraries(config["model_type"])
    import torch
    from transformers.utils import logging

    arguments = loading_arguments(precision, device)
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # its warnings are meant for programmers
    try:
        with quick_imports(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sacremoses is recommended for a normalisation that is not wanted here
            tokenizer = tokenizers.from_pretrained(folder, local_files_only=True)
            model, report = kind.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, output_loading_info=True, **arguments
            )
        if "device_map" not in arguments:
            model = model.to(device)
    except torch.OutOfMemoryError:
        raise TailorError(
            "Not enough memory on {device} for the base {name} in {precision}. Set base_precision to "
            "bfloat16 or int8, or device to cpu.",
            device=device, name=name, precision=precision,
        ) from None  # fmt: skip
    except Exception as error:  # transformers raises dozens of types here; all mean the same to the user
        raise ModelError(
            "{folder} cannot be loaded as a {model_type} translation model ({first}). Copy it again.",
            folder=folder, model_type=config["model_type"], first=first_line(error),
        ) from error  # fmt: skip
    if report.get("missing_keys"):
        lost = sorted(report["missing_keys"])
        raise ModelError(
            "{folder}/model.safetensors lacks {count} weights ({lost}, …). Copy the model again.",
            folder=folder, count=len(lost), lost=lost[0],
        )  # fmt: skip
    check_match(folder, model, tokenizer)
    return model.requires_grad_(False).eval(), tokenizer


def check_match(folder: Path, model: Any, tokenizer: Any) -> None:
    """Raise ModelError if tokenizer and model do not belong together."""
    advice = Message("They do not belong together; copy both from the same model.")
    rows = model.get_input_embeddings().weight.shape[0]
    # M2M100's language codes come after its vocabulary.
    words = len(tokenizer) + len(getattr(tokenizer, "lang_token_to_id", ()))
    if words > rows:
        raise ModelError(
            "The tokenizer in {folder} has {words} words but the model only {rows}. {both}",
            folder=folder, words=words, rows=rows, both=advice,
        )  # fmt: skip
    if words < rows - max(64, rows // 10):  # some models have a few spare rows
        raise ModelError(
            "The tokenizer in {folder} has only {words} words but the model {rows}. {both}",
            folder=folder, words=words, rows=rows, both=advice,
        )  # fmt: skip
    ends = (tokenizer.pad_token_id, tokenizer.eos_token_id)
    if ends != (model.config.pad_token_id, model.config.eos_token_id):
        raise ModelError(
            "The tokenizer in {folder} has other numbers for padding and end of sentence ({padding}, {end}) than the "
            "model ({pad_token_id}, {eos_token_id}). {both}",
            folder=folder, padding=ends[0], end=ends[1], pad_token_id=model.config.pad_token_id,
            eos_token_id=model.config.eos_token_id, both=advice,
        )  # fmt: skip
    piece_ids = getattr(tokenizer, "encoder", None)  # Marian and M2M100: {piece: id} beside SentencePiece models
    for side in ("spm_source", "spm_target", "sp_model"):
        pieces = getattr(tokenizer, side, None)
        if not piece_ids or pieces is None:
            continue
        spelt = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
        vocabulary = getattr(tokenizer, "target_encoder", piece_ids) if side == "spm_target" else piece_ids
        if sum(piece in vocabulary for piece in spelt) < KNOWN_SHARE * len(spelt):
            raise ModelError(
                "Most pieces of {spm} in {folder} are not in vocab.json. {both}", spm=SPM[side], folder=folder, both=advice
            )


SPM = {"spm_source": "source.spm", "spm_target": "target.spm", "sp_model": "sentencepiece.bpe.model"}
