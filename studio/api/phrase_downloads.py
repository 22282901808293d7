"""Addresses of the page Phrases beside the page itself: the table as a file, the data of the map."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from engine.core.csv_export import write_row
from engine.errors import TailorError
from engine.workflows.explore.phrase_map import MAP_FILE
from studio.i18n.translate import translate_message
from studio.services.phrases import Phrases, PhraseView, phrases_of
from studio.services.service import Service

HEADS = ("phrase", "back_translation", "kind", "tokens", "times", "in_samples", "in_general_text", "log_ratio",
         "log_ratio_low", "log_ratio_high", "log_likelihood", "layer", "left_out")  # fmt: skip


def add_phrase_routes(app: FastAPI, service: Service) -> None:
    """`/download/phrases/3` takes the parameters of the page; `/tm/projects/3/phrase-map` is what its map is drawn from."""

    @app.get("/download/phrases/{number}", include_in_schema=False)
    def table(number: int, request: Request) -> Response:
        try:
            project = service.store.projects.get(number)
        except TailorError as error:
            return PlainTextResponse(translate_message(error.message), status_code=404)
        folder = service.workspace(number)
        result = phrases_of(folder, project, service.settings, service.decoder_layers(project))
        if result is None:
            return PlainTextResponse("This project has no phrases yet.", status_code=404)
        headers = {"Content-Disposition": f'attachment; filename="phrases-{number}.csv"'}
        view = PhraseView.of(dict(request.query_params))
        return StreamingResponse(lines(result, view), media_type="text/csv; charset=utf-8", headers=headers)

    @app.get("/tm/projects/{number}/phrase-map", include_in_schema=False)
    def points(number: int, request: Request) -> Response:
        try:
            file = service.workspace(service.store.projects.get(number).id) / MAP_FILE
        except TailorError as error:
            return PlainTextResponse(translate_message(error.message), status_code=404)
        if not file.is_file():
            return PlainTextResponse("There is no map yet.", status_code=404)
        data, headers = file.read_bytes(), {"Cache-Control": "private, max-age=86400", "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(data, media_type="application/json", headers={**headers, "Content-Encoding": "gzip"})
        return Response(gzip.decompress(data), media_type="application/json", headers=headers)


def lines(phrases: Phrases, view: PhraseView) -> Iterator[str]:
    """The rows of a view as CSV with a head; with a mark at the start that spreadsheets know UTF-8 by."""
    text = io.StringIO("\ufeff")
    text.seek(1)
    write_row(text, HEADS)
    for number, position in enumerate(phrases.select(view), 1):
        row = phrases.row(int(position))
        ratios = [] if row.ratio is None else [row.ratio, row.low, row.high, row.log_likelihood]
        general = [row.general, *(f"{one:.3f}" for one in ratios)] if ratios else [""] * 5
        write_row(text, [
            row.text, row.source, row.label, row.length, row.count, row.own,
            *general, row.layer + 1 if row.layer >= 0 else "", int(row.excluded),
        ])  # fmt: skip
        if number % 1000 == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()
