"""The frozen base: a `transformers` sequence-to-sequence model, its tokenizer and one direction.

The base is never changed. Plugins hook into its decoder layers for the time of one call and leave nothing behind, so
that output without a plugin equals the base's bit for bit, before and after.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import threading
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from engine.base.card import read_config
from engine.base.families import Family, check_type, family_of
from engine.decoding.options import Decoding
from engine.errors import MissingError, ModelError
from engine.progress import Progress

if TYPE_CHECKING:
    import torch

    from engine.plugins import Plugin, PluginStack

__all__ = ["BaseModel"]

# What decides a model's output besides its weights and its vocabulary.
SHAPE_KEYS = (
    "model_type", "d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads",
    "encoder_ffn_dim", "decoder_ffn_dim", "activation_function", "scale_embedding", "max_position_embeddings",
    "pad_token_id", "eos_token_id", "decoder_start_token_id", "normalize_before", "static_position_embeddings",
)  # fmt: skip


class BaseModel:
    """A frozen model that translates from `source` to `target`. Made by `BaseModel.load`.

    Several directions and all plugins share one torch module; `lock` keeps calls with different plugins apart.
    """

    def __init__(
        self, model: Any, tokenizer: Any, family: Family, *, source: str, target: str, name: str, path: str
    ) -> None:
        family.check(source, target)
        self.model = model
        self.tokenizer = tokenizer
        self.family = family
        self.source = source
        self.target = target
        self.name = name
        self.path = path
        self.lock = threading.RLock()

    @classmethod
    def load(cls, path: str | Path, source: str, target: str, *, device: str = "auto", download: bool = False) -> Self:
        """Load from a folder, or from a hub id when `download` is asked for (or the hub's cache holds it already).

        Weights are float32 whatever they are stored as. Raises ModelError on a folder that is no usable base, and
        MissingError for a hub id that is not on disk.
        """
        import torch
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        from transformers.utils import logging

        from engine.devices import pick_device

        where = str(path)
        hub = not Path(path).exists() and where.count("/") == 1 and not where.startswith((".", "/", "~"))
        folder = cls._from_hub(where, download) if hub else Path(path).expanduser()
        config = read_config(folder)
        name = where if hub else folder.resolve().name
        check_type(config["model_type"], name)
        logging.disable_progress_bar()
        logging.set_verbosity_error()  # its warnings speak to programmers
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # sacremoses is recommended for a normalisation that we do not want
                tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
                model, report = AutoModelForSeq2SeqLM.from_pretrained(
                    folder, local_files_only=True, dtype=torch.float32, use_safetensors=True, output_loading_info=True
                )
        except Exception as error:  # transformers raises dozens of types here; all mean the same to the user
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ModelError(
                f"{folder} cannot be loaded as a {config['model_type']} translation model ({first.rstrip('.')}). Copy it again."
            ) from error
        family = family_of(config["model_type"], tokenizer, name)
        if report.get("missing_keys"):
            lost = sorted(report["missing_keys"])
            raise ModelError(
                f"{folder}/model.safetensors lacks {len(lost)} weights ({lost[0]}, …). Copy the model again."
            )
        rows = model.get_input_embeddings().weight.shape[0]
        if len(tokenizer) > rows:
            raise ModelError(
                f"The tokenizer in {folder} has {len(tokenizer)} words but the model only {rows}. "
                "They do not belong together; copy both from the same model."
            )
        ends = (tokenizer.pad_token_id, tokenizer.eos_token_id)
        if ends != (model.config.pad_token_id, model.config.eos_token_id):
            raise ModelError(
                f"The tokenizer in {folder} has other numbers for padding and end of sentence ({ends[0]}, {ends[1]}) than the "
                f"model ({model.config.pad_token_id}, {model.config.eos_token_id}). They do not belong together; copy both from "
                "the same model."
            )
        model.requires_grad_(False).eval().to(pick_device(device))
        base = cls(model, tokenizer, family, source=source, target=target, name=name, path=str(path))
        base.decoder_layers  # noqa: B018 - an unknown layout is refused here, not at the first plugin
        return base

    @staticmethod
    def _from_hub(name: str, download: bool) -> Path:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        try:
            patterns = ["*.json", "*.safetensors", "*.spm", "*.model", "*.txt"]
            return Path(snapshot_download(name, local_files_only=not download, allow_patterns=patterns))
        except LocalEntryNotFoundError:
            advice = "Check the connection" if download else "Ask for the download"
            raise MissingError(
                f"The base {name} is not on this machine. {advice}, or copy the model's folder here and give its path."
            ) from None
        except Exception as error:
            raise MissingError(f"The base {name} could not be downloaded: {str(error).splitlines()[0]}") from error

    # -- shape

    @cached_property
    def decoder_layers(self) -> Any:
        """The decoder's layers, each with `self_attn` and `encoder_attn`. Raises ModelError on any other layout."""
        decoder = self.model.get_decoder()
        layers = getattr(decoder, "layers", None)
        if (
            layers is None
            or not len(layers)
            or not all(hasattr(x, "self_attn") and hasattr(x, "encoder_attn") for x in layers)
        ):
            raise ModelError(
                f"The base {self.name} has a decoder layout that Tailor MT does not know: its layers have no self_attn and "
                "encoder_attn. Use a Marian, M2M100, NLLB or mBART model."
            )
        return layers

    @property
    def d_model(self) -> int:
        return int(self.model.config.d_model)

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def pad(self) -> int:
        return int(self.model.config.pad_token_id)

    @cached_property
    def max_tokens(self) -> int:
        """The longest input in tokens, special tokens included."""
        return int(getattr(self.model.config, "max_position_embeddings", 512)) - 2

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids that belong to no phrase: end of sentence, padding, language tags and codes."""
        return frozenset({*self.tokenizer.all_special_ids, *self.family.direction_ids(), self.pad})

    def directed(self, source: str, target: str) -> BaseModel:
        """The same weights for another direction. Raises ModelError when the model does not know it."""
        self.family.check(source, target)
        other = copy.copy(self)
        other.source, other.target = source, target
        return other

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        config = self.model.config.to_dict()
        digest.update(json.dumps({key: config.get(key) for key in SHAPE_KEYS}, sort_keys=True).encode())
        digest.update(json.dumps(sorted(self.tokenizer.get_vocab().items())).encode())
        for key, tensor in sorted(self.model.state_dict().items()):
            digest.update(f"{key}{tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
        return "sha256:" + digest.hexdigest()

    def fingerprint(self) -> str:
        """SHA-256 of shape, vocabulary and float32 weights: equal exactly when two bases translate alike."""
        return self._fingerprint

    # -- tokens

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Source token ids, special tokens included."""
        return self.family.encode(list(texts), self.source, self.target) if texts else []

    def label(self, texts: Sequence[str]) -> list[list[int]]:
        """Target token ids that the decoder should predict, special tokens included."""
        return self.family.label(list(texts), self.source, self.target) if texts else []

    def pieces(self, text: str) -> list[str]:
        """The text's subword pieces on the target side, without special tokens."""
        with self.lock:
            ids = [i for i in self.label([text])[0] if i not in self.special_ids]
        return self.tokenizer.convert_ids_to_tokens(ids)

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Texts of token ids (rows or a tensor), without special tokens and languages' codes."""
        rows = [[i for i in map(int, row) if i not in self.special_ids] for row in ids]
        return [text.strip() for text in self.tokenizer.batch_decode(rows, skip_special_tokens=True)]

    def pad_batch(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        """Rows of ids as one right-padded tensor (B, S) on the base's device."""
        import torch

        width = max(map(len, rows))
        return torch.tensor([list(row) + [self.pad] * (width - len(row)) for row in rows], device=self.device)  # (B, S)

    def shift_right(self, labels: torch.Tensor) -> torch.Tensor:
        """Decoder input for teacher forcing: labels (B, T) moved one to the right behind the start token."""
        import torch

        start = self.model.config.decoder_start_token_id
        if start is None:  # mBART-25 starts with the language code, which closes its labels
            last = (labels != self.pad).sum(1, keepdim=True) - 1  # (B, 1)
            first = labels.gather(1, last)  # (B, 1)
        else:
            first = torch.full_like(labels[:, :1], start)  # (B, 1)
        return torch.cat([first, labels[:, :-1]], dim=1)  # (B, T)

    # -- work

    @contextlib.contextmanager
    def using(self, plugin: Plugin | PluginStack | None, strength: float = 1.0) -> Iterator[None]:
        """Hold the model for one call, with a plugin attached or without; detached again whatever happens."""
        with self.lock, contextlib.ExitStack() as stack:
            if plugin is not None:
                stack.enter_context(plugin.attached(self, strength))
            yield

    def translate(
        self,
        texts: Sequence[str],
        plugin: Plugin | PluginStack | None = None,
        *,
        strength: float = 1.0,
        decoding: Decoding | None = None,
        progress: Progress | None = None,
    ) -> list[str]:
        """Translate texts, one result each, in order. See `engine.decoding.translate`."""
        from engine.decoding.translate import translate

        return translate(self, texts, plugin, strength=strength, decoding=decoding, progress=progress)

    def score(
        self, pairs: Sequence[tuple[str, str]], plugin: Plugin | PluginStack | None = None, *, strength: float = 1.0
    ) -> list[tuple[float, int]]:
        """Log-probability (natural) and number of target tokens of each (source, target) pair, by teacher forcing."""
        from engine.base.score import score

        return score(self, pairs, plugin, strength=strength)
