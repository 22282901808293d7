"""The scores of a plugin from its training run or an evaluation, by kind of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.store import PluginRow
from studio.i18n.translate import mark, tr

NAMES = {"bleu": "BLEU", "chrf": "chrF"}


@dataclass(frozen=True)
class Score:
    """One metric on one kind of text, 0 to 100: the base, the plugin with its 95 % interval, and p against the base."""

    kind: str  # such as "style" or "general"; "" if there is only one
    metric: str
    before: float
    after: float
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @property
    def title(self) -> str:
        name = NAMES.get(self.metric, self.metric)
        return tr("{metric}, {text}", metric=name, text=tr(self.kind)) if self.kind else name

    @property
    def sure(self) -> str:
        """The plugin's interval, the difference, and its p: `95 % 12.5–14.3 · +5.6 · p < 0.001`."""
        parts = [f"{self.after - self.before:+.1f}".replace("-", "−")]
        if self.low is not None and self.high is not None:
            low, high = sorted((self.low, self.high))
            parts.insert(0, f"95 % {low:.1f}–{high:.1f}")
        if self.p is not None:
            parts.append("p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}")
        return " · ".join(part.replace(" ", "\u00a0") for part in parts)  # lines break between parts only


def scores(metrics: Mapping[str, Any]) -> list[Score]:
    """The scores in a plugin's metrics: those measured by the training run, then those of evaluation reports
    (`engine.evaluation.Report.to_mapping`), by kind of text."""
    flat = [
        Score(kind, name, metrics[f"{key}_vanilla"], metrics[key], *(metrics.get(f"{key}_{end}") for end in ("low", "high", "p")))
        for kind, prefix in ((mark("held-out samples"), ""), (mark("general"), "general_"))
        for name in NAMES
        for key in [prefix + name]
        if all(isinstance(metrics.get(field), int | float) for field in (key, f"{key}_vanilla"))
    ]
    return flat + [score for kind, report in _reports(metrics) for score in _of(kind, report)]


def harm(plugin: PluginRow) -> str:
    """A warning if the plugin does more harm than good; empty otherwise."""
    if not plugin.harm:
        return ""
    return tr(
        "On held-out sentences the plugin is not significantly better than the base, and general text loses {loss} BLEU. "
        "Choose another method or add samples. The plugin is kept but does not become the default by itself: to use it "
        "anyway, choose it on the page Translate, or set it as the default on the page Plugins.",
        loss=f"{plugin.harm:.1f}",
    )


def _reports(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(metrics.get("systems"), list):
        yield "", metrics
        return
    for kind, inner in metrics.items():
        if isinstance(inner, Mapping) and isinstance(inner.get("systems"), list):
            yield str(kind).replace("_", " "), inner


def _of(kind: str, report: Mapping[str, Any]) -> Iterator[Score]:
    systems = {str(system.get("name")): system for system in report["systems"] if isinstance(system, Mapping)}
    base = systems.get(str(report.get("baseline")))
    other = next((system for name, system in systems.items() if name != report.get("baseline")), None)
    if base is None or other is None:
        return
    for metric in NAMES:
        before, after = base.get(metric), other.get(metric)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield Score(kind, metric, before["score"], after["score"], after["low"], after["high"], after.get("p"))
