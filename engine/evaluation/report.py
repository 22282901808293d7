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
    """One metric of one system; `mean` and the 95 % confidence interval `low`..`high` are bootstrapped.

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


# A figure's name in a mapping, its head in a table, and whether lower is better.
METRICS = (
    ("bleu", "BLEU", False),
    ("chrf", "chrF2", False),
    ("perplexity", "perplexity", True),
    ("classifier", "classifier %", False),
)


@dataclass(frozen=True)
class SystemScores:
    """One system: its figures and how many of its lines are empty.

    BLEU, chrF2 (0 to 100) need references; perplexity (lower is better) and the classifier score (percent of the lines
    that are taken for the style) need samples of the style. None where that was not given.
    """

    name: str
    bleu: Figure | None
    chrf: Figure | None
    empty: int = 0
    perplexity: Figure | None = None
    classifier: Figure | None = None

    def figures(self) -> dict[str, Figure]:
        """Those that there are, by their names in a mapping."""
        named = ((name, getattr(self, name)) for name, _, _ in METRICS)
        return {name: figure for name, figure in named if figure is not None}


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
                    **{name: figure.to_mapping() for name, figure in system.figures().items()},
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
                        empty=int(system["empty"]),
                        **{
                            name: Figure.from_mapping(system[name]) if system.get(name) is not None else None
                            for name, _, _ in METRICS
                        },
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
        measured = [one for one in METRICS if any(one[0] in system.figures() for system in self.systems)]
        head = ["system"]
        for _, title, lower in measured:
            head.append(f"{title} [95 % interval{', lower is better' if lower else ''}]")
            head += ["p"] * (self.baseline is not None)
        if any(system.empty for system in self.systems):
            head.append("empty lines")
        rows = [head]
        for system in self.systems:
            row = [system.name + (" (baseline)" if system.name == self.baseline else "")]
            for name, _, _ in measured:
                figure = system.figures().get(name)
                row.append(f"{figure.score:.1f} [{figure.low:.1f}, {figure.high:.1f}]" if figure else "")
                row += [_p(figure.p if figure else None)] * (self.baseline is not None)
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
