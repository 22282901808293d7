"""A comparison as a file: `/download/comparisons/3?format=xlsx`."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from urllib.parse import quote

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, PlainTextResponse
from starlette.background import BackgroundTask

from engine.errors import TailorError
from engine.workflows.compare.export import FORMATS, content_of, write
from studio.i18n.translate import translate_message
from studio.services.service import Service


def add_comparison_routes(app: FastAPI, service: Service) -> None:
    """All formats of `engine.workflows.compare.export`."""

    @app.get("/download/comparisons/{number}", include_in_schema=False)
    def comparison(number: int, format: str = "xlsx") -> Response:
        if format not in FORMATS:
            return PlainTextResponse(f"There is no format {format}: take one of {', '.join(FORMATS)}.", status_code=404)
        handle = tempfile.NamedTemporaryFile(prefix="tailormt-", suffix=FORMATS[format].ending, delete=False)  # noqa: SIM115
        handle.close()
        path = Path(handle.name)
        try:
            content = content_of(service.store, number)
            write(content, path, format)
        except TailorError as error:
            path.unlink(missing_ok=True)
            return PlainTextResponse(translate_message(error.message), status_code=404)
        name = re.sub(r'[\\/:*?"<>|\s\x00-\x1f]+', " ", content.title).strip(" .")[:60] or f"comparison {number}"
        stem = name.removesuffix(FORMATS[format].ending)
        plain = f"comparison-{number}{FORMATS[format].ending}"
        disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(stem + FORMATS[format].ending)}"
        return FileResponse(
            path,
            media_type=FORMATS[format].media,
            headers={"Content-Disposition": disposition},
            background=BackgroundTask(path.unlink, missing_ok=True),
        )
