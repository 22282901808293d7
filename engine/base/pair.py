"""A language pair: a forward model that is customized and a backward model that makes sources for target-side samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base.model import BaseModel
from engine.errors import ModelError

if TYPE_CHECKING:
    from engine.settings import Settings

__all__ = ["LanguagePair"]


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
        """Load both directions; a bilingual model is loaded once and serves both.

        Other arguments as of `BaseModel.load`. Raises ModelError when a model cannot translate its direction, saying that a
        backward model is needed.
        """
        more: dict[str, Any] = {"device": device, "download": download, "settings": settings}
        forward = BaseModel.load(path, source, target, **more)
        if backward:
            return cls(forward, BaseModel.load(backward, target, source, **more))
        try:
            return cls(forward, forward.directed(target, source))
        except ModelError:
            raise ModelError(
                f"The base {forward.name} cannot translate back from {target} to {source}, which is needed to make sources "
                "for your sentences. Give a model of that direction with --backward."
            ) from None
