"""A language pair: a forward model that is customized and a backward model that makes sources for target-side samples."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.base.model import BaseModel
from engine.core.languages import language_message
from engine.errors import MissingError, ModelError

if TYPE_CHECKING:
    from engine.core.settings import Settings


@dataclass(frozen=True)
class LanguagePair:
    """`forward` translates source -> target and is customized; `backward` translates target -> source. Both frozen."""

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
        """Load both directions; a bilingual model is loaded once and serves both. For a model of one direction that comes
        without `backward`, the shelf is asked for the other one; bases that the user added come first.

        Other arguments as of `BaseModel.load`. Raises ModelError when a model cannot translate its direction, saying that a
        backward model is needed.
        """
        from engine.base.registry import BaseRegistry
        from engine.core.settings import load_settings

        load = partial(BaseModel.load, device=device, download=download, settings=settings)
        forward = load(path, source, target)
        if not backward:
            with contextlib.suppress(ModelError):
                return cls(forward, forward.directed(target, source))
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
