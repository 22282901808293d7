"""Several plugins as one, such as a style and a domain, each with its own weight, in one regular bundle.

A blend's bundle contains the complete bundles that it was made from. It therefore keeps working when those are deleted or
retrained, and it can be shared as a single file.
"""

from __future__ import annotations

import datetime
import json
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import engine
from engine.core.json_object import Json
from engine.core.languages import language_message, same_language
from engine.core.model_card import parse_card
from engine.core.options import Options, option
from engine.core.progress import Progress
from engine.errors import BundleError, InputError, OptionError, TailorError
from engine.methods.interface import Artefacts, Capabilities, Method
from engine.plugins.bundle import BLENDED, PARTS, WEIGHTS, read_bundle_card, read_bundle_text
from engine.plugins.export import write_bundle
from engine.plugins.plugin import Plugin
from engine.plugins.stack import PluginStack

if TYPE_CHECKING:
    import torch
    from torch import nn

    from engine.base import BaseModel
    from engine.base.adapter import Routes
    from engine.methods.data import Samples
    from engine.methods.interface import Batch

STEPS = 3


@dataclass(frozen=True)
class Part:
    """A bundle and its weight in the blend: 1 as trained, 0.5 half as strong."""

    path: Path
    weight: float
    name: str = ""  # replaces the bundle's name


@dataclass(frozen=True)
class BlendConfig(Options):
    """Settings of a blend."""

    weights: tuple[float, ...] = option((1.0, 1.0), "Strength of each plugin, 0 to 1.", low=0.0, high=1.0)
    names: tuple[str, ...] = option((), "Their names.")


class Blend(Method):
    """Plugins that work together, each on the output of the previous one; not listed, since it is not a method for training."""

    name: ClassVar[str] = "blend"
    config_class = BlendConfig
    capabilities = Capabilities(
        title="Blend",
        summary="Several plugins at once, each at its own weight.",
        source="",
        trains=False,
        identity_at_start=False,
        offers_reads=True,
    )

    def prepare(self, samples: Samples, config: Any, progress: Progress) -> Artefacts:
        """Raises OptionError: there is nothing to train."""
        raise OptionError("A blend consists of plugins, not samples: `tailormt plugin blend`.")

    def open(self, folder: Path, base: BaseModel, config: BlendConfig) -> Artefacts:
        """The bundles inside, as files. Raises BundleError if their number differs from that of the weights."""
        files = {name: folder / name for name in PARTS[: len(config.weights)]}
        if not 2 <= len(config.weights) <= len(PARTS) or not all(file.exists() for file in files.values()):
            raise BundleError("its plugins and their weights do not match. Get a new copy of the bundle.")
        return Artefacts(files=files)

    def build(self, base: BaseModel, artefacts: Artefacts, config: BlendConfig) -> nn.Module:
        """Load the plugins; the module has no weights of its own. Raises BundleError for a blend of blends."""
        import torch

        plugins = []
        for file in artefacts.files.values():
            if read_bundle_card(file)["method"] == self.name:
                raise BundleError("it contains a blend inside a blend, which is not supported. Get a new copy of the bundle.")
            plugins.append(Plugin.load(file, base, cache=file.parent.parent))
        module: Any = torch.nn.Module()
        module.stack = PluginStack(plugins, config.weights)
        module.config = config
        return module

    def attach(self, base: BaseModel, module: Any, strength: float = 1.0) -> AbstractContextManager[None]:
        """All plugins, each at its weight times the strength."""
        stack: PluginStack = module.stack
        return stack.attached(base, strength)

    def set_source(self, base: BaseModel, module: Any, sources: torch.Tensor, batch: Batch | None = None) -> None:
        module.stack.set_source(base, sources)

    def on_batch_shrink(self, module: Any, active: torch.Tensor) -> None:
        module.stack.on_batch_shrink(active)

    def routes(self, base: BaseModel, module: Any, texts: Sequence[str]) -> Routes:
        return module.stack.routes(base, texts)

    def needs_fixed_batch(self, module: Any) -> bool:
        return bool(module.stack.needs_fixed_batch)

    def batches_beams_per_sentence(self, module: Any) -> bool:
        return bool(module.stack.batches_beams_per_sentence)

    def logits_processors(self, base: BaseModel, module: Any, strength: float) -> Sequence[Any]:
        return module.stack.logits_processors(base, strength)

    def attributions(self, base: BaseModel, module: Any, source: str, translation: str, top: int = 5) -> list[Json]:
        """The entries that each plugin read when working alone, with its name as `plugin`."""
        names = module.config.names or [plugin.name for plugin in module.stack.plugins]
        return [
            {**row, "plugin": name}
            for name, plugin in zip(names, module.stack.plugins, strict=False)
            for row in plugin.attributions(base, source, translation, top)
        ]


def make_blend(
    output: Path, name: str, parts: Sequence[Part], *, base: BaseModel | None = None, progress: Progress | None = None
) -> Json:
    """Write the bundle of a blend; returns its card. With a `base` it is first loaded and tried on a sentence.

    Raises InputError if the plugins cannot work together (different bases or directions, a method without adjustable strength,
    a blend, a duplicate bundle, fewer than two or more than four), OptionError on an invalid weight, BundleError, StorageError.
    """
    progress = progress or Progress()
    if not 2 <= len(parts) <= len(PARTS):
        raise InputError("A blend consists of two to {most} plugins, not {count}.", most=len(PARTS), count=len(parts))
    if not name.strip():
        raise InputError("A blend needs a name.")
    progress.begin("Checking the plugins", 0, STEPS)
    cards = [read_bundle_card(part.path) for part in parts]
    names = tuple(part.name or str(card["name"]) for part, card in zip(parts, cards, strict=True))
    _check(cards, names, [part.path for part in parts])
    config = BlendConfig.from_mapping({"weights": [part.weight for part in parts], "names": list(names)})
    adapter_config = _described(name.strip(), config, cards, [part.path for part in parts])
    progress.begin("Combining them", 1, STEPS)
    with tempfile.TemporaryDirectory(prefix="tailormt-") as folder:
        from safetensors.torch import save_file

        weights = Path(folder) / WEIGHTS
        save_file({}, weights)
        files = {WEIGHTS: weights, **dict(zip(PARTS, (part.path for part in parts), strict=False))}
        if base is None:
            write_bundle(output, adapter_config, files)
        else:
            trial = write_bundle(output.with_name(f".{output.name}.trial"), adapter_config, files)
            try:
                progress.begin("Trying it on a sentence", 2, STEPS)
                _try(trial, base, Path(folder) / "unpacked")
                trial.replace(output)
            finally:
                trial.unlink(missing_ok=True)
    return read_bundle_card(output)


def _check(cards: Sequence[Json], names: Sequence[str], paths: Sequence[Path]) -> None:
    from engine.methods import get_method

    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("Choose different plugins to blend: one is selected twice.")
    first = cards[0]
    for card, name in zip(cards, names, strict=True):
        if card["method"] == Blend.name:
            raise InputError("{name} is itself a blend. Blend the plugins it consists of.", name=name)
        if card["base_fingerprint"] != first["base_fingerprint"]:
            raise InputError(
                "{name} was made for the base {base} and {other} for {other_base}. "
                "Only plugins of one base can be blended.",
                name=name, base=card["base_model_name_or_path"], other=names[0],
                other_base=first["base_model_name_or_path"],
            )  # fmt: skip
        if not all(same_language(card[key], first[key]) for key in ("source", "target")):
            raise InputError(
                "{name} translates from {source} to {target} and {other} from {other_source} to {other_target}. Only plugins "
                "of one direction can be blended.",
                name=name, source=language_message(card["source"]), target=language_message(card["target"]),
                other=names[0], other_source=language_message(first["source"]),
                other_target=language_message(first["target"]),
            )  # fmt: skip
        try:
            able = get_method(card["method"]).capabilities.offers_strength
        except OptionError as error:
            raise InputError("{name} cannot be used by this version of Tailor MT: {error}", name=name, error=error) from None
        if not able:
            raise InputError(
                "{name} uses the method {method}, which works at full strength or not at all. It cannot be blended.",
                name=name,
                method=card["method"],
            )


def _described(name: str, config: BlendConfig, cards: Sequence[Json], paths: Sequence[Path]) -> Json:
    """The bundle's configuration: the common properties of the plugins, and the list of them."""
    first = cards[0]
    decoding: Json = {}
    for card in cards:
        decoding |= card["decoding"]
    made_of = ", ".join(
        f"{part_name} ({card['method']}, weight {weight:g})"
        for part_name, card, weight in zip(config.names, cards, config.weights, strict=True)
    )
    license_ = _license(config.names, paths)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {
        "format_version": BLENDED,
        "peft_type": "TAILORMT_BLEND",
        "task_type": "SEQ_2_SEQ_LM",
        "inference_mode": True,
        "base_model_name_or_path": first["base_model_name_or_path"],
        "base_fingerprint": first["base_fingerprint"],
        "revision": None,
        "tailormt_version": engine.__version__,
        "name": name,
        "method": Blend.name,
        "config": json.loads(json.dumps(config.to_mapping())),
        "source": first["source"],
        "target": first["target"],
        "decoding": decoding,
        "provenance": {"created": now, "made_of": made_of},
        "metrics": {},
        **({"license": license_} if license_ else {}),
    }


def _license(names: Sequence[str], paths: Sequence[Path]) -> dict[str, str]:
    """The licences stated on the plugins' cards, in the form of a card; a blend is subject to all of them."""
    cards = {name: parse_card(read_bundle_text(path)) for name, path in zip(names, paths, strict=True)}
    stated = {name: card for name, card in cards.items() if card.license}
    ids = list(dict.fromkeys(card.license for card in stated.values()))
    notes = " ".join(f"{name}: {card.license_line.removeprefix('Licence: ')}" for name, card in stated.items())
    if not ids:
        return {}
    if len(ids) == 1:
        return {"license": ids[0], "license_note": notes}
    return {"license": "other", "license_name": " and ".join(ids), "license_note": notes}


def _try(path: Path, base: BaseModel, cache: Path) -> None:
    from engine.decoding.translate import translate

    try:
        plugin = Plugin.load(path, base, cache=cache)
        translate(base, ["1, 2, 3."], plugin, decoding=base.decoding(plugin.card["decoding"]))
    except TailorError as error:
        raise InputError("These plugins do not work together: {error}", error=error) from error
    except (RuntimeError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            "These plugins do not work together on the base {base} ({name}: {error}). Choose others.",
            base=base.name, name=type(error).__name__, error=error,
        ) from error  # fmt: skip
