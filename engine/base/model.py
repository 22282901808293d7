"""The frozen base (a `transformers` sequence-to-sequence model with tokenizer and direction), and the pair of two directions.

The base is never changed. Plugins hook into its decoder layers for the duration of one call and leave nothing behind, so that
output without a plugin is bit-identical before and after.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from engine.base.decoding_options import Decoding
from engine.base.directions import stored_directions
from engine.base.families import Family, family_of
from engine.base.files import check_type, read_config
from engine.core.languages import language_message
from engine.errors import MissingError, ModelError

if TYPE_CHECKING:
    import torch

    from engine.base.adapter import Adapter
    from engine.core.settings import Settings

BATCH, GPU_BATCH = 4096, 16_384  # tokens in one batch without training; the larger doubles a GPU's speed


class BaseModel:
    """A frozen model that translates from `source` to `target`; created by `BaseModel.load`.

    Several directions and all plugins share one torch module; `lock` separates calls with different plugins.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        family: Family,
        *,
        source: str,
        target: str,
        folder: Path,
        precision: str = "float32",
        batch_tokens: int = 0,
    ) -> None:
        self.source, self.target = family.check(source, target)
        self.model = model
        self.tokenizer = tokenizer
        self.family = family
        self.name = folder.resolve().name
        self.path = str(folder)
        self.folder = folder
        self.precision = precision
        # The batch size where nothing is trained: back-translation and the memory.
        self.batch_tokens = batch_tokens or (GPU_BATCH if self.device.type == "cuda" else BATCH)
        self.lock = threading.RLock()

    @classmethod
    def load(
        cls,
        path: str | Path,
        source: str,
        target: str,
        *,
        device: str = "",
        download: bool = False,
        precision: str = "",
        settings: Settings | None = None,
    ) -> Self:
        """Load a base by its folder, its short name in the registry or its hub id.

        With `download`, a hub id that is not on this machine is fetched into the registry. Languages are tags in any form
        (zh, zh-CN, zho_Hans); `source` and `target` of the result are canonical. Weights are held in `precision` regardless
        of how they are stored (see engine/base/precision.py). `settings`, by default the current ones, determine where the
        registry is, and the device and precision if not given. Raises ModelError if the folder is not a usable base or does
        not know the languages, MissingError if the name is not on this machine.
        """
        from engine.base.load import load_folder
        from engine.base.quick_imports import quick_imports
        from engine.base.registry import BaseRegistry
        from engine.core.devices import pick_device
        from engine.core.settings import load_settings

        settings = settings or load_settings()
        precision = precision or settings.base_precision
        folder = BaseRegistry(settings).find(path, download=download)
        name = folder.resolve().name
        # Before the weights, so that an unknown language pair is reported at once.
        config = read_config(folder)
        check_type(config["model_type"], name)
        stored_directions(folder.resolve(), config["model_type"]).resolve(source, target)
        with quick_imports():
            where = pick_device(device or settings.device)
        model, tokenizer = load_folder(folder, name, where, precision)
        family = family_of(config["model_type"], tokenizer, name)
        base = cls(
            model, tokenizer, family, source=source, target=target, folder=folder, precision=precision,
            batch_tokens=settings.batch_tokens,
        )  # fmt: skip
        base.decoder_layers  # noqa: B018 - an unknown layout is refused here, not at the first plugin
        return base

    # -- shape

    @cached_property
    def decoder_layers(self) -> Any:
        """The decoder's layers, each with `self_attn` and `encoder_attn`. Raises ModelError for any other layout."""
        decoder = self.model.get_decoder()
        layers = getattr(decoder, "layers", None)
        if layers is None or not len(layers) or not all(hasattr(x, "self_attn") and hasattr(x, "encoder_attn") for x in layers):
            raise ModelError(
                "The base {name} has a decoder layout that Tailor MT does not support: its layers have no "
                "self_attn and encoder_attn. Use a Marian, M2M100, NLLB or mBART model.",
                name=self.name,
            )
        return layers

    @property
    def d_model(self) -> int:
        return int(self.model.config.d_model)

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type of the hidden states."""
        return self.model.dtype

    @property
    def pad(self) -> int:
        return int(self.model.config.pad_token_id)

    @cached_property
    def max_tokens(self) -> int:
        """The maximum input length in tokens, special tokens included."""
        return int(getattr(self.model.config, "max_position_embeddings", 512)) - 2

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids that belong to no phrase: end of sentence, padding, language tags and codes."""
        return frozenset({*self.tokenizer.all_special_ids, *self.family.direction_ids(), self.pad})

    def for_direction(self, source: str, target: str) -> BaseModel:
        """The same weights for another direction. Raises ModelError if the model does not know it."""
        other = copy.copy(self)
        other.source, other.target = self.family.check(source, target)
        other.__dict__.pop("_own_decoding", None)
        return other

    @cached_property
    def _fingerprint(self) -> str:
        from engine.base.fingerprint import fingerprint

        return fingerprint(self.model, self.tokenizer, self.folder, self.precision)

    def fingerprint(self) -> str:
        """SHA-256 of shape, vocabulary and stored weights, equal exactly when two bases translate alike, in any precision."""
        return self._fingerprint

    # -- tokens

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Source token ids, special tokens included."""
        return self.family.encode(list(texts), self.source, self.target) if texts else []

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Target token ids for the decoder to predict, special tokens included."""
        return self.family.encode_target(list(texts), self.source, self.target) if texts else []

    def fits(self, source: str, target: str) -> bool:
        """Whether a text and its translation are short enough to be processed in one piece."""
        with self.lock:
            return max(len(self.encode([source])[0]), len(self.encode_target([target])[0])) <= self.max_tokens

    def subwords(self, text: str) -> list[str]:
        """The text's subword pieces on the target side, without special tokens."""
        with self.lock:
            ids = [i for i in self.encode_target([text])[0] if i not in self.special_ids]
        return self.tokenizer.convert_ids_to_tokens(ids)

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Texts of token ids (rows or a tensor), without special tokens and language codes."""
        rows = [[i for i in map(int, row) if i not in self.special_ids] for row in ids]
        return [text.strip() for text in self.tokenizer.batch_decode(rows, skip_special_tokens=True)]

    def pad_batch(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        """Rows of ids as one right-padded tensor (B, S) on the base's device."""
        import torch

        width = max(map(len, rows))
        return torch.tensor([list(row) + [self.pad] * (width - len(row)) for row in rows], device=self.device)  # (B, S)

    def shift_right(self, labels: torch.Tensor) -> torch.Tensor:
        """Decoder input for teacher forcing: the labels (B, T) shifted right, after the start token."""
        import torch

        start = self.model.config.decoder_start_token_id
        if start is None:  # mBART-25 starts with the language code, which closes its labels
            last = (labels != self.pad).sum(1, keepdim=True) - 1  # (B, 1)
            first = labels.gather(1, last)  # (B, 1)
        else:
            first = torch.full_like(labels[:, :1], start)  # (B, 1)
        return torch.cat([first, labels[:, :-1]], dim=1)  # (B, T)

    def mask(self, ids: torch.Tensor) -> torch.Tensor:
        """1 at the tokens of padded ids (B, S), 0 at the padding."""
        return (ids != self.pad).long()  # (B, S)

    # -- computing

    def encoder_states(self, sources: torch.Tensor) -> torch.Tensor:
        """The encoder's output (B, S, d) for source tokens (B, S)."""
        return self.model.get_encoder()(input_ids=sources, attention_mask=self.mask(sources)).last_hidden_state

    def logits(self, sources: torch.Tensor, labels: torch.Tensor, encoded: torch.Tensor | None = None) -> torch.Tensor:
        """The logits (B, T, V) of given translations: source tokens (B, S), labels (B, T).

        `encoded` is the encoder's output (B, S, d) if already computed.
        """
        return self.model(
            input_ids=sources,
            attention_mask=self.mask(sources),
            encoder_outputs=None if encoded is None else (encoded,),
            decoder_input_ids=self.shift_right(labels),
            use_cache=False,
        ).logits

    @cached_property
    def _own_decoding(self) -> dict[str, object]:
        from engine.base.defaults import read_defaults

        batch = {"batch_tokens": GPU_BATCH // 2} if self.device.type == "cuda" else {}
        return {**batch, **read_defaults(self.folder, self.source, self.target)}

    def decoding(self, settings: Mapping[str, Any] | None = None) -> Decoding:
        """Decoding with these settings, completed by the base's defaults for this direction. Raises OptionError."""
        return Decoding.from_mapping({**self._own_decoding, **(settings or {})})

    @contextlib.contextmanager
    def using(self, plugin: Adapter | None, strength: float = 1.0) -> Iterator[None]:
        """Hold the model for one call, with or without a plugin; the plugin is always detached at the end."""
        with self.lock, contextlib.ExitStack() as stack:
            if plugin is not None:
                stack.enter_context(plugin.attached(self, strength))
            yield


@dataclass(frozen=True)
class LanguagePair:
    """Two frozen bases: `forward` (source -> target) is customized, `backward` translates target -> source."""

    forward: BaseModel
    backward: BaseModel

    @classmethod
    def load(
        cls,
        path: str | Path,
        source: str,
        target: str,
        *,
        backward: str | Path = "",
        device: str = "",
        download: bool = False,
        settings: Settings | None = None,
    ) -> LanguagePair:
        """Load both directions; a bilingual model is loaded once and serves both.

        If a model of one direction comes without `backward`, the registry is searched for the other direction, added bases
        first. Other arguments as in `BaseModel.load`. Raises ModelError if a model cannot translate its direction; the
        message says that a backward model is needed.
        """
        from engine.base.registry import BaseRegistry
        from engine.core.settings import load_settings

        load = partial(BaseModel.load, device=device, download=download, settings=settings)
        forward = load(path, source, target)
        if not backward:
            with contextlib.suppress(ModelError):
                return cls(forward, forward.for_direction(target, source))
            try:
                backward = BaseRegistry(settings or load_settings()).default(target, source, added_first=True)
            except MissingError:
                raise ModelError(
                    "The base {forward} cannot translate back from {target} to {source}, which is needed to "
                    "create sources for your sentences, and no other installed base does. Specify a model "
                    "for that direction with --backward, or add one with `tailormt base add`.",
                    forward=forward.name, target=language_message(target), source=language_message(source),
                ) from None  # fmt: skip
        return cls(forward, load(backward, target, source))
