"""Phrases as points on a plane, in phrases.map.json.gz, by vectors of the memory or of the frozen base.

Vectors: if a memory adapter was trained, its vectors of each phrase's source (the encoder's output, the values of equation 8 in
paper 1), which are in one space for all layers. Before that, those of the frozen base: the encoder's output over the phrase,
averaged over its tokens, if the base reads the phrases' language; else the decoder's last layer over an empty source.
Plane: the first two principal components of the vectors at length 1. The sign of each is chosen so that its largest loading is
positive: the same vectors give the same map.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.base import BaseModel
from engine.core.atomic_files import atomic_write
from engine.core.progress import Progress
from engine.core.workspace import latest_file
from engine.decoding.translate import length_batches
from engine.errors import CorpusError, ModelError, TailorError
from engine.messages import mark
from engine.phrases.table import PhraseTable, layers_of

if TYPE_CHECKING:
    import torch

MAP_FILE = "phrases.map.json.gz"
MOST = 50_000  # points; more would not be clearer
BATCH = 4096  # tokens
OF_MEMORY = mark("Vectors are those of each phrase's source in the memory of the last run.")
OF_ENCODER = mark("Vectors are from the encoder of the frozen base, which also reads this language.")
OF_DECODER = mark("Vectors are from the last decoder layer of the frozen base.")
MEMORY, PAIRS = "memory.safetensors", "phrase_pairs.jsonl"


@dataclass(frozen=True)
class Vectors:
    """(n, d) vectors of phrases, and a sentence that describes them."""

    texts: list[str]
    values: np.ndarray
    about: str


def make_map(table: PhraseTable, base: BaseModel, workspace: Path, progress: Progress | None = None) -> dict[str, object]:
    """Compute the map and write it, with the most typical phrases if there are more than `MOST`.

    Returns the number of points, what they are, and the variance explained. Raises CorpusError with fewer than three phrases,
    Cancelled.
    """
    progress = progress or Progress()
    if len(table) < 3:
        raise CorpusError("There are too few phrases for a map. Add more sentences.")
    result = memory_vectors(latest_file(workspace, f"method/{MEMORY}").parent) or base_vectors(table, base, progress)
    progress.begin("Drawing the map", progress.index, progress.steps)
    points, explained = plane(result.values)
    index_by_text = {text: index for index, text in enumerate(table.texts)}
    rows = np.array([index_by_text.get(text, -1) for text in result.texts], dtype=np.int64)
    rows, points = rows[rows >= 0], points[rows >= 0]
    selected = rows[np.argsort(-importance(table)[rows], kind="stable")[:MOST]]
    at = {int(row): index for index, row in enumerate(rows)}
    points = points[[at[int(row)] for row in selected]]
    layers = len(base.decoder_layers)
    value = {
        "x": np.round(points[:, 0], 4).tolist(),
        "y": np.round(points[:, 1], 4).tolist(),
        "text": [table.texts[row] for row in selected],
        "layer": layers_of(table.lengths, layers)[selected].tolist(),
        "layers": layers,
        "domain": table.by_domain[selected].argmax(1).tolist() if len(table.domains) > 1 else [],
        "domains": table.domains,
        "explained": [round(float(share), 4) for share in explained],
        "about": result.about,
        "made_from": table.made_from,
    }
    with atomic_write(workspace / MAP_FILE, "the map") as temporary, gzip.open(temporary, "wt", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, separators=(",", ":"))
    return {"points": len(selected), "about": result.about, "explained": value["explained"]}


def importance(table: PhraseTable) -> np.ndarray:
    """(n,) the priority of phrases if there is no room for all: typical phrases first, then frequent ones."""
    return table.keyness.value * 1e6 + table.counts


def memory_vectors(folder: Path) -> Vectors | None:
    """The vectors of a trained memory adapter in this folder; None if there is no intact one."""
    from engine.memory import Memory, load_pairs

    if not (folder / MEMORY).is_file() or not (folder / PAIRS).is_file():
        return None
    try:
        memory, pairs = Memory(folder / MEMORY), load_pairs(folder / PAIRS)
        texts = [[pair.target for pair in pairs if pair.layer == layer] for layer in range(memory.layers)]
        if not pairs or [len(layer_texts) for layer_texts in texts] != memory.sizes:
            return None
        values = np.concatenate([memory.source(layer).float().numpy() for layer in range(memory.layers)])
    except (TailorError, OSError):
        return None
    return Vectors([text for layer_texts in texts for text in layer_texts], values, OF_MEMORY)


def base_vectors(table: PhraseTable, base: BaseModel, progress: Progress) -> Vectors:
    """The frozen base's vectors of the most important phrases."""
    rows = np.argsort(-importance(table), kind="stable")[:MOST]
    texts = [table.texts[row] for row in rows]
    progress.begin("Reading phrases", progress.index, progress.steps)
    values, description = phrase_vectors(base, texts, progress)
    return Vectors(texts, values, description)


def phrase_vectors(base: BaseModel, texts: Sequence[str], progress: Progress | None = None) -> tuple[np.ndarray, str]:
    """(n, d) mean hidden states of phrases in the base's target language, and a sentence that describes them."""
    import torch

    from engine.memory.record import pool

    progress = progress or Progress()
    try:
        reader, description = base.for_direction(base.target, base.source), OF_ENCODER
        rows = [row[: base.max_tokens] for row in reader.encode(texts)]
    except ModelError:
        reader, description = base, OF_DECODER
        rows = [row[: base.max_tokens] for row in base.encode_target(texts)]
    special = torch.tensor(sorted(base.special_ids), device=base.device)
    values = np.zeros((len(texts), base.d_model), dtype=np.float32)
    done = 0
    with base.using(None), torch.no_grad():
        for batch in length_batches([len(row) for row in rows], BATCH):
            ids = base.pad_batch([rows[i] for i in batch])  # (B, T)
            states = reader.encoder_states(ids) if reader is not base else decoder_states(base, ids)  # (B, T, d)
            real = (~torch.isin(ids, special)).to(states.dtype)  # (B, T)
            values[batch] = pool(states, real, "mean").float().cpu().numpy()
            done += len(batch)
            progress.advance(done, len(rows))
    return values, description


def decoder_states(base: BaseModel, ids: torch.Tensor) -> torch.Tensor:
    """The decoder's last hidden states over an empty source, at the positions of the input tokens."""
    empty = base.pad_batch([base.encode([""])[0]])
    encoded = base.encoder_states(empty)
    return base.model.get_decoder()(
        input_ids=ids, encoder_hidden_states=encoded.expand(len(ids), -1, -1), use_cache=False
    ).last_hidden_state


def plane(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first two principal components (n, 2) of vectors (n, d) at length 1, and the shares of variance they explain."""
    x = vectors.astype(np.float64)
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    x -= x.mean(0)
    variance, axes = np.linalg.eigh(x.T @ x / len(x))
    order = np.argsort(-variance)[:2]
    axes = axes[:, order]
    axes *= np.sign(axes[np.abs(axes).argmax(0), range(axes.shape[1])])
    total = max(float(variance.sum()), 1e-12)
    return x @ axes, np.maximum(variance[order], 0.0) / total
