"""The memory ablation of a plugin (does its memory matter?): form and result table on its card, as safe HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.plugins.ablate import BASE, TRUE
from engine.store import JobRow
from studio.components.templating import render
from studio.i18n.translate import mark, tr, translate_message

NAMES = {
    BASE: mark("no plugin"),
    TRUE: mark("its own memory"),
    "empty": mark("nothing"),
    "foreign": mark("general text"),
    "noise": mark("noise of the same mean and covariance"),
    "shuffled": mark("its own, values shuffled"),
    "mean": mark("one row, the mean"),
    "oracle": mark("the references: the upper bound"),
}
STEPS = (mark("Translating with the base"), mark("Translating with the memory"), mark("Translating with another memory"))


def lines_of(text: Any) -> list[str]:
    """The lines of a field, without trailing blank ones."""
    return str(text or "").rstrip().splitlines()


def ablation_box(number: int, job: JobRow | None) -> str:
    """The last result or the progress of the job, and the form for another ablation; folded unless there is something to show."""
    result = job.result if job is not None and job.state == "succeeded" else None
    error = translate_message(job.error) if job is not None else ""
    rows = _rows(result) if result else []
    return render("ablation.html", number_of_plugin=number, job=job, error=error, rows=rows)


def _rows(result: Mapping[str, Any]) -> list[dict[str, object]]:
    """One row per memory: BLEU, chrF, NLL and p, or why the plugin cannot use it."""
    digits = {"bleu": 1, "chrf": 1, "nll": 3, "p": 3}
    return [
        {
            "memory": tr(NAMES[variant["memory"]]),
            "figures": ["" if variant[key] is None else f"{variant[key]:.{decimals}f}" for key, decimals in digits.items()],
            "reason": translate_message(variant["reason"]) if variant.get("reason") else "",
        }
        for variant in ({**result["base"], "memory": BASE}, *result["variants"])
    ]
