"""The figures of an evaluation, as data and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import InputError

ALPHA = 0.05


@dataclass(frozen=True)
class Figure:
    """One metric of one system; `mean` and the 95 % confidence interval `low`..`high` are bootstrapped.

    `p` is the paired-bootstrap p-value against the baseline, `p_ar` that of approximate randomisation, if requested; both are None
    for the baseline itself and without a baseline.
    """

    score: float
    mean: float
    low: float
    high: float
    p: float | None = None
    p_ar: float | None = None

    def to_mapping(self) -> dict[str, float | None]:
        optional = {} if self.p_ar is None else {"p_ar": self.p_ar}
        return {"score": self.score, "mean": self.mean, "low": self.low, "high": self.high, "p": self.p, **optional}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Figure:
        p, p_ar = (None if value is None else float(value) for value in (values["p"], values.get("p_ar")))
        return cls(**{name: float(values[name]) for name in ("score", "mean", "low", "high")}, p=p, p_ar=p_ar)


# A figure's name in a mapping, its heading in a table, and whether lower is better.
METRICS = (
    ("bleu", "BLEU", False),
    ("chrf", "chrF2", False),
    ("ter", "TER", True),
    ("perplexity", "perplexity", True),
    ("classifier", "classifier %", False),
    ("terms", "terms %", False),
    ("comet", "COMET", False),
)
# Plain ratios without an interval: name in a mapping and heading in a table.
SHARES = (("length", "length"), ("copied", "copied %"))


@dataclass(frozen=True)
class SystemScores:
    """One system: its figures and how many of its lines are empty.

    BLEU, chrF2 (0 to 100) and TER (lower is better) need references; perplexity (lower is better) and the classifier score
    (percentage of lines in the style) need samples of the style; `terms` is the percentage of expected terms that are used;
    `comet`, times 100, needs sources and a checkpoint. `length` is the number of tokens over the reference's, `copied` the
    percentage of words that also occur in the source. A figure is None if its input was not given.
    """

    name: str
    bleu: Figure | None
    chrf: Figure | None
    empty: int = 0
    perplexity: Figure | None = None
    classifier: Figure | None = None
    ter: Figure | None = None
    terms: Figure | None = None
    length: float | None = None
    copied: float | None = None
    comet: Figure | None = None

    def shares(self) -> dict[str, float]:
        """The known length ratio and percentage of copied words, by their names in a mapping."""
        named = ((name, getattr(self, name)) for name, _ in SHARES)
        return {name: value for name, value in named if value is not None}

    def figures(self) -> dict[str, Figure]:
        """The known figures, by their names in a mapping."""
        named = ((name, getattr(self, name)) for name, _, _ in METRICS)
        return {name: figure for name, figure in named if figure is not None}


@dataclass(frozen=True)
class Report:
    """An evaluation; `signatures` (by metric), in sacrebleu's format, make every figure reproducible."""

    language: str
    lines: int
    samples: int
    seed: int
    baseline: str | None
    systems: tuple[SystemScores, ...]
    signatures: dict[str, str]

    def __getitem__(self, name: str) -> SystemScores:
        return next(system for system in self.systems if system.name == name)

    def to_mapping(self) -> dict[str, object]:
        """A plain mapping that JSON can hold."""
        attributes = {name: getattr(self, name) for name in ("language", "lines", "samples", "seed", "baseline")}
        systems = [
            {"name": system.name, "empty": system.empty, **system.shares()}
            | {name: figure.to_mapping() for name, figure in system.figures().items()}
            for system in self.systems
        ]
        return attributes | {"signatures": dict(self.signatures), "systems": systems}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Report:
        """Build from the result of to_mapping. Raises InputError if a value is missing or of the wrong type."""
        try:
            baseline = values["baseline"]
            return cls(
                language=str(values["language"]),
                lines=int(values["lines"]),
                samples=int(values["samples"]),
                seed=int(values["seed"]),
                baseline=None if baseline is None else str(baseline),
                signatures={str(name): str(text) for name, text in values["signatures"].items()},
                systems=tuple(_system(system) for system in values["systems"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                "The evaluation report is damaged ({name}: {error}); run the evaluation again.",
                name=type(error).__name__,
                error=error,
            ) from None

    def table(self) -> str:
        """A text table: one row per system, the interval in brackets, p-values, then the signatures.

        A star marks a difference from the baseline that is significant at p < 0.05.
        """
        measured = [metric for metric in METRICS if any(metric[0] in system.figures() for system in self.systems)]
        head = ["system"]
        for _, title, lower in measured:
            head.append(f"{title} [95 % interval{', lower is better' if lower else ''}]")
            head += ["p"] * (self.baseline is not None)
        shares = [share for share in SHARES if any(share[0] in system.shares() for system in self.systems)]
        head += [title for _, title in shares]
        if any(system.empty for system in self.systems):
            head.append("empty lines")
        rows = [head]
        for system in self.systems:
            row = [system.name + (" (baseline)" if system.name == self.baseline else "")]
            for name, _, _ in measured:
                figure = system.figures().get(name)
                row.append(f"{figure.score:.1f} [{figure.low:.1f}, {figure.high:.1f}]" if figure else "")
                row += [_p(figure)] * (self.baseline is not None)
            for name, _ in shares:
                share = system.shares().get(name)
                row.append("" if share is None else f"{share:.1f}" if name == "copied" else f"{share:.2f}")
            if len(head) > len(row):
                row.append(str(system.empty))
            rows.append(row)
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        rows.insert(1, ["-" * width for width in widths])
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines += ["", f"{self.lines:,} lines, {self.samples:,} bootstrap samples, seed {self.seed}"]
        if self.baseline is not None:
            lines.append(f"* differs from {self.baseline}, paired bootstrap, p < {ALPHA}")
            if any(figure.p_ar is not None for system in self.systems for figure in system.figures().values()):
                lines.append("p after the slash: approximate randomisation")
        return "\n".join(lines + [f"{name}: {text}" for name, text in self.signatures.items()])


def _system(values: Mapping[str, Any]) -> SystemScores:
    figures = {name: Figure.from_mapping(values[name]) for name, _, _ in METRICS if values.get(name) is not None}
    shares = {name: float(values[name]) for name, _ in SHARES if values.get(name) is not None}
    scores: dict[str, Any] = {"bleu": None, "chrf": None, **figures, **shares}
    return SystemScores(name=str(values["name"]), empty=int(values["empty"]), **scores)


def _p(figure: Figure | None) -> str:
    if figure is None or figure.p is None:
        return ""
    other = "" if figure.p_ar is None else f" / {_level(figure.p_ar)}"
    return f"{_level(figure.p)}{'*' if figure.p < ALPHA else ''}{other}"


def _level(p: float) -> str:
    return "<0.001" if p < 0.0005 else f"{p:.3f}"
