"""A comparison as a file: `/download/comparisons/3?format=xlsx`."""

from __future__ import annotations

import re
from urllib.parse import quote

from fastapi import FastAPI, Response
from fastapi.responses import PlainTextResponse

from engine.errors import TailorError
from engine.workflows.compare.export import FORMATS, content_of, write
from studio.api.uploads import sent_once
from studio.i18n.translate import translate_message
from studio.services.service import Service


def add_comparison_routes(app: FastAPI, service: Service) -> None:
    """All formats of `engine.workflows.compare.export`."""

    @app.get("/download/comparisons/{number}", include_in_schema=False)
    def comparison(number: int, format: str = "xlsx") -> Response:
        if format not in FORMATS:
            return PlainTextResponse(f"There is no format {format}: take one of {', '.join(FORMATS)}.", status_code=404)
        try:
            content = content_of(service.store, number)
        except TailorError as error:
            return PlainTextResponse(translate_message(error.message), status_code=404)
        name = re.sub(r'[\\/:*?"<>|\s\x00-\x1f]+', " ", content.title).strip(" .")[:60] or f"comparison {number}"
        ending = FORMATS[format].ending
        plain, own = f"comparison-{number}{ending}", quote(name.removesuffix(ending) + ending)
        return sent_once(
            service.settings, ending, lambda path: write(content, path, format), media_type=FORMATS[format].media,
            headers={"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{own}"},
        )  # fmt: skip
