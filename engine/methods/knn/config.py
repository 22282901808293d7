"""Settings of kNN-MT: those of kNN decoding."""

from __future__ import annotations

from dataclasses import dataclass

from engine.decoding.knn.options import KnnOptions

__all__ = ["KnnConfig"]


@dataclass(frozen=True)
class KnnConfig(KnnOptions):
    """kNN-MT."""
