"""The decoding defaults of a base: the beam and length penalty with the best BLEU on held-out pairs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base.defaults import write_defaults
from engine.base.model import BaseModel
from engine.core.progress import Progress
from engine.errors import ModelError
from engine.evaluation.metrics import metrics

BEAMS = (4, 2, 6)  # the default first
PENALTIES = (1.0, 0.6, 0.8, 1.2, 1.4)
MARGIN = 0.1  # BLEU by which another setting must beat the default, so that the choice is not due to chance
FEWEST = 50  # pairs; with fewer, the choice would be due to chance


@dataclass(frozen=True)
class DecodingChoice:
    """The chosen `settings` of `Decoding`, and `rows` for all settings tried: beam, length_penalty, BLEU, and the length of the
    translations divided by that of the references, in characters.
    """

    settings: dict[str, object]
    rows: list[dict[str, object]]


def choose_decoding(base: BaseModel, pairs: Sequence[tuple[str, str]], progress: Progress | None = None) -> DecodingChoice:
    """Choose the beam and length penalty with the best BLEU on (source, reference) pairs of the base's direction.

    The penalty is chosen with the default beam, then the beam with that penalty, so all pairs are translated seven times. A
    smaller beam is preferred unless a larger one gains more than MARGIN.
    """
    from engine.decoding.translate import translate

    progress = progress or Progress()
    bleu = metrics(base.target)["BLEU"]
    sources, references = [a for a, _ in pairs], [b for _, b in pairs]
    reference_length = sum(map(len, references))
    rows: list[dict[str, object]] = []

    def tried(beam: int, penalty: float) -> float:
        progress.advance(len(rows), len(PENALTIES) + len(BEAMS) - 1, f"beam {beam}, length penalty {penalty:g}")
        settings = base.decoding({"beam": beam, "length_penalty": penalty})
        translations = translate(base, sources, decoding=settings)
        score = float(bleu.corpus_score(translations, [references]).score)
        ratio = sum(map(len, translations)) / max(1, reference_length)
        rows.append({"beam": beam, "length_penalty": penalty, "bleu": round(score, 2), "length": round(ratio, 3)})
        return score

    penalty, best = PENALTIES[0], tried(BEAMS[0], PENALTIES[0])
    for other in PENALTIES[1:]:
        if (score := tried(BEAMS[0], other)) > best + (MARGIN if penalty == PENALTIES[0] else 0.0):
            penalty, best = other, score
    smaller, larger = (tried(beam, penalty) for beam in BEAMS[1:])
    beam = BEAMS[1] if smaller >= best - MARGIN else BEAMS[2] if larger > best + MARGIN else BEAMS[0]
    return DecodingChoice({"beam": beam, "length_penalty": penalty}, rows)


def choose_defaults(
    folder: Path, pairs: Sequence[tuple[str, str]], source: str, target: str, *, device: str = "auto",
    progress: Progress | None = None,
) -> dict[str, DecodingChoice]:  # fmt: skip
    """Choose for each direction that the base supports, and write the base's defaults. `pairs` are (source, target).

    Returns the choices by direction, such as `en-zh`. With fewer than FEWEST pairs, returns none and writes nothing.
    """
    if len(pairs) < FEWEST:
        return {}
    forward = BaseModel.load(folder, source, target, device=device)
    directions: list[tuple[BaseModel, Sequence[tuple[str, str]]]] = [(forward, pairs)]
    with contextlib.suppress(ModelError):  # a base of one direction
        directions.append((forward.for_direction(target, source), [(b, a) for a, b in pairs]))
    chosen = {f"{base.source}-{base.target}": choose_decoding(base, rows, progress) for base, rows in directions}
    write_defaults(folder, {direction: choice.settings for direction, choice in chosen.items()})
    return chosen


def decoding_table(chosen: Mapping[str, Mapping[str, Any]]) -> str:
    """A Markdown table of the settings tried, for a card; `chosen` holds the choices as mappings, by direction."""
    lines = ["| direction | beam | length penalty | BLEU | length |", "|---|---:|---:|---:|---:|"]
    for direction, choice in chosen.items():
        for row in choice["rows"]:
            selected = all(row[name] == value for name, value in choice["settings"].items())
            score = f"**{row['bleu']:.2f}**" if selected else f"{row['bleu']:.2f}"
            lines.append(f"| {direction} | {row['beam']} | {row['length_penalty']:g} | {score} | {row['length']:.2f} |")
    return "\n".join(lines)
