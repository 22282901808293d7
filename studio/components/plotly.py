"""Figures drawn in the browser by plotly.js, and their data."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from studio.components.html import html_block
from studio.components.templating import render
from studio.components.theme import DOMAINS

UNNAMED = "samples"  # name of the domain of unlabelled sentences in the proportions
HEAD = '<script src="/tm/figures.js"></script>'
MOUNT = "window.tmFigures.mount(element, trigger, watch);  // it triggers 'word' and 'pick'\n"


def figure_view(more: str = "") -> Any:
    """A `gr.HTML` that draws its figures; `more` is an additional script of the page. Events: `word`, `pick`."""
    return html_block(script=MOUNT + more, head=HEAD)


def figure(kind: str, data: Mapping[str, Any] | None = None, *, source: str = "", label: str = "") -> str:
    """The element in which static/figures.js draws a figure: `kind` is the type, `data` its data, and `source` a URL from which
    it fetches more."""
    return render("figure.html", kind=kind, data=json.dumps(data or {}, ensure_ascii=False), source=source, label=label)


def layer_control(name: str, names: Sequence[str], value: int) -> str:
    """A layer slider for the figures next to it; `name` is its parameter in the address."""
    value = min(max(value, 0), len(names) - 1)
    return render("layer_control.html", name=name, names=names, names_json=json.dumps(list(names)), value=value)


def domain_colours(names: Sequence[str], order: Sequence[str] = ()) -> list[str]:
    """Okabe and Ito's colours for domains, general text in grey. A domain's colour depends on its position in the project's
    `order` (`SampleFiles.domains`), so that it is the same on all pages; names missing from `order` follow it.
    """
    colours = itertools.cycle(DOMAINS[:-1])
    colour_by_name = {UNNAMED if name == "" else name: "" for name in (*order, *names)}
    for name in colour_by_name:
        colour_by_name[name] = DOMAINS[-1] if name in ("general", "bundled general") else next(colours)
    return [colour_by_name[name or UNNAMED] for name in names]
