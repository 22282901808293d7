"""Figures that are drawn in the browser by plotly.js, which comes from this server, and the data they are drawn from."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response

from studio.components.html import view
from studio.components.templating import render
from studio.components.theme import DOMAINS

SCRIPT = Path(__file__).resolve().parents[1] / "static" / "figures.js"
UNNAMED = "samples"  # what the proportions call sentences without a label
HEAD = '<script src="/tm/figures.js"></script>'
MOUNT = "window.tmFigures.mount(element, trigger, watch);  // it triggers 'word' and 'pick'\n"


def figure_view(more: str = "") -> Any:
    """A `gr.HTML` whose figures are drawn; `more` is script of the page's own. Events: `word`, `pick`."""
    return view(script=MOUNT + more, head=HEAD)


def figure(kind: str, data: Mapping[str, Any] | None = None, *, source: str = "", label: str = "") -> str:
    """The element that a figure is drawn in: `kind` names how static/figures.js draws `data`, with what it fetches from
    `source`."""
    return render("figure.html", kind=kind, data=json.dumps(data or {}, ensure_ascii=False), source=source, label=label)


def layer_control(name: str, names: Sequence[str], value: int) -> str:
    """A slider through the layers, for the figures beside it; `name` is its parameter in the address."""
    value = min(max(value, 0), len(names) - 1)
    return render("layer_control.html", name=name, names=names, names_json=json.dumps(list(names)), value=value)


def domain_colours(names: Sequence[str], order: Sequence[str] = ()) -> list[str]:
    """Okabe and Ito's colours for domains, general text in grey. A domain has the colour of its place in the project's `order`
    (`Service.domains`), so it is the same on all pages; names that the order lacks come after it.
    """
    colours = itertools.cycle(DOMAINS[:-1])
    known = {UNNAMED if name == "" else name: "" for name in (*order, *names)}
    for name in known:
        known[name] = DOMAINS[-1] if name in ("general", "bundled general") else next(colours)
    return [known[name or UNNAMED] for name in names]


@functools.cache
def plotly_script() -> tuple[bytes, bytes]:
    """plotly.js as it came with the Python package, plain and packed."""
    import plotly

    plain = (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()
    return plain, gzip.compress(plain, 6)


def add_figure_routes(app: FastAPI) -> None:
    """The scripts of the figures, from this server."""

    @app.get("/tm/plotly.min.js", include_in_schema=False)
    def plotly(request: Request) -> Response:
        plain, packed = plotly_script()
        small = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"Cache-Control": "public, max-age=86400", "Vary": "Accept-Encoding"}
        headers |= {"Content-Encoding": "gzip"} if small else {}
        return Response(packed if small else plain, media_type="text/javascript", headers=headers)

    @app.get("/tm/figures.js", include_in_schema=False)
    def figures() -> Response:
        return Response(SCRIPT.read_bytes(), media_type="text/javascript", headers={"Cache-Control": "no-cache"})
