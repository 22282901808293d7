"""All rows by name, in the table's order."""

from __future__ import annotations

from collections.abc import Callable

from measures.decode import memory_vs_reprojecting, memory_vs_residual
from measures.growth import memory_growth, memory_opening, sentence_memory_growth
from measures.learning import memory_building, peak_memory, training_step
from measures.mixed import many_plugins
from measures.neighbours import knn, knn_by_sentence
from measures.row import Row
from measures.serving import thousand_plugins
from measures.setup import Setup

__all__ = ["ROWS"]

ROWS: dict[str, Callable[[Setup], list[Row]]] = {
    "memory_vs_residual": memory_vs_residual,
    "memory_vs_reprojecting": memory_vs_reprojecting,
    "training_step": training_step,
    "memory_building": memory_building,
    "memory_growth": memory_growth,
    "sentence_memory_growth": sentence_memory_growth,
    "memory_opening": memory_opening,
    "peak_memory": peak_memory,
    "knn": knn,
    "knn_by_sentence": knn_by_sentence,
    "thousand_plugins": thousand_plugins,
    "many_plugins": many_plugins,
}
