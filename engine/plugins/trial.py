"""The checks that read a bundle's content, run in a separate process (see `engine.plugins.scratch`).

    python -m engine.plugins.trial < request.json

Prints one JSON object per check and line, as from `Check.to_mapping`, with `last` on the final one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.base import BaseModel
from engine.core.json_object import Json
from engine.core.limited_process import serve
from engine.core.model_card import parse_card
from engine.core.oom import out_of_memory
from engine.errors import BundleError, TailorError
from engine.messages import Message, mark
from engine.plugins.bundle import check_bytes, open_bundle, read_bundle_text
from engine.plugins.bundle_content import check_tensors
from engine.plugins.plugin import Plugin
from engine.plugins.scratch import too_much_memory

CHECKS = ("checksums", "loading", "trial", "licence")


class Trial:
    """The state shared by the checks. Each method is a check: it returns its sentence or None if not applicable, and may raise."""

    def __init__(self, request: Json) -> None:
        self.request = request
        self.path = Path(request["bundle"])
        self.restricted = False
        self.base: Any = None
        self.plugin: Any = None

    def checksums(self) -> str:
        with open_bundle(self.path) as bundle:
            count = check_bytes(self.path, bundle)
        return Message("All {count} files match the manifest byte for byte.", count=count)

    def loading(self) -> str | None:
        if "base" not in self.request:
            return None

        self.base = BaseModel.load(self.request["base"], self.request["source"], self.request["target"], device="cpu")
        self.plugin = Plugin.load(self.path, self.base, cache=Path(self.request["cache"]))
        check_tensors(self.path, self.plugin.folder)
        weights = sum(value.numel() for value in self.plugin.module.state_dict().values())
        title = Message(self.plugin.method.capabilities.title)
        return Message("{method}, {count:,} parameters of its own.", method=title, count=weights)

    def trial(self) -> str | None:
        if self.plugin is None or self.plugin.method.capabilities.needs_endpoint:
            return None
        from engine.decoding.translate import translate

        try:
            translate(self.base, self.request["sentences"], self.plugin)
        except TailorError as error:
            raise BundleError("{path}: it cannot translate. {error}", path=self.path, error=error) from error
        return mark("Translated three sentences in a process of its own.")

    def licence(self) -> str:
        card = parse_card(read_bundle_text(self.path))
        if not card.license:
            return mark("The plugin states none. The licence of its base applies to its use.")
        self.restricted = card.restricted
        return card.license_line.removeprefix("Licence: ")


def answers(request: Json) -> Iterator[Json]:
    """The checks in order, as JSON; ends after the first that fails."""
    trial = Trial(request)
    for name in CHECKS:
        try:
            sentence = getattr(trial, name)()
        except Exception as error:
            yield _answer(name, _refusal(request, error), ok=False, last=True)
            return
        if sentence is not None:
            yield _answer(name, sentence, ok=True, last=name == CHECKS[-1], restricted=trial.restricted)


def _answer(name: str, sentence: str, *, ok: bool, last: bool, restricted: bool = False) -> Json:
    mapping = Message(sentence).to_mapping()
    return {"name": name, "ok": ok, "sentence": mapping, "restricted": restricted, "last": last}


def _refusal(request: Json, error: Exception) -> str:
    if any(out_of_memory(cause) for cause in (error, error.__cause__) if cause is not None):
        return too_much_memory(request["bundle"], request["memory"]).message
    if isinstance(error, TailorError):
        return error.message
    name = type(error).__name__
    return Message("{path}: it cannot translate. {error}", path=request["bundle"], error=f"{name}.")


if __name__ == "__main__":
    serve(answers)
