"""Plugins as downloads: as they are, or without the user's own words."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, PlainTextResponse
from starlette.background import BackgroundTask

from engine.errors import StorageError, TailorError, storage_errors
from studio.i18n.translate import translate_message
from studio.services.files import slug

if TYPE_CHECKING:
    from studio.services.service import Service


def add_plugin_routes(app: FastAPI, service: Service) -> None:
    """`/download/plugins/3`, and with `?phrases=no` a new bundle without phrase texts."""

    @app.get("/download/plugins/{number}", include_in_schema=False)
    def plugin_download(number: int, phrases: str = "yes") -> Response:
        from engine.plugins import read_bundle_card

        try:
            row = service.store.plugins.get(number)
        except TailorError as error:
            return PlainTextResponse(translate_message(error.message), status_code=404)
        if not row.exists:
            return PlainTextResponse(f"The bundle of {row.name} is no longer at its place.", status_code=404)
        name = slug(row.name)
        try:
            if phrases != "no" and read_bundle_card(row.path)["name"] == row.name:
                return FileResponse(row.path, filename=f"{name}.zip", media_type="application/zip")
            copy = _empty_file(service.settings.home_dir / "uploads")
            try:
                service.library.export(row, copy, with_phrases=phrases != "no")
            except BaseException:
                copy.unlink(missing_ok=True)
                raise
        except StorageError as error:
            return PlainTextResponse(translate_message(error.message), status_code=507)
        except TailorError as error:
            return PlainTextResponse(translate_message(error.message), status_code=409)
        shown = f"{name}-without-phrases.zip" if phrases == "no" else f"{name}.zip"
        done = BackgroundTask(copy.unlink, missing_ok=True)
        return FileResponse(copy, filename=shown, media_type="application/zip", background=done)


def _empty_file(folder: Path) -> Path:
    with storage_errors("the copy", folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix="copy-", suffix=".zip", dir=folder, delete=False) as file:
            return Path(file.name)
