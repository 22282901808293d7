"""Settings of kNN-MT: those of kNN decoding."""

from __future__ import annotations

from dataclasses import dataclass

from engine.methods.knn.options import KnnOptions


@dataclass(frozen=True)
class KnnConfig(KnnOptions):
    """kNN-MT."""
