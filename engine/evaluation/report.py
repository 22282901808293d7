"""The figures of an evaluation, as data and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import InputError

__all__ = ["Figure", "Report", "SystemScores"]

ALPHA = 0.05


@dataclass(frozen=True)
class Figure:
    """One metric of one system, 0 to 100. `mean` and the 95 % confidence interval `low`..`high` are bootstrapped.

    `p` is the paired-bootstrap p-value against the baseline, None for the baseline itself and without one.
    """

    score: float
    mean: float
    low: float
    high: float
    p: float | None = None

    def to_mapping(self) -> dict[str, float | None]:
        return {"score": self.score, "mean": self.mean, "low": self.low, "high": self.high, "p": self.p}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Figure:
        p = values["p"]
        numbers = {name: float(values[name]) for name in ("score", "mean", "low", "high")}
        return cls(**numbers, p=None if p is None else float(p))


@dataclass(frozen=True)
class SystemScores:
    """One system: its figures and how many of its lines are empty."""

    name: str
    bleu: Figure
    chrf: Figure
    empty: int = 0


@dataclass(frozen=True)
class Report:
    """An evaluation: `signatures` (by metric) are sacrebleu's and make every figure reproducible."""

    language: str
    lines: int
    samples: int
    seed: int
    baseline: str | None
    systems: tuple[SystemScores, ...]
    signatures: dict[str, str]

    def __getitem__(self, name: str) -> SystemScores:
        return next(system for system in self.systems if system.name == name)

    def to_mapping(self) -> dict[str, Any]:
        """A plain mapping that JSON can hold."""
        return {
            "language": self.language,
            "lines": self.lines,
            "samples": self.samples,
            "seed": self.seed,
            "baseline": self.baseline,
            "signatures": dict(self.signatures),
            "systems": [
                {
                    "name": system.name,
                    "empty": system.empty,
                    "bleu": system.bleu.to_mapping(),
                    "chrf": system.chrf.to_mapping(),
                }
                for system in self.systems
            ],
        }

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Report:
        """Build from what to_mapping gave. Raises InputError when something is missing or of the wrong kind."""
        try:
            baseline = values["baseline"]
            return cls(
                language=str(values["language"]),
                lines=int(values["lines"]),
                samples=int(values["samples"]),
                seed=int(values["seed"]),
                baseline=None if baseline is None else str(baseline),
                signatures={str(name): str(text) for name, text in values["signatures"].items()},
                systems=tuple(
                    SystemScores(
                        name=str(system["name"]),
                        bleu=Figure.from_mapping(system["bleu"]),
                        chrf=Figure.from_mapping(system["chrf"]),
                        empty=int(system["empty"]),
                    )
                    for system in values["systems"]
                ),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"The evaluation report is damaged ({type(error).__name__}: {error}); run the evaluation again."
            ) from None

    def table(self) -> str:
        """A text table: one row a system, the interval in brackets, p-values, then the signatures.

        A star marks a difference from the baseline that is significant at p < 0.05.
        """
        head = ["system", "BLEU [95 % interval]", "chrF2 [95 % interval]"]
        if self.baseline is not None:
            head = [head[0], head[1], "p", head[2], "p"]
        if any(system.empty for system in self.systems):
            head.append("empty lines")
        rows = [head]
        for system in self.systems:
            row = [system.name + (" (baseline)" if system.name == self.baseline else "")]
            for figure in (system.bleu, system.chrf):
                row.append(f"{figure.score:.1f} [{figure.low:.1f}, {figure.high:.1f}]")
                if self.baseline is not None:
                    row.append(_p(figure.p))
            if len(head) > len(row):
                row.append(str(system.empty))
            rows.append(row)
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        rows.insert(1, ["-" * width for width in widths])
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines += ["", f"{self.lines:,} lines, {self.samples:,} bootstrap samples, seed {self.seed}"]
        if self.baseline is not None:
            lines.append(f"* differs from {self.baseline}, paired bootstrap, p < {ALPHA}")
        return "\n".join(lines + [f"{name}: {text}" for name, text in self.signatures.items()])


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}{'*' if value < ALPHA else ''}"
