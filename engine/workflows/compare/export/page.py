"""One self-contained HTML page: sentences with marks, figures with intervals, signatures. It opens without a network, can be
printed, and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.flagged import FLAGS
from engine.evaluation.highlight import marks
from engine.workflows.compare.export.content import Content, flags_of, printable
from engine.workflows.compare.metric_rows import MetricRow, figure_rows, share_rows, sure, value

if TYPE_CHECKING:
    from jinja2 import Template


def as_html(content: Content) -> Iterator[str]:
    """The page in parts, as it is generated."""
    names = [content.label(i) for i in range(len(content.systems))]
    rows, shares = figure_rows(content.figures), share_rows(content.figures)
    return _template().generate(content=content, names=names, systems=", ".join(names), rows=rows, shares=shares)


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda item: printable(item) if isinstance(item, str) else item,
    )
    environment.globals |= {"marks": marks, "value": value, "sure": sure, "change": _change, "flags_of": flags_of, "FLAGS": FLAGS}
    return environment.get_template("page.html")


def _change(row: MetricRow) -> str:
    return "" if row.before is None else f"{row.score - row.before:+.1f}".replace("-", "−")
