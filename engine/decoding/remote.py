"""Back-translation in parts that other machines can process (engine.core.remote_map)."""

from __future__ import annotations

from typing import Any

from engine.base.decoding_options import Decoding
from engine.base.remote import load_base

BACK_TRANSLATE = "engine.decoding.remote:BackTranslate"


class BackTranslate:
    """Translates lists of texts greedily, or by beam search with the settings in `decoding`."""

    def __init__(self, **arguments: Any) -> None:
        self.base = load_base(arguments)
        decoding = arguments.get("decoding")
        self.decoding = None if decoding is None else Decoding.from_mapping(decoding)

    def __call__(self, texts: list[str]) -> list[str]:
        from engine.decoding.greedy_search import back_translate
        from engine.decoding.translate import translate

        if self.decoding is not None:
            return translate(self.base, texts, decoding=self.decoding)
        return back_translate(self.base, texts)
