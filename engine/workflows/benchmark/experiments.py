"""The experiments of the papers by the names that `tailormt reproduce` takes."""

from __future__ import annotations

from engine.workflows.benchmark.experiment import Experiment
from engine.workflows.benchmark.paper_1 import PAPER_1
from engine.workflows.benchmark.papers_2_to_5 import PAPERS_2_TO_5

EXPERIMENTS: dict[str, Experiment] = {**PAPER_1, **PAPERS_2_TO_5}
