"""A plugin loaded over its base, ready to be attached for the duration of a call."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base import BaseModel
from engine.base.adapter import Routes, Translate, active_adapter
from engine.base.decoding_options import Decoding
from engine.core.json_object import Json
from engine.core.languages import language_message, same_language
from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.core.tensor_files import check_keys, load_tensors
from engine.errors import BundleError, OptionError
from engine.methods import Method, get_method
from engine.plugins.bundle import CONFIG, WEIGHTS, unpack_bundle

if TYPE_CHECKING:
    import torch
    from torch import nn

    from engine.methods.knn.decoder import Knn
    from engine.plugins.domain_filter import DomainFilter


@dataclass(eq=False, repr=False)
class Plugin:
    """A trained module with its method and card. Several can be loaded over one base at the same time."""

    method: Method
    module: nn.Module
    card: Json
    folder: Path | None = None
    knn: Knn | None = None  # a datastore that the plugin has in addition to its method
    domain_filter: DomainFilter | None = None

    @property
    def name(self) -> str:
        return str(self.card.get("name", self.method.name))

    @classmethod
    def load(cls, path: str | Path, base: BaseModel, *, cache: Path | None = None) -> Plugin:
        """Load a bundle over the base it was made for.

        The bundle is unpacked once into `cache` (by default a folder in the program's home), so that its memory can be mapped.
        Raises BundleError if it is damaged, has missing or unknown keys, or was made for another base or direction.
        """
        from engine.plugins.domain_filter import DomainFilter

        folder = unpack_bundle(path, cache or load_settings().home_dir / "unpacked")
        card = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        made_for, fingerprint = card["base_fingerprint"], base.fingerprint()
        if made_for != fingerprint:
            raise BundleError(
                "The plugin {path} was made for the base {made_for} ({made_for_id}) and does not fit the "
                "base {base} ({base_id}). Use it with its own base, or build a new plugin for this base.",
                path=path, made_for=card["base_model_name_or_path"], made_for_id=short(made_for),
                base=base.name, base_id=short(fingerprint),
            )  # fmt: skip
        if not (same_language(card["source"], base.source) and same_language(card["target"], base.target)):
            raise BundleError(
                "The plugin {path} translates from {source} to {target}, not from {base_source} to "
                "{base_target}. Specify the plugin's own languages.",
                path=path,
                source=language_message(card["source"]), target=language_message(card["target"]),
                base_source=language_message(base.source), base_target=language_message(base.target),
            )  # fmt: skip
        try:
            method = get_method(card["method"])
            config = method.config_class.from_mapping(card["config"])
        except OptionError as error:
            raise BundleError(
                "The plugin {path} cannot be used by this version of Tailor MT: {error}", path=path, error=error
            ) from None
        try:
            with in_bundle(path):
                module = method.build(base, method.open(folder, base, config), config)
        except (LookupError, RuntimeError, ValueError) as error:
            raise BundleError(
                "{path}: its settings do not fit the base {base} ({error}).", path=path, base=base.name, error=error
            ) from error
        with in_bundle(path):
            weights, expected = method.unpacked(module, load_tensors(folder / WEIGHTS)), module.state_dict()
            check_keys(folder / WEIGHTS, weights, expected)
        for key, tensor in weights.items():
            if tensor.shape != expected[key].shape:
                raise BundleError(
                    "{path}: {key} has the shape {shape}, not {expected}. Get a new copy of the bundle.",
                    path=path, key=key, shape=tuple(tensor.shape), expected=tuple(expected[key].shape),
                )  # fmt: skip
        module.load_state_dict(weights)
        method.prepare_for_inference(module)
        module.to(base.dtype)
        knn = carried(path, folder, base, card["knn"]) if "knn" in card else None
        with in_bundle(path):
            return cls(method, module, card, folder, knn, DomainFilter.open(folder, base.d_model))

    def with_datastore(self, knn: Knn) -> Plugin:
        """The same method and module with this datastore."""
        return replace(self, knn=knn)

    def with_filter(self, domain_filter: DomainFilter) -> Plugin:
        """The same plugin, acting only on sources that the filter accepts."""
        return replace(self, domain_filter=domain_filter)

    @cached_property
    def unfiltered(self) -> Plugin:
        """The same plugin, acting on every source."""
        return replace(self, domain_filter=None)

    def shares(self, base: BaseModel, texts: Sequence[str]) -> list[float]:
        """The share of its strength at which the plugin acts on each source; 1 without a domain filter."""
        if self.domain_filter is None:
            return [1.0] * len(texts)
        shares = self.domain_filter.shares(base, texts)
        return shares if self.method.capabilities.offers_strength else [float(share == 1) for share in shares]

    def routes(self, base: BaseModel, texts: Sequence[str]) -> Routes:
        """Sources grouped by the plugin's share of strength, None for the base; without a filter, the method's routes."""
        from engine.plugins.stack import PluginStack

        if self.domain_filter is None:
            return self.method.routes(base, self.module, texts)
        places: dict[float, list[int]] = {}
        for i, share in enumerate(self.shares(base, texts)):
            places.setdefault(share, []).append(i)
        unfiltered = self.unfiltered
        return [
            (unfiltered if share == 1 else PluginStack([unfiltered], [share]) if share else None, rows)
            for share, rows in places.items()
        ]

    @contextlib.contextmanager
    def attached(self, base: BaseModel, strength: float = 1.0) -> Iterator[None]:
        """Hook into the base for the duration of the block. Raises OptionError on a strength below 0 or above 2."""
        check_strength(strength)
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.method.attach(base, self.module, strength))
            if self.knn is not None:  # after the method, so that its distribution is the one interpolated
                stack.enter_context(self.knn.attach(base, strength))
            yield

    def logits_processors(self, base: BaseModel, strength: float = 1.0) -> Sequence[Any]:
        """Processors of the output distribution; empty at strength 0."""
        return self.method.logits_processors(base, self.module, strength) if strength else ()

    @property
    def needs_fixed_batch(self) -> bool:
        """Whether finished sentences must remain in the batch until it is decoded."""
        return self.method.needs_fixed_batch(self.module)

    @property
    def batches_beams_per_sentence(self) -> bool:
        """Whether cross-attention may be called once for all hypotheses of a sentence."""
        return self.method.batches_beams_per_sentence(self.module)

    def check_likelihood(self) -> None:
        """Raise OptionError if the method provides no probabilities of given translations."""
        if not self.method.capabilities.offers_likelihood:
            raise OptionError(
                "The method {method} does not provide the likelihood of a translation; score it with BLEU or chrF.",
                method=self.method.name,
            )

    def set_source(self, base: BaseModel, sources: torch.Tensor) -> None:
        """Pass the source tokens (B, S) of the next batch to the method."""
        self.method.set_source(base, self.module, sources)
        if self.knn is not None:
            self.knn.set_source(base, sources)

    def on_batch_shrink(self, active: torch.Tensor) -> None:
        """Pass the method the indices (b,) of the sentences that remain in the batch."""
        self.method.on_batch_shrink(self.module, active)

    def translate(
        self, base: BaseModel, texts: Sequence[str], inner: Translate, strength: float, decoding: Decoding, progress: Progress
    ) -> list[str] | None:
        """The method's translation, or None if it works inside the base; `inner` translates without this plugin."""
        check_strength(strength)
        if not strength:
            return None
        return self.method.translate(base, self.module, texts, inner, strength, decoding, progress)

    def attributions(self, base: BaseModel, source: str, translation: str, top: int = 5) -> list[Json]:
        """The entries that each token of a translation read; see `Method.attributions`. Texts are empty if the bundle has none.

        Empty for a sentence that the domain filter leaves to the base, or that is longer than the base's maximum length.
        """
        if not base.fits(source, translation) or active_adapter(base, source, self, 1.0) is None:
            return []
        rows = self.method.attributions(base, self.module, source, translation, top)
        if self.knn is not None:
            with base.lock, self.method.attach(base, self.module, 1.0):
                self.method.set_source(base, self.module, base.pad_batch(base.encode([source])))
                rows = [*rows, *self.knn.attributions(base, source, translation, top)]
        return rows


@contextlib.contextmanager
def in_bundle(path: str | Path) -> Iterator[None]:
    """Within the block, prefix a BundleError about a bundle's files with the bundle's path."""
    try:
        yield
    except BundleError as error:
        raise BundleError("{path}: {error}", path=path, error=error) from None


def carried(path: str | Path, folder: Path, base: BaseModel, settings: Json) -> Knn:
    """The datastore that a bundle has in addition to its method. Raises BundleError, or MissingError without faiss."""
    from engine.methods.knn.decoder import Knn
    from engine.methods.knn.options import KnnOptions

    try:
        return Knn.open(folder, base, KnnOptions.from_mapping(settings))
    except (BundleError, OptionError) as error:
        raise BundleError("{path}: {error}", path=path, error=error) from None


def check_strength(strength: float) -> None:
    """Raise OptionError on a strength below 0 or above 2."""
    if not 0.0 <= strength <= 2.0:
        raise OptionError("strength: {strength} is not between 0 (the base exactly) and 2 (1 is as trained).", strength=strength)


def short(fingerprint: str) -> str:
    """The first digits of a fingerprint, enough to distinguish bases in a message."""
    return fingerprint.removeprefix("sha256:")[:12]
