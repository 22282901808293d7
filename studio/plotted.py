"""Figures that are drawn in the browser by plotly.js, which comes from this server, and the data they are drawn from."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response

from studio.html import esc, view

__all__ = ["add_figure_routes", "domain_colours", "figure", "figure_view", "layer_control"]

SCRIPT = Path(__file__).parent / "static" / "figures.js"
HEAD = '<script src="/tm/figures.js"></script>'
MOUNT = "window.tmFigures.mount(element, trigger, watch);  // it triggers 'word' and 'pick'\n"


def figure_view(more: str = "", *, classes: str = "", value: str = "") -> Any:
    """A `gr.HTML` whose figures are drawn; `more` is script of the page's own. Events: `word`, `pick`."""
    return view(value, classes=classes, script=MOUNT + more, head=HEAD)


def figure(kind: str, data: Mapping[str, Any] | None = None, *, source: str = "", label: str = "") -> str:
    """A figure's place: `kind` names how static/figures.js draws `data`, with what it fetches from `source`."""
    given = f'data-figure="{esc(json.dumps(data or {}, ensure_ascii=False))}"'
    given += f' data-src="{esc(source)}"' if source else ""
    place = f'<div class="tm-fig" role="img" aria-label="{esc(label)}" data-kind="{kind}" {given}></div>'
    return f'<div class="tm-fig-scroll">{place}</div>'


def layer_control(name: str, names: Sequence[str], value: int, label: str) -> str:
    """A slider through the layers, for the figures beside it; `name` is its parameter in the address."""
    value = min(max(value, 0), len(names) - 1)
    return (
        f'<label class="tm-layer-control">{esc(label)} <input type="range" min="0" max="{len(names) - 1}" step="1" '
        f'value="{value}" data-layers data-name="{esc(name)}" data-names="{esc(json.dumps(list(names)))}" '
        f'aria-valuetext="{esc(names[value])}"><output>{esc(names[value])}</output></label>'
    )


def domain_colours(names: Sequence[str]) -> list[str]:
    """Okabe and Ito's colours for domains; general text is grey."""
    from studio.theme import DOMAINS

    strong, grey = DOMAINS[:-1], DOMAINS[-1]
    found, used = [], 0
    for name in names:
        if name in ("general", "bundled general"):
            found.append(grey)
            continue
        found.append(strong[used % len(strong)])
        used += 1
    return found


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
