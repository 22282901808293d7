"""Plugins as downloads: as they are, or without the user's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, PlainTextResponse

from engine.errors import StorageError, TailorError
from studio.api.uploads import sent_once
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
            shown = f"{name}-without-phrases.zip" if phrases == "no" else f"{name}.zip"
            return sent_once(
                service.settings, ".zip", lambda path: service.library.export(row, path, with_phrases=phrases != "no"),
                filename=shown, media_type="application/zip",
            )  # fmt: skip
        except StorageError as error:
            return PlainTextResponse(translate_message(error.message), status_code=507)
        except TailorError as error:
            return PlainTextResponse(translate_message(error.message), status_code=409)
