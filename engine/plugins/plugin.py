"""A plugin loaded over its base, ready to be attached for the length of a call."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BundleError, OptionError
from engine.languages import same_language
from engine.methods import Artefacts, Method, get_method
from engine.plugins.bundle import CONFIG, WEIGHTS, unpack_bundle

if TYPE_CHECKING:
    from torch import nn

    from engine.base import BaseModel

__all__ = ["Plugin"]


class Plugin:
    """A trained module with its method and card. Several can be loaded over one base at once."""

    def __init__(self, method: Method, module: nn.Module, card: dict[str, Any], folder: Path | None = None) -> None:
        self.method = method
        self.module = module
        self.card = card
        self.folder = folder

    @property
    def name(self) -> str:
        return str(self.card.get("name", self.method.name))

    @classmethod
    def load(cls, path: str | Path, base: BaseModel, *, cache: Path | None = None) -> Plugin:
        """Load a bundle over the base it was made for.

        The bundle is unpacked into `cache` (by default a folder in the program's home) once, so that its memory can be
        mapped. Raises BundleError when it is damaged, lacks or has a key too many, or was made for another base or
        direction.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from engine.memory import Memory
        from engine.settings import load_settings

        folder = unpack_bundle(path, cache or load_settings().home_dir / "unpacked")
        card = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        made_for, here = card["base_fingerprint"], base.fingerprint()
        if made_for != here:
            raise BundleError(
                f"The plugin {path} was made for the base {card['base_model_name_or_path']} ({short(made_for)}) and does not "
                f"fit the base {base.name} ({short(here)}). Use it with its own base, or make a new one for this base."
            )
        if not (same_language(card["source"], base.source) and same_language(card["target"], base.target)):
            raise BundleError(
                f"The plugin {path} translates from {card['source']} to {card['target']}, not from {base.source} to "
                f"{base.target}. Give its own languages."
            )
        try:
            method = get_method(card["method"])
            config = method.config_class.from_mapping(card["config"])
        except OptionError as error:
            raise BundleError(f"The plugin {path} cannot be used by this version of Tailor MT: {error}") from None
        memory_file = folder / "memory.safetensors"
        artefacts = Artefacts(memory=Memory(memory_file) if memory_file.exists() else None)
        if artefacts.memory is not None:
            check_memory(path, memory_file, base)
        elif method.capabilities.needs_phrases:
            raise BundleError(f"{path} has no memory.safetensors, which {method.name} reads. Get the bundle again.")
        try:
            module = method.build(base, artefacts, config)
        except (LookupError, RuntimeError, ValueError) as error:
            raise BundleError(f"{path}: its settings do not fit the base {base.name} ({error}).") from error
        try:
            weights = load_file(folder / WEIGHTS)
        except SafetensorError as error:
            raise BundleError(f"{path}: {WEIGHTS} is damaged ({error}). Get the bundle again.") from None
        expected = module.state_dict()
        for key in sorted(set(expected) ^ set(weights)):
            odd = "lacks" if key in expected else "has an unknown"
            raise BundleError(f"{path}: {WEIGHTS} {odd} key {key}. Get the bundle again.")
        for key, tensor in weights.items():
            if tensor.shape != expected[key].shape:
                raise BundleError(
                    f"{path}: {key} has the shape {tuple(tensor.shape)}, not {tuple(expected[key].shape)}. Get the bundle again."
                )
        module.load_state_dict(weights)
        method.finish(module)
        module.to(base.dtype)
        return cls(method, module, card, folder)

    @contextlib.contextmanager
    def attached(self, base: BaseModel, strength: float = 1.0) -> Iterator[None]:
        """Hook into the base for the length of the block. Raises OptionError on a strength below 0 or above 2."""
        if not 0.0 <= strength <= 2.0:
            raise OptionError(f"strength: {strength} is not between 0 (the base exactly) and 2 (1 is as trained).")
        with self.method.attach(base, self.module, strength):
            yield

    def logits_processors(self, base: BaseModel, strength: float = 1.0) -> Sequence[Any]:
        """What acts on the output distribution; nothing at strength 0."""
        return self.method.logits_processors(base, self.module, strength) if strength else ()

    @cached_property
    def phrases(self) -> dict[int, list[dict[str, Any]]]:
        """{layer: phrase pairs in the memory's order}; empty where the bundle came without phrases."""
        found: dict[int, list[dict[str, Any]]] = {}
        file = self.folder / "phrases.jsonl" if self.folder else None
        if file is not None and file.exists():
            try:
                with file.open(encoding="utf-8", newline="\n") as lines:
                    for row in map(json.loads, lines):
                        found.setdefault(row["layer"], []).append(
                            {**row, "target": row["target"], "source": row["source"]}
                        )
            except (ValueError, LookupError, TypeError):
                raise BundleError(
                    f"The phrases of the plugin {self.name} cannot be read. Get the bundle again."
                ) from None
        return found

    def reads(self, base: BaseModel, source: str, translation: str, top: int = 5) -> list[dict[str, Any]]:
        """What each token of a translation read: rows with position, token, layer, place, gate and
        items [{phrase, source, weight}]. Phrases are empty texts where the bundle came without them.
        """
        rows = self.method.reads(base, self.module, source, translation, top)
        for row in rows:
            known = self.phrases.get(row["layer"], [])
            row["items"] = [
                {
                    "phrase": known[i]["target"] if i < len(known) else "",
                    "source": known[i]["source"] if i < len(known) else "",
                    "weight": weight,
                }
                for i, weight in row["items"]
            ]
        return rows


def check_memory(path: str | Path, file: Path, base: BaseModel) -> None:
    """Raises BundleError unless the memory has, for each decoder layer of the base, rows of the base's size."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as tensors:
            shapes = {key: tuple(tensors.get_slice(key).get_shape()) for key in tensors.keys()}  # noqa: SIM118 - no dict
    except SafetensorError as error:
        raise BundleError(f"{path}: memory.safetensors is damaged ({error}). Get the bundle again.") from None
    wanted = {f"layer.{i}.{side}" for i in range(len(base.decoder_layers)) for side in ("target", "source")}
    for key in sorted(wanted ^ set(shapes)):
        odd = "lacks" if key in wanted else "has an unknown"
        raise BundleError(f"{path}: memory.safetensors {odd} key {key}. Get the bundle again.")
    for key, shape in shapes.items():
        rows = shapes[f"{key.rpartition('.')[0]}.target"][:1]
        if shape != (*rows, base.d_model):
            raise BundleError(f"{path}: {key} in memory.safetensors has the shape {shape}. Get the bundle again.")


def short(fingerprint: str) -> str:
    """The first digits of a fingerprint, enough to tell two bases apart in a message."""
    return fingerprint.removeprefix("sha256:")[:12]
