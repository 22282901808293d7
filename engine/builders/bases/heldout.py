"""Scores of a base on held-out pairs in both directions: sacrebleu's BLEU and chrF, with their signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.base.model import BaseModel
from engine.core.progress import Progress
from engine.evaluation.metrics import metrics


@dataclass(frozen=True)
class HeldOutScores:
    """A row per file and direction: file, source, target, lines, BLEU, chrF2 and the signatures of both."""

    rows: list[dict[str, Any]]

    def brief(self) -> dict[str, float]:
        """BLEU by file and target language, for example `bleu/ntrex.en-zh/zh` for translations into Chinese."""
        return {f"bleu/{row['file']}/{row['target']}": row["bleu"] for row in self.rows}


def score_base(
    folder: str | Path,
    held_out: Mapping[str, Sequence[tuple[str, str]]],
    source: str,
    target: str,
    *,
    beam: int = 4,
    device: torch.device | str = "auto",
    progress: Progress | None = None,
) -> HeldOutScores:
    """Translate the pairs of every file in both directions, with default decoding except for `beam`, and score them."""
    from engine.decoding.translate import translate

    progress = progress or Progress()
    if not held_out:
        return HeldOutScores([])
    forward = BaseModel.load(folder, source, target, device=str(device))
    rows = []
    jobs = [(name, direction) for name in held_out for direction in (0, 1)]
    for number, (name, direction) in enumerate(jobs):
        progress.advance(number, len(jobs), name)
        pairs = held_out[name]
        base = forward.for_direction(target, source) if direction else forward
        translations = translate(base, [pair[direction] for pair in pairs], decoding=base.decoding({"beam": beam}))
        row: dict[str, Any] = {"file": name, "source": base.source, "target": base.target, "lines": len(pairs)}
        for key, metric in zip(("bleu", "chrf"), metrics(base.target).values(), strict=True):
            row[key] = round(metric.corpus_score(translations, [[pair[1 - direction] for pair in pairs]]).score, 2)
            row[f"{key}_signature"] = str(metric.get_signature())
        rows.append(row)
    return HeldOutScores(rows)
