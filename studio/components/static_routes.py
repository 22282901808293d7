"""The scripts and the style sheet that pages load from this server in addition to Gradio's."""

from __future__ import annotations

import functools
import gzip
from pathlib import Path

from fastapi import FastAPI, Request, Response

from studio.components.theme import STATIC, page_style

DAY, EVER = "public, max-age=86400", "public, max-age=31536000, immutable"


@functools.cache
def plotly_script() -> bytes:
    """plotly.js from the Python package."""
    import plotly

    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()


@functools.cache
def packed(content: bytes) -> bytes:
    return gzip.compress(content, 6)


def answer(request: Request, content: bytes, media_type: str, keep: str) -> Response:
    """The content, compressed if the browser accepts gzip; `keep` is the Cache-Control header."""
    headers = {"Cache-Control": keep, "Vary": "Accept-Encoding"}
    if small := "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
    return Response(packed(content) if small else content, media_type=media_type, headers=headers)


def add_static_routes(app: FastAPI) -> None:
    address, sheet = page_style()

    @app.get("/tm/plotly.min.js", include_in_schema=False)
    def plotly(request: Request) -> Response:
        return answer(request, plotly_script(), "text/javascript", DAY)

    @app.get("/tm/figures.js", include_in_schema=False)
    def figures() -> Response:
        script = (STATIC / "figures.js").read_bytes()
        return Response(script, media_type="text/javascript", headers={"Cache-Control": "no-cache"})

    @app.get(address, include_in_schema=False)
    def style(request: Request) -> Response:
        return answer(request, sheet, "text/css", EVER)
