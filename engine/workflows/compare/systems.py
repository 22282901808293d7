"""The systems of a comparison: the base alone, and up to three plugins, each at a strength."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.json_object import Json
from engine.errors import InputError, TailorError
from engine.store import PluginRow
from engine.store.records import System

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.plugins import Plugin

VANILLA = "vanilla"
MOST_PLUGINS = 3


def systems_of(plugins: Sequence[PluginRow], strengths: Sequence[float] = (), enforced: str = "") -> list[System]:
    """The base alone, then the plugins, as stored in a sheet; duplicate names get numbers. `enforced` is the hash of the enforced
    terms, or empty. Raises InputError on too many plugins.
    """
    if len(plugins) > MOST_PLUGINS:
        raise InputError(
            "Up to {most_plugins} plugins can be compared, and there are {count}. Remove some.",
            most_plugins=MOST_PLUGINS,
            count=len(plugins),
        )
    results: list[System] = [{"name": VANILLA, "plugin_id": None, "method": "", "strength": 1.0}]
    for index, row in enumerate(plugins):
        name, number = row.name, 2
        while name in [system["name"] for system in results]:
            name, number = f"{row.name} ({number})", number + 1
        strength = strengths[index] if index < len(strengths) else 1.0
        results.append({"name": name, "plugin_id": row.id, "method": row.method, "strength": strength})
    return [{**system, "enforced": enforced} for system in results] if enforced else results


def has_dial(method: str) -> bool:
    """Whether plugins of this method have an adjustable strength."""
    from engine.methods import get_method

    try:
        return get_method(method).capabilities.offers_strength
    except TailorError:
        return False


class SystemTranslator:
    """Translates with any system over one base. `load` returns the loaded plugin of a system."""

    def __init__(self, base: BaseModel, load: Callable[[System], Plugin]) -> None:
        self.base = base
        self.load = load

    @classmethod
    def of_files(cls, base: BaseModel, paths: Mapping[str, Path], cache: Path) -> SystemTranslator:
        """With bundles by system name."""
        from engine.plugins import Plugin

        loaded = {name: Plugin.load(path, base, cache=cache) for name, path in paths.items()}
        return cls(base, lambda system: loaded[system["name"]])

    def plugin(self, system: System) -> Plugin | None:
        """The plugin to use; None for the base alone and at strength 0."""
        alone = system["name"] == VANILLA or not float(system["strength"])
        return None if alone else self.load(system)

    def decoding(self, system: System) -> Json:
        """The changes to the default decoding: those that the plugin was tuned with."""
        plugin = self.plugin(system)
        return dict(plugin.card.get("decoding", {})) if plugin else {}

    def __call__(self, system: System, texts: Sequence[str], **more: Any) -> list[str]:
        """Translations, one per text, in order."""
        from engine.decoding.translate import translate

        return translate(
            self.base,
            list(texts),
            self.plugin(system),
            strength=float(system["strength"]),
            decoding=self.base.decoding(self.decoding(system)),
            **more,
        )
