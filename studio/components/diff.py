"""Two texts with the changed words marked."""

from __future__ import annotations

from collections.abc import Sequence

from engine.evaluation.highlight import marks
from studio.components.templating import render


def marked(vanilla: str, customized: str, language: str) -> tuple[str, str]:
    """Both texts as safe HTML: the replaced words marked in the first, the plugin's wording in the second."""
    old, new = marks([vanilla, customized], language)
    return runs_html(old, "old"), runs_html(new, "new")


def runs_html(runs: Sequence[tuple[str, bool]], kind: str) -> str:
    """Runs from `engine.evaluation.highlight` as safe HTML; `kind` is "old" or "new"."""
    return render("diff.html", runs=runs, kind=kind)
