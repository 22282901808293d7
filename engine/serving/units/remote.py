"""Translation of parts on other machines (engine.core.remote_map)."""

from __future__ import annotations

from typing import Any

from engine.base.decoding_options import Decoding
from engine.base.remote import load_base
from engine.core.flagged import packed
from engine.core.settings import Settings
from engine.plugins import Plugin

TRANSLATE = "engine.serving.units.remote:Translate"


class Translate:
    """Translates with or without a plugin and returns `packed` texts; `bundle` is the plugin's path on all machines."""

    def __init__(self, **arguments: Any) -> None:
        self.base = load_base(arguments)
        cache = Settings.from_mapping(arguments["settings"]).home_dir / "unpacked"
        bundle = arguments["bundle"]
        self.plugin = Plugin.load(bundle, self.base, cache=cache) if bundle else None
        self.strength = float(arguments["strength"])
        self.decoding = Decoding.from_mapping(arguments["decoding"])

    def __call__(self, texts: list[str]) -> list[str | list[str]]:
        from engine.decoding.translate import translate

        translations = translate(self.base, texts, self.plugin, strength=self.strength, decoding=self.decoding)
        return [packed(text) for text in translations]
