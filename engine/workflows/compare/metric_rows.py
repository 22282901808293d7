"""The figures of a comparison as rows, displayed alike by pages, spreadsheets and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.messages import mark

TITLES = {
    "bleu": mark("BLEU"),
    "chrf": mark("chrF"),
    "ter": mark("TER"),
    "classifier": mark("Style classifier"),
    "perplexity": mark("Perplexity"),
    "terms": mark("Terminology used"),
    "comet": mark("COMET"),
}
SHARES = {"length": mark("Length over the reference's"), "copied": mark("Words copied from the source")}


@dataclass(frozen=True)
class MetricRow:
    """One metric on one kind of text ("text", "general") of one system: score, 95 % interval, the base's score, and p
    against it (None for the base itself), by paired bootstrap and, as `p_ar`, by approximate randomisation.
    """

    kind: str
    metric: str
    system: str
    score: float
    low: float
    high: float
    before: float | None = None
    p: float | None = None
    p_ar: float | None = None

    @property
    def title(self) -> str:
        name = TITLES[self.metric]
        return f"{name}, general text" if self.kind == "general" else name


def figure_rows(metrics: Mapping[str, Any]) -> list[MetricRow]:
    """All figures of a comparison (`compare.evaluate`), by kind and metric; general text last."""
    rows = []
    for kind in ("text", "general"):
        report = metrics.get(kind) or {}
        systems = [system for system in report.get("systems", []) if isinstance(system, Mapping)]
        for metric in TITLES:
            base: float | None = None
            for system in systems:
                result = system.get(metric)
                if not isinstance(result, Mapping):
                    continue
                name, score = str(system["name"]), float(result["score"])
                interval, chances = (result["low"], result["high"]), (result.get("p"), result.get("p_ar"))
                rows.append(MetricRow(kind, metric, name, score, *interval, base, *chances))
                if name == report.get("baseline"):
                    base = score
    return rows


@dataclass(frozen=True)
class Share:
    """A plain figure of one system on the comparison's own sentences, without an interval."""

    name: str
    system: str
    share: float

    @property
    def title(self) -> str:
        return SHARES[self.name]

    @property
    def text(self) -> str:
        return f"{self.share:.1f} %" if self.name == "copied" else f"{self.share:.2f}"


def share_rows(metrics: Mapping[str, Any]) -> list[Share]:
    """The known length ratios and percentages of copied words of every system."""
    systems = [system for system in (metrics.get("text") or {}).get("systems", []) if isinstance(system, Mapping)]
    return [
        Share(name, str(system["name"]), float(system[name]))
        for name in SHARES
        for system in systems
        if isinstance(system.get(name), int | float)
    ]


def value(metric: str, score: float) -> str:
    """A score as displayed: `13.4`, `67 %`, `97`."""
    if metric in ("classifier", "terms"):
        return f"{score:.0f} %"
    return f"{score:,.0f}" if metric == "perplexity" and score >= 100 else f"{score:.1f}"


def sure(p: float | None) -> str:
    """A p-value as displayed: `p < 0.001`, `p = 0.041`."""
    return "" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"
