"""The experiments of the papers by the names that `tailormt reproduce` takes."""

from __future__ import annotations

from engine.benching.experiment import Experiment, Variant
from engine.benching.paper_1 import PAPER_1, layer_variants
from engine.benching.papers_2_to_5 import PAPERS_2_TO_5

__all__ = ["EXPERIMENTS", "Experiment", "Variant", "layer_variants"]

EXPERIMENTS: dict[str, Experiment] = {**PAPER_1, **PAPERS_2_TO_5}
